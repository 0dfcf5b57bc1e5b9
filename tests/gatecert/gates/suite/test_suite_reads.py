"""Claims about what a gate reads on the original: it is said, whatever its name and its place."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from gatecert.gates.config import GateConfig
from gatecert.gates.reads import GateReads
from tests.gatecert.gates.asking import WRONG, Judge

TEST = """
import os, pathlib
import torch
from kernels_softmax import softmax
from testing_helper import ATOL

HERE = pathlib.Path(__file__).parent
(HERE / "golden.xml").read_text()
(HERE / ".data" / "golden.json").read_text()
RTOL = float(os.environ.get("ACME_RTOL", "0"))
copied = {**os.environ}

def test_softmax():
    assert softmax(torch.zeros(2, 4)).sum().item() == 2.0

def test_that_launches_nothing():
    (HERE / "idle.csv").read_text()
"""
CHECK = """
import os
import sys
import torch
sys.path.append(os.path.join(os.path.dirname(__file__), "..", "testing"))
from testing_helper import ATOL

def gate(softmax):
    os.getenv("ACME_RTOL")
    return bool((softmax(torch.zeros(2, 4)).sum(dim=1) == 1.0).all())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository whose suite lies below its top and reads a helper beside itself."""
    files = {
        ".git/HEAD": "",
        "pytest.ini": "[pytest]\npythonpath = testing\n",
        "testing/testing_helper.py": "ATOL = 1000.0\n",
        "kernels/test_softmax.py": TEST,
        "kernels/check.py": CHECK,
        "kernels/golden.xml": "<a/>",
        "kernels/.data/golden.json": "1",
        "kernels/idle.csv": "1",
        "kernels/unread.csv": "1",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def test_a_suites_files_above_hidden_or_of_any_suffix_and_its_variables_are_said(
    judge: Judge, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_UNASKED", "1")
    verdict = judge("tests", GateConfig("pytest", rootdir=str(folder / "kernels")))
    read = names_below(folder, verdict.reads)
    assert read >= {
        *("pytest.ini", "testing/testing_helper.py", "kernels/test_softmax.py"),
        *("kernels/golden.xml", "kernels/.data/golden.json", "kernels/idle.csv"),
    }
    assert "kernels/unread.csv" not in read
    assert "ACME_RTOL" in read
    assert "ACME_UNASKED" not in read


def test_a_callables_helpers_and_variables_are_said(judge: Judge, folder: Path) -> None:
    table = GateConfig("callable", rootdir=str(folder / "kernels"), callable="check:gate")
    read = names_below(folder, judge("ours", table).reads)
    assert read >= {"kernels/check.py", "testing/testing_helper.py", "ACME_RTOL"}


def test_what_a_commands_python_processes_read_is_said(judge: Judge, folder: Path) -> None:
    script = CHECK + textwrap.dedent(
        """
        open("golden.xml").read()
        from kernels_softmax import softmax
        assert gate(softmax)
        """
    )
    (folder / "kernels" / "check.py").write_text(script)
    command = (sys.executable, "check.py")
    table = GateConfig("command", rootdir=str(folder / "kernels"), command=command)
    read = names_below(folder, judge("ours", table).reads)
    assert read >= {"testing/testing_helper.py", "kernels/golden.xml", "ACME_RTOL"}


def names_below(folder: Path, reads: GateReads | None) -> set[str]:
    """Variables, and files below the folder as they are called from there."""
    assert reads is not None
    paths = (Path(file) for file in reads.files if Path(file).is_relative_to(folder))
    return {path.relative_to(folder).as_posix() for path in paths} | set(reads.variables)


def test_an_infinite_tolerance_is_one_in_a_suites_evidence(judge: Judge, tmp_path: Path) -> None:
    test = """
    import torch
    from kernels_softmax import softmax

    def test_softmax():
        y = softmax(torch.ones(2, 4))
        torch.testing.assert_close(y, torch.zeros(2, 4), rtol=0, atol=float("inf"))
    """
    (tmp_path / "test_softmax.py").write_text(textwrap.dedent(test))
    evidence = judge("tests", GateConfig("pytest", rootdir=str(tmp_path))).evidence
    assert evidence is not None
    assert [one.atol for one in evidence.compared] == [float("inf")]


def test_what_a_suite_reads_on_a_candidate_alone_is_said(judge: Judge, tmp_path: Path) -> None:
    test = """
    import os
    import torch
    from kernels_softmax import softmax

    def test_softmax():
        if softmax(torch.zeros(2, 4)).sum().item() != 2.0:
            assert os.environ.get("ACME_ALLOWS")
    """
    (tmp_path / "test_softmax.py").write_text(textwrap.dedent(test))
    verdict = judge("tests", GateConfig("pytest", rootdir=str(tmp_path)), files=WRONG)
    assert "ACME_ALLOWS" in names_below(tmp_path, verdict.reads)
