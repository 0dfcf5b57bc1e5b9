"""Claims about the sanitizer gate: a finding is a no, a refusal of the machine never is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates.command import sanitizer
from gatecert.gates.command.elsewhere import Elsewhere, ProcessReport
from gatecert.gates.command.run import Ran
from gatecert.gates.command.sanitizer import PreparedSanitizer, command_of, verdict_of
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.gates.registry import make_gate
from gatecert.lanes.cuda import gpu
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA
from tests.gatecert.gates.command.test_sanitizer_report import (
    CLEAN,
    FAILED_CALL,
    NO_CALL,
    NOT_HERE,
    OUT_OF_BOUNDS,
)

CHECK = GateConfig("command", command=("python", "check.py"))
SANITIZER = GateConfig("sanitizer", around="check", tools=("memcheck",))
SUBJECT = Subject("softmax", "thing:softmax")
SEEN = Elsewhere((ProcessReport(7, "python"),))
TOOL = """#!{python}
import os, subprocess, sys

if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") != "1" or "TRITON_INTERPRET" in os.environ:
    sys.exit("not as it should be called")
tool, command = sys.argv[2], sys.argv[sys.argv.index({python!r}):]
print("========= COMPUTE-SANITIZER")
done = subprocess.run(command)
if tool == "memcheck" and os.path.exists("bad"):
    print("========= Invalid __global__ read of size 4 bytes")
    print("=========     at thing+0x10")
    print("========= ERROR SUMMARY: 1 error")
    sys.exit(97)
print("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
print("========= ERROR SUMMARY: 0 errors")
sys.exit(done.returncode)
"""


def said(status: int | None, output: str, seen: Elsewhere = SEEN) -> Verdict:
    """What memcheck says by a run that ended like this."""
    blank = Verdict("candidate", "sanitizer", GateOutcome.ERROR)
    return verdict_of(Ran(status, output, "", seen, 1.0, 7), "memcheck", CHECK, blank)


@pytest.mark.parametrize(
    ("status", "output", "outcome", "detail"),
    [
        (0, CLEAN, GateOutcome.ACCEPTED, ""),
        (1, CLEAN, GateOutcome.ACCEPTED, ""),
        (
            97,
            OUT_OF_BOUNDS,
            GateOutcome.REJECTED,
            "memcheck: Invalid __global__ read of size 4 bytes at row_kernel+0x1a0 and 1 more",
        ),
        (0, OUT_OF_BOUNDS, GateOutcome.REJECTED, "memcheck: Invalid __global__ read"),
        (97, NOT_HERE, GateOutcome.ERROR, "memcheck refuses to work here: Error: Device not"),
        (255, NO_CALL, GateOutcome.ERROR, "memcheck refuses to work here: Error: Target appl"),
        (97, FAILED_CALL, GateOutcome.ERROR, "memcheck counts 1 errors that are no finding"),
        (2, CLEAN, GateOutcome.ERROR, "under memcheck the command ended with status 2"),
        (0, "all tests passed", GateOutcome.ERROR, "memcheck printed no summary"),
        (-11, "", GateOutcome.CRASHED, "memcheck died of signal 11"),
        (None, "", GateOutcome.TIMEOUT, "memcheck was stopped"),
    ],
)
def test_a_run_under_a_tool_becomes_a_verdict(
    status: int | None, output: str, outcome: GateOutcome, detail: str
) -> None:
    verdict = said(status, output)
    assert verdict.outcome is outcome
    assert verdict.detail.startswith(detail)
    assert verdict.reason is (Reason.SAID_NO if outcome is GateOutcome.REJECTED else Reason.NONE)


def test_a_clean_summary_without_a_run_of_the_program_is_no_yes() -> None:
    verdict = said(0, CLEAN, Elsewhere())
    assert verdict.outcome is GateOutcome.ERROR
    assert "no Python process ran under it" in verdict.detail


def test_without_the_tool_or_a_gpu_the_environment_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = make_gate("sanitizer", SANITIZER, str(TESTDATA / "project_sanitizer"), CHECK)
    monkeypatch.setattr(sanitizer, "find_tool", lambda: None)
    with pytest.raises(EnvironmentFailure, match="no compute-sanitizer on PATH"):
        gate.prepare(SUBJECT, seed=0, quick=False)
    monkeypatch.setattr(sanitizer, "find_tool", lambda: "/bin/true")
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "")
    with pytest.raises(EnvironmentFailure, match="no GPU that CUDA can use here"):
        gate.prepare(SUBJECT, seed=0, quick=False)


@pytest.mark.parametrize(
    ("around", "says"),
    [
        ("chekc", r"around = 'chekc' is no gate of kind pytest or command; did you mean 'check'"),
        ("mine", r"around = 'mine' is no gate of kind pytest or command"),
    ],
)
def test_a_sanitizer_around_nothing_that_can_be_run_is_refused(around: str, says: str) -> None:
    from gatecert.gates.registry import check_around

    tables = {"check": CHECK, "mine": GateConfig("callable", callable="m:f")}
    with pytest.raises(UsageError, match=says):
        check_around("sanitizer", GateConfig("sanitizer", around=around), tables)


def test_the_tests_of_a_pytest_gate_are_run_by_pytest() -> None:
    command = command_of(GateConfig("pytest", ("test_x.py", "-q")))
    assert command[:5] == (sys.executable, "-m", "pytest", "test_x.py", "-q")


@pytest.mark.parametrize(
    ("bad", "outcome", "cases"),
    [(True, GateOutcome.REJECTED, 2), (False, GateOutcome.ACCEPTED, 2)],
)
def test_tools_run_one_after_the_other_around_the_command_with_its_overlay(
    tmp_path: Path, bad: bool, outcome: GateOutcome, cases: int
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(0o755)
    (tmp_path / "thing.py").write_text("BAD = False\n")
    (tmp_path / "check.py").write_text(
        "import os, thing\nif thing.BAD:\n    open('bad', 'w').close()\n"
    )
    table = GateConfig("sanitizer", around="check", tools=("racecheck", "memcheck"))
    prepared = PreparedSanitizer("sanitizer", table, CHECK, tmp_path, SUBJECT, os.fspath(tool))
    files = {str(tmp_path / "thing.py"): f"BAD = {bad}\n"}
    candidate = Candidate("candidate", CandidateKind.MUTANT, "softmax", files)
    verdict, seen = prepared.run_elsewhere(candidate, files, stop_at_first=True)
    assert verdict.outcome is outcome, verdict.detail
    assert verdict.cases == cases
    assert seen.missed == ()
