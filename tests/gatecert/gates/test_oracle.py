"""Claims about the oracle gate: wrong kernels that hide from one call of ordinary size."""

from __future__ import annotations

import pytest

from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.gates.execution import execute, unrepeatable
from gatecert.gates.oracle import OracleGate, PreparedCase, in_turns
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.cases import cases_for
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.sandbox.protocol import GateRef
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_softmaxes
from tests.gatecert.gates.asking import TESTDATA, UNRUNNABLE, Judge

DTYPES = ("float32", "float16", "bfloat16")


def say(entry: str, *dtypes: str, quick: bool = False) -> Verdict:
    """The oracle's verdict on one of the wrong softmaxes."""
    subject = Subject(entry, f"{wrong_softmaxes.__name__}:{entry}", "softmax", dtypes=dtypes)
    candidate = Candidate("candidate", CandidateKind.MUTANT, entry, {})
    return OracleGate().prepare(subject, seed=0, quick=quick).judge(candidate, stop_at_first=True)


def test_a_right_softmax_is_accepted() -> None:
    assert say("right", *DTYPES).outcome is GateOutcome.ACCEPTED


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("entry", ["short_block", "blind_to_the_end"])
def test_a_block_that_ends_at_1024_is_caught(entry: str, dtype: str) -> None:
    verdict = say(entry, dtype)
    assert verdict.outcome is GateOutcome.REJECTED
    assert "N=1025" in verdict.case


def test_a_grid_that_ends_at_the_eighth_row_is_caught() -> None:
    verdict = say("small_grid", "float32")
    assert verdict.outcome is GateOutcome.REJECTED
    assert "B=33" in verdict.case


def test_an_output_that_the_next_call_overwrites_is_not_repeatable() -> None:
    verdict = say("cached_output", "float32", quick=True)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.NOT_REPEATABLE)
    assert "shares memory" in verdict.detail


def test_an_output_that_the_next_call_changes_is_not_repeatable() -> None:
    verdict = say("clears_earlier_output", "float32", quick=True)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.NOT_REPEATABLE)
    assert verdict.detail == "the first call's output changed during a second call"


def test_a_result_that_is_kept_by_the_address_of_its_input_is_not_repeatable() -> None:
    verdict = say("kept_by_address", "float32", quick=True)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.NOT_REPEATABLE)
    assert verdict.detail.startswith("a call on the same tensors with other values")


def test_a_result_that_is_kept_until_its_input_is_written_to_is_right() -> None:
    assert say("kept_by_address_and_version", *DTYPES).outcome is GateOutcome.ACCEPTED


def test_outputs_without_elements_share_no_memory() -> None:
    inputs = make_inputs(
        get_operation("softmax"), cases_for(get_operation("softmax"), dtypes=DTYPES)[0]
    )
    first, second = (
        execute(lambda x: wrong_softmaxes.right(x)[:0], inputs, GuardPolicy.STRICT)
        for _ in range(2)
    )
    assert unrepeatable(first, second) is None


def test_a_program_that_reads_what_the_one_before_it_wrote_is_caught(judge: Judge) -> None:
    verdict = judge("oracle", module="kernels_race")
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.detail.startswith(("with programs interleaved: ", "with programs reversed: "))


def test_a_loop_that_ends_at_what_was_read_out_of_bounds_is_stopped_and_rejected(
    judge: Judge,
) -> None:
    verdict = judge("oracle", module="kernels_loop_to_poison")
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.BOUNDS)
    assert "load_out_of_bounds" in verdict.detail


def test_a_kernel_that_is_wrong_in_one_configuration_only_is_caught(judge: Judge) -> None:
    verdict = judge("oracle", module="kernels_wrong_in_one_config")
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.VALUES)
    assert verdict.cases > 0


@pytest.mark.parametrize("strategy", ["nan_injected", "adversarial"])
@pytest.mark.parametrize("name", ["geglu", "swiglu"])
def test_a_right_gated_activation_passes_where_values_are_not_finite(
    judge: Judge, name: str, strategy: str
) -> None:
    (subject,) = (one for one in load_config(CORPUS_CONFIG).subjects if one.name == name)
    original = Candidate("original", CandidateKind.ORIGINAL, name, {})
    verdict = judge.ask(subject, original, GateRef(f"oracle:{strategy}", ""))
    assert verdict.outcome is GateOutcome.ACCEPTED, verdict.detail
    assert verdict.cases > 1


@pytest.mark.parametrize("configs", [2, 3, 24, 100])
def test_every_configuration_has_its_turn(configs: int) -> None:
    operation = get_operation("softmax")
    cases = [
        PreparedCase(case, inputs=None, expected=None)  # type: ignore[arg-type]
        for case in cases_for(operation, dtypes=("float32",), strategy="quick")
    ]
    turns = [case.tuning for case in in_turns(cases, configs)]
    assert set(turns) == set(range(configs))
    assert len(turns) == max(len(cases), configs)


def test_a_right_kernel_cannot_tell_the_order_of_its_programs(judge: Judge) -> None:
    assert judge("oracle").outcome is GateOutcome.ACCEPTED


def test_a_kernel_that_the_lane_cannot_run_gets_no_verdict(judge: Judge) -> None:
    verdict = judge("oracle", files=UNRUNNABLE)
    assert verdict.outcome is GateOutcome.ERROR
    assert "no_such_function" in verdict.detail


@pytest.mark.parametrize("gate", ["oracle", "kernelbench"])
@pytest.mark.parametrize("mutant", [False, True])
def test_a_launcher_that_falls_back_when_the_lane_fails_gets_no_verdict(
    judge: Judge, gate: str, mutant: bool
) -> None:
    if mutant:
        text = (TESTDATA / "kernels_fall_back.py").read_text()
        verdict = judge(gate, files={"kernels_softmax.py": text})
    else:
        verdict = judge(gate, module="kernels_fall_back")
    assert verdict.outcome is GateOutcome.ERROR
    assert "inline assembly cannot run" in verdict.detail
