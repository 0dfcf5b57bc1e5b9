"""Claims about bugs in launchers: planted where the subject launches, judged like all others."""

from __future__ import annotations

import json
from pathlib import Path

from gatecert.errors import ExitCode
from tests.e2e.commands import gatecert, project

LAUNCHER = (
    *("--operator", "uninitialised-buffer"),
    *("--operator", "grid-rounded-down"),
    *("--operator", "argument-not-forwarded"),
)
ENTRY = "kernels_zeroed_buffer:leaky_relu"


def test_a_bug_of_each_sort_in_a_launcher_is_killed(tmp_path: Path) -> None:
    folder = project(tmp_path, ENTRY, "leaky_relu")
    done = gatecert(folder, "certify", *LAUNCHER, "--quick", "--jobs", "1", "--out", "out")
    assert done.returncode == ExitCode.MET, done.stderr
    found = json.loads((folder / "out" / "certificate-r1.json").read_text())
    said = {
        mutant.removeprefix("softmax/leaky_relu/").partition("/")[0]: result["oracle"]["status"]
        for mutant, result in found["results"].items()
    }
    assert said == {
        "uninitialised-buffer": "killed",
        "grid-rounded-down": "killed",
        "argument-not-forwarded.other-stride": "killed",
        "argument-not-forwarded.default": "killed",
    }
    # Compiled code says nothing of a launcher: none is equivalent, a duplicate or unviable.
    assert {status: n for status, n in found["mutants"].items() if n} == {"killed": 5}
    assert not [line for line in found["not_tested"] if "launcher" in line]


def test_mutants_of_a_launcher_are_listed_and_shown_under_its_name(tmp_path: Path) -> None:
    folder = project(tmp_path, ENTRY, "leaky_relu")
    listed = gatecert(folder, "mutants", "list", *LAUNCHER)
    lines = listed.stdout.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("softmax/leaky_relu/") for line in lines), listed.stdout
    (buffer,) = (line.partition(" ")[0] for line in lines if "uninitialised-buffer" in line)
    shown = gatecert(folder, "show", buffer, "--out", "out").stdout
    assert "launcher:   leaky_relu of kernels_zeroed_buffer:add_leaky_kernel" in shown
    assert "+    y = torch.empty((n_rows, n_cols)" in shown
