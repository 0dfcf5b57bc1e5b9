"""Claims about projects as teams lay them out: packages, own operations, edits between runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import ExitCode
from tests.e2e.commands import ROOT, gatecert, project

TESTDATA = ROOT / "tests" / "testdata"

REFERENCES = """
import torch
from gatecert import Tensor, operation

@operation(reduces="N")
def row_softmax(x: Tensor["B N"]) -> Tensor["B N"]:
    return torch.softmax(x, dim=-1)
"""

CONFIG = """
[subject.softmax]
operation = "acme.references:row_softmax"
entry = "acme:softmax"

[gate.tests]
kind = "pytest"
args = ["test_softmax.py"]
"""

TESTS = """
import torch
from acme.kernels import softmax

def test_softmax():
    x = torch.linspace(-2, 2, 21).reshape(3, 7)
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=-1))
"""


def certificate(folder: Path) -> dict[str, Any]:
    """What the last run in the folder certified, whole or of some operators."""
    paths = (folder / "out").glob("certificate*.json")
    last = max(paths, key=lambda path: path.stat().st_mtime_ns)
    found: dict[str, Any] = json.loads(last.read_text())
    return found


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A package that re-exports its kernel, with an operation and a test suite of its own."""
    package = tmp_path / "acme"
    package.mkdir()
    (package / "__init__.py").write_text("from acme.kernels import softmax\n")
    (package / "kernels.py").write_text((TESTDATA / "kernels_softmax.py").read_text())
    (package / "references.py").write_text(REFERENCES)
    (tmp_path / "test_softmax.py").write_text(TESTS)
    (tmp_path / "gatecert.toml").write_text(CONFIG)
    return tmp_path


def test_a_package_with_an_operation_of_its_own_is_certified(acme: Path) -> None:
    before = {path: path.read_bytes() for path in acme.rglob("*") if path.is_file()}
    part = ("--quick", "--operator", "wrong-pad-value", "--jobs", "1")
    done = gatecert(acme, "certify", "--gate", "tests", *part, "--out", "out")
    assert done.returncode == ExitCode.MET, done.stderr
    found = certificate(acme)
    assert found["gate"] == "tests"
    adversaries = found["adversaries"]
    assert adversaries["total"] >= 9
    assert adversaries["accepted"] == adversaries["inconclusive"] == 0
    (oracle,) = found["beside"]
    assert oracle["kill_rate"]["value"] == 1.0
    after = {
        path: path.read_bytes()
        for path in acme.rglob("*")
        if path.is_file() and acme / "out" not in path.parents
    }
    assert after == before


def test_an_edited_kernel_is_never_judged_by_old_verdicts(acme: Path) -> None:
    operator = ("--operator", "drop-store-mask", "--jobs", "1")
    command = ("certify", "--gate", "oracle", "--quick", *operator)
    assert gatecert(acme, *command, "--out", "out").returncode == ExitCode.MET
    kernels = acme / "acme" / "kernels.py"
    kernels.write_text(kernels.read_text().replace("y = x / tl.sum", "y = 2 * x / tl.sum"))
    done = gatecert(acme, *command, "--out", "out")
    assert done.returncode == ExitCode.CONTROL_REJECTED
    found = certificate(acme)["controls"]
    assert found["rejected"] == found["runs"]


def test_a_suite_that_runs_the_kernel_in_a_subprocess_is_no_verdict(acme: Path) -> None:
    (acme / "test_softmax.py").write_text(
        "import subprocess, sys\nfrom acme.kernels import softmax\n\n"
        "def test_softmax():\n"
        "    subprocess.run([sys.executable, '-c', 'import acme'], check=True)\n"
    )
    # Every candidate costs a process that imports torch: no control and no adversary is needed.
    only = ("--no-oracle", "--only", "*/drop-store-mask/*", "--jobs", "1")
    done = gatecert(acme, "certify", "--gate", "tests", *only, "--out", "out")
    assert done.returncode == ExitCode.NOTHING_SCORED
    found = certificate(acme)
    assert found["mutants"]["survived"] == 0
    assert "subprocess" in found["inconclusive"][0]["why"]


def test_a_branch_that_only_another_layout_takes_is_not_called_equivalent(tmp_path: Path) -> None:
    layouts = 'layouts = ["contiguous", "transposed"]\n'
    folder = project(tmp_path, "kernels_fixed_block:leaky_relu", "leaky_relu", more=layouts)
    operator = ("--operator", "drop-load-mask", "--jobs", "1")
    done = gatecert(folder, "certify", *operator, "--out", "out")
    assert done.returncode == ExitCode.MET, done.stderr
    found = certificate(folder)
    assert found["mutants"]["equivalent"] == 0
    assert found["mutants"]["killed"] == 2
