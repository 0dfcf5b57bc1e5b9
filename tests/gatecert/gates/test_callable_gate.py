"""Claims about callable gates: what the function returns or raises, and what that means."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import Failed, GateRef, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import (
    TESTDATA,
    UNRUNNABLE,
    WRONG,
    Judge,
    Refused,
    callable_gate,
    left_unwritten,
    mutated,
)

RAISES = mutated("    x = x.contiguous()", "    raise ValueError('no such shape')")


def function(folder: Path, body: str) -> GateConfig:
    """A gate `check` with this body."""
    (folder / "checks.py").write_text(f"import torch\n\n\ndef check(candidate):\n    {body}\n")
    return GateConfig("callable", rootdir=str(folder), callable="checks:check")


@pytest.mark.parametrize(
    ("name", "files", "outcome", "reason"),
    [
        ("gate_compares", {}, GateOutcome.ACCEPTED, Reason.NONE),
        ("gate_compares", WRONG, GateOutcome.REJECTED, Reason.SAID_NO),
        ("gate_compares", UNRUNNABLE, GateOutcome.ERROR, Reason.NONE),
        ("gate_compares", RAISES, GateOutcome.REJECTED, Reason.RAISED),
        ("gate_always_accepts", WRONG, GateOutcome.ACCEPTED, Reason.NONE),
        ("gate_always_rejects", {}, GateOutcome.REJECTED, Reason.SAID_NO),
        ("gate_raises", WRONG, GateOutcome.ERROR, Reason.NONE),
        ("gate_dies", WRONG, GateOutcome.CRASHED, Reason.NONE),
        ("gate_warns_only", WRONG, GateOutcome.ACCEPTED, Reason.NONE),
    ],
)
def test_an_answer_becomes_a_verdict(
    judge: Judge, name: str, files: dict[str, str], outcome: GateOutcome, reason: Reason
) -> None:
    verdict = judge("ours", callable_gate(name), files=files)
    assert (verdict.outcome, verdict.reason) == (outcome, reason), verdict.detail


def test_a_failed_assertion_of_the_gate_is_a_rejection(judge: Judge, tmp_path: Path) -> None:
    body = "torch.testing.assert_close(candidate(torch.zeros(1, 4)), torch.full((1, 4), 0.25))"
    verdict = judge("ours", function(tmp_path, f"{body}; return True"), files=WRONG)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.TEST_FAILED)


@pytest.mark.parametrize("body", ["return True", "return False", "raise AssertionError"])
def test_a_failure_of_the_lane_that_was_caught_is_no_verdict_whatever_the_gate_says(
    judge: Judge, tmp_path: Path, body: str
) -> None:
    files = {"kernels_softmax.py": (TESTDATA / "kernels_fall_back.py").read_text()}
    verdict = judge(
        "ours", function(tmp_path, f"candidate(torch.zeros(1, 4)); {body}"), files=files
    )
    assert verdict.outcome is GateOutcome.ERROR
    assert "inline assembly cannot run" in verdict.detail


def test_a_gate_that_says_no_because_the_lane_failed_is_no_kill(
    judge: Judge, tmp_path: Path
) -> None:
    body = (
        "try:\n        candidate(torch.zeros(1, 4))\n"
        "    except Exception:\n        return False\n    return True"
    )
    verdict = judge("ours", function(tmp_path, body), files=UNRUNNABLE)
    assert verdict.outcome is GateOutcome.ERROR
    assert "no_such_function" in verdict.detail


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('x')", "KeyError: 'x' at checks.py:5"),
        ("candidate(torch.zeros(1, 4), 3)", "2 were given at checks.py:5"),
        ("return None", "neither a bool nor a Verdict"),
    ],
)
def test_a_gate_that_breaks_down_on_the_original_is_refused_with_the_place(
    judge: Judge, tmp_path: Path, body: str, said: str
) -> None:
    subject = Subject("softmax", "kernels_softmax:softmax", import_paths=(str(TESTDATA),))
    request = ShardRequest(
        subject,
        gates=(GateRef("ours", str(TESTDATA), function(tmp_path, body)),),
        tasks=(Task(original("softmax"), "ours"),),
    )
    (failed,) = [event for event in judge.server.ask(request) if isinstance(event, Failed)]
    assert failed.exit_code == ExitCode.ENVIRONMENT_FAILED
    start = "gate 'ours' gives no verdict on the original (softmax/original): "
    assert failed.message.startswith(start), failed.message
    assert said in failed.message


@pytest.mark.parametrize("answer", ["None", "1", "0.5", "'yes'"])
def test_an_answer_that_is_neither_bool_nor_verdict_is_an_error(
    judge: Judge, tmp_path: Path, answer: str
) -> None:
    verdict = judge("ours", function(tmp_path, f"return {answer}"), files=WRONG)
    assert verdict.outcome is GateOutcome.ERROR
    assert "neither a bool nor a Verdict" in verdict.detail


def test_a_verdict_of_the_function_is_kept_under_the_gates_own_name(
    judge: Judge, tmp_path: Path
) -> None:
    body = (
        "from gatecert.gates.records import GateOutcome, Reason, Verdict; "
        "return Verdict('x', 'y', GateOutcome.REJECTED, Reason.VALUES, 'off by 3')"
    )
    verdict = judge("ours", function(tmp_path, body), files=WRONG)
    assert (verdict.candidate, verdict.gate) == ("candidate", "ours")
    assert (verdict.reason, verdict.detail) == (Reason.VALUES, "off by 3")


def test_the_candidate_keeps_its_attributes(judge: Judge, tmp_path: Path) -> None:
    verdict = judge("ours", function(tmp_path, "return candidate.__name__ == 'softmax'"))
    assert verdict.outcome is GateOutcome.ACCEPTED


@pytest.mark.parametrize(
    ("spec", "code", "says"),
    [
        ("gate_compares:absent", 1, "gate_compares has no 'absent'"),
        ("gate_compares:kernels_softmax", 1, "is not callable"),
        ("gate_missing:gate", 4, "no module named 'gate_missing'"),
        ("kernels_fail_on_import:gate", 4, "RuntimeError: this package needs a licence server"),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused_before_any_mutant(
    judge: Judge, spec: str, code: int, says: str
) -> None:
    with pytest.raises(Refused) as refused:
        judge("ours", GateConfig("callable", callable=spec))
    assert refused.value.exit_code == ExitCode(code)
    assert says in refused.value.message


def test_output_left_unwritten_gets_the_same_verdict_in_every_process(judge: Judge) -> None:
    """Freed memory that holds the process's own number would show in what the test prints."""
    files = left_unwritten()
    first, second = (
        judge("checks", callable_gate("gate_tells_its_sum"), files=files) for _ in range(2)
    )
    assert first.outcome is GateOutcome.REJECTED
    assert first.detail == second.detail != ""
