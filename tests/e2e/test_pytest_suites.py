"""Claims about a team's suite through the command line: what is said, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, gatecert, project

KERNEL = (ROOT / "tests" / "testdata" / "kernels_softmax.py").read_text()
GATE = '[gate.tests]\nkind = "pytest"\nargs = ["test_softmax.py"]\n'
SOUND = """
import pathlib
import pytest
import torch
from kernels_softmax import softmax

def test_softmax():
    x = torch.linspace(-2, 2, 21).reshape(3, 7)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
"""


def certify(folder: Path, tests: str, *more: str, gate: str = GATE) -> tuple[int, str, Path]:
    """Exit code, stderr and certificate of a small run on a suite."""
    project(folder, "kernels_softmax:softmax", more=gate)
    (folder / "test_softmax.py").write_text(tests)
    command = ("certify", "--gate", "tests", "--no-oracle", "--operator", "wrong-pad-value")
    done = gatecert(folder, *command, "--jobs", "1", *more, "--out", "out")
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr, folder / "out"


def certificate(out: Path) -> dict[str, Any]:
    """The one that is there."""
    (path,) = out.glob("certificate*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_flaky_tests_are_listed_as_not_tested_also_from_the_store(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("")
    flaky = f"""
def test_every_other_run():
    count = pathlib.Path({str(count)!r})
    count.write_text(count.read_text() + "x")
    softmax(torch.zeros(1, 4))
    assert len(count.read_text()) != 2
"""
    first = ""
    for _ in range(2):
        code, said, out = certify(tmp_path / "project", SOUND + flaky)
        assert code == ExitCode.MET, said
        first = first or said
        (path,) = out.glob("certificate*.json")
        notes = [line for line in certificate(out)["not_tested"] if "set aside" in line]
        assert notes == [
            "tests: test_softmax.py::test_every_other_run set aside: passed 2 of 3 runs on the "
            "original (1 failed)"
        ]
        path.unlink()
    assert "test_softmax.py::test_every_other_run set aside: passed 2 of 3" in first
    assert "verdicts were in the store already" in said
    assert said.count("set aside") == 0
    runs = len(count.read_text())
    assert runs == 3, "a second run has nothing to measure again"


def test_a_wrong_test_path_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    gate = GATE.replace("test_softmax.py", "test_sofmax.py")
    code, said, out = certify(tmp_path, SOUND, gate=gate)
    assert code == ExitCode.USAGE
    assert "args name 'test_sofmax.py'" in said
    assert "did you mean test_softmax.py?" in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("tests", "says"),
    [
        (
            SOUND.replace("def test", "@pytest.mark.skip(reason='needs a GPU')\ndef test"),
            "no test of `pytest test_softmax.py`",
        ),
        (
            "import pytest\npytest.skip('needs a GPU', allow_module_level=True)\n",
            "1 skipped, the first because 'needs a GPU'",
        ),
    ],
    ids=["test", "module"],
)
def test_a_suite_that_skips_everything_scores_nothing_and_says_why(
    tmp_path: Path, tests: str, says: str
) -> None:
    code, said, _ = certify(tmp_path, tests)
    assert code == ExitCode.NOTHING_SCORED
    assert says in said
    assert "needs a GPU" in said


def test_a_suite_that_launches_nothing_scores_nothing_and_says_why(tmp_path: Path) -> None:
    code, said, out = certify(tmp_path, "def test_it():\n    assert True\n")
    assert code == ExitCode.NOTHING_SCORED
    assert "the gate launches no Triton kernel" in said
    found = certificate(out)
    assert found["mutants"]["survived"] == 0
    assert found["controls"]["failed"] == found["controls"]["rejected"] == 0


def test_mutants_of_a_kernel_that_no_test_launches_survive_unreached(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "others.py").write_text(KERNEL)
    tests = SOUND.replace("from kernels_softmax", "from others")
    code, said, out = certify(folder, tests)
    assert code == ExitCode.MET, said
    found = certificate(out)
    assert found["mutants"]["survived"] > 0
    assert {one["reason"] for one in found["survivors"]} == {"unreached"}
    results = [by_gate["tests"] for by_gate in found["results"].values()]
    details = {one.get("detail", "") for one in results if one["status"] == "survived"}
    assert details == {"no test launches kernels_softmax:softmax_kernel"}


def test_one_and_two_jobs_give_the_same_verdicts(tmp_path: Path) -> None:
    def results(folder: Path, *more: str) -> dict[str, Any]:
        code, said, out = certify(folder, SOUND, *more)
        assert code == ExitCode.MET, said
        found: dict[str, Any] = certificate(out)["results"]
        return found

    one = results(tmp_path / "one", "--jobs", "1")
    assert one == results(tmp_path / "two", "--jobs", "2")
