"""Claims about command gates: only a declared no of a command that ran the candidate is a kill."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gatecert.errors import ExitCode, UsageError
from gatecert.gates.command.elsewhere import Elsewhere, ProcessReport
from gatecert.gates.command.gate import last_json, verdict_of
from gatecert.gates.command.run import Ran
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.gates.registry import make_gate
from gatecert.sandbox.protocol import GateRef, Probed, ProbeRequest
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA, UNRUNNABLE, WRONG, Judge, Refused

BROKEN = ProcessReport(7, "python", uncaught="ImportError: no driver", no_verdict=True)
WORKED = ProcessReport(7, "python", uncaught="ValueError: not a softmax")
FAULTED = ProcessReport(7, "python", uncaught="RuntimeError: CUDA error: x\nmore", faulted=True)
FELL_BACK = ProcessReport(7, "python", failures=("LaneRefusal: inline assembly",))


def script(name: str, **more: object) -> GateConfig:
    """A gate of the test data as a command."""
    command = ("python", "run_gate.py", name)
    return GateConfig("command", command=command, **more)  # type: ignore[arg-type]


def ran(status: int | None, stdout: str = "", stderr: str = "", *reports: ProcessReport) -> Ran:
    """A run that ended like this."""
    return Ran(status, stdout, stderr, Elsewhere(reports), 1.0, 7)


def said(end: Ran, **more: object) -> Verdict:
    """What the gate says of it."""
    blank = Verdict("candidate", "script", GateOutcome.ERROR)
    return verdict_of(end, script("gate_compares", **more), blank)


@pytest.mark.parametrize(
    ("end", "outcome", "detail"),
    [
        (ran(0), GateOutcome.ACCEPTED, "exit status 0"),
        (ran(1, "1 failed in 0.52s"), GateOutcome.REJECTED, "exit status 1: 1 failed"),
        (ran(1, "out", "  bad row  \n\n"), GateOutcome.REJECTED, "exit status 1: bad row"),
        (ran(1), GateOutcome.REJECTED, "exit status 1: it printed nothing"),
        (
            ran(2, "usage"),
            GateOutcome.ERROR,
            "exit status 2 is in neither accept nor reject: usage",
        ),
        (ran(-11), GateOutcome.CRASHED, "died of signal 11"),
        (ran(None), GateOutcome.TIMEOUT, "stopped after timeout_s = 5"),
        (ran(1, "", "", WORKED), GateOutcome.REJECTED, "exit status 1: it printed nothing"),
        (
            ran(1, "", "Error", BROKEN),
            GateOutcome.ERROR,
            "exit status 1: Error: ImportError: no driver",
        ),
        (
            ran(1, "", "Error", FAULTED),
            GateOutcome.CRASHED,
            "exit status 1: RuntimeError: CUDA error: x",
        ),
        (ran(0, "", "", FELL_BACK), GateOutcome.ERROR, "LaneRefusal: inline assembly"),
        (ran(1, "", "", FELL_BACK), GateOutcome.ERROR, "LaneRefusal: inline assembly"),
    ],
)
def test_an_exit_status_becomes_a_verdict(end: Ran, outcome: GateOutcome, detail: str) -> None:
    verdict = said(end, timeout_s=5.0)
    assert (verdict.outcome, verdict.detail) == (outcome, detail)
    assert verdict.reason is (Reason.SAID_NO if outcome is GateOutcome.REJECTED else Reason.NONE)


def test_declared_statuses_replace_the_usual_ones() -> None:
    declared = {"accept": (0, 3), "reject": (4,)}
    outcomes = [said(ran(status), **declared).outcome for status in (0, 3, 4, 1)]
    yes = GateOutcome.ACCEPTED
    assert outcomes == [yes, yes, GateOutcome.REJECTED, GateOutcome.ERROR]


@pytest.mark.parametrize(
    ("stdout", "outcome", "detail"),
    [
        ('{"verdict": "accept"}\n', GateOutcome.ACCEPTED, ""),
        ('{"verdict": "accept"}\n{"verdict": "reject", "detail": "off"}\n[1]\nbye', None, "off"),
        ('{"verdict": "maybe"}', GateOutcome.ERROR, "no line of JSON with a verdict"),
        ("", GateOutcome.ERROR, "no line of JSON with a verdict on stdout (exit status 1)"),
    ],
)
def test_the_last_line_of_json_decides_whatever_the_exit_status(
    stdout: str, outcome: GateOutcome | None, detail: str
) -> None:
    verdict = said(ran(1, stdout), verdict="json")
    assert verdict.outcome is (outcome or GateOutcome.REJECTED)
    assert verdict.detail.startswith(detail)


def test_a_line_of_json_without_a_verdict_is_passed_over() -> None:
    found = last_json('{"verdict": "reject", "detail": null}\n{"seconds": 3}\n{half a line')
    assert found is not None
    assert (found.verdict, found.detail) == ("reject", None)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"command": ("no-such-program",)}, r"no command 'no-such-program' on PATH$"),
        ({"command": ("pytest.ini",)}, r"no command 'pytest.ini' on PATH; write './pytest.ini'"),
        ({"command": ("./absent.sh",)}, r"there is no file .*testdata/absent.sh to run"),
        ({"command": ("./pytest.ini",)}, r"pytest.ini is not executable; run `chmod \+x"),
        ({"command": ("python",), "rootdir": "absent"}, r"rootdir .*absent is not a folder"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_before_anything_runs(
    config: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        make_gate("script", GateConfig("command", **config), str(TESTDATA))  # type: ignore[arg-type]


def test_a_wrong_kernel_is_rejected_with_proof_that_it_was_launched(judge: Judge) -> None:
    verdict = judge("script", script("gate_compares"), files=WRONG)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.SAID_NO)
    assert verdict.loaded
    assert verdict.launches == 1
    assert verdict.kernels == ("kernels_softmax:softmax_kernel",)


def test_an_error_of_the_interpreter_is_never_a_kill(judge: Judge) -> None:
    verdict = judge("script", script("gate_compares"), files=UNRUNNABLE)
    assert verdict.outcome is GateOutcome.ERROR
    assert "no_such_function" in verdict.detail


def test_guards_report_and_do_not_decide(judge: Judge) -> None:
    text = (TESTDATA / "kernels_out_of_bounds.py").read_text()
    verdict = judge("script", script("gate_compares"), files={"kernels_softmax.py": text})
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert [finding.argument for finding in verdict.findings] == ["y_ptr"]


def test_a_worker_of_a_pool_below_a_shell_sees_the_overlay(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(
        "import multiprocessing, sys\n\n\n"
        "def work(number):\n"
        "    from gate_compares import gate\n"
        "    from kernels_softmax import softmax\n"
        "    return gate(softmax)\n\n\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        sys.exit(0 if all(pool.map(work, [1])) else 4)\n"
    )
    (tmp_path / "check.sh").write_text(f"#!/bin/sh\n{sys.executable} check.py || exit 5\n")
    (tmp_path / "check.sh").chmod(0o755)
    gate = GateConfig("command", rootdir=str(tmp_path), command=("./check.sh",), reject=(5,))
    verdict = judge("script", gate, files=WRONG)
    assert (verdict.outcome, verdict.detail) == (
        GateOutcome.REJECTED,
        "exit status 5: it printed nothing",
    )
    assert verdict.loaded
    assert verdict.launches == 1


def test_kernels_that_the_entry_does_not_launch_are_not_the_subjects(
    judge: Judge, tmp_path: Path
) -> None:
    softmax = (TESTDATA / "kernels_softmax.py").read_text()
    (tmp_path / "mine.py").write_text(softmax)
    (tmp_path / "theirs.py").write_text(softmax.replace("softmax_kernel", "other_kernel"))
    (tmp_path / "check.py").write_text(
        "import mine, theirs, torch\n\n"
        "x = torch.randn(2, 5)\n"
        "assert torch.allclose(mine.softmax(x), theirs.softmax(x))\n"
    )
    subject = Subject("softmax", "mine:softmax", import_paths=(str(tmp_path),))
    gate = GateConfig("command", command=("python", "check.py"))
    (probed,) = judge.server.ask(ProbeRequest(subject, GateRef("script", str(tmp_path), gate)))
    assert isinstance(probed, Probed), probed
    assert {launch.kernel for launch in probed.launches} == {"mine:softmax_kernel"}


def test_a_command_that_does_not_accept_the_original_is_refused(judge: Judge) -> None:
    with pytest.raises(Refused) as refused:
        judge("script", script("gate_always_rejects"))
    assert refused.value.exit_code is ExitCode.CONTROL_REJECTED
    assert refused.value.message.startswith("gate 'script' rejects the original: exit status 1")


def test_a_command_that_breaks_down_on_the_original_is_refused(judge: Judge) -> None:
    with pytest.raises(Refused) as refused:
        judge("script", GateConfig("command", command=("python", "absent.py")))
    assert refused.value.exit_code is ExitCode.ENVIRONMENT_FAILED
    assert "exit status 2 is in neither accept nor reject" in refused.value.message
    assert f"{TESTDATA}/absent.py" in refused.value.message
