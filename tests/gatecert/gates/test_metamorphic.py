"""Claims about the gate that needs no reference."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates import metamorphic
from gatecert.gates.metamorphic import MetamorphicGate
from gatecert.gates.oracle import OracleGate
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.operations import get_operation
from gatecert.oracle.relations import NO_RELATIONS, Relations
from gatecert.oracle.schema import operation, tensor
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_kernels, wrong_sums
from tests.gatecert.gates.asking import WRONG, Judge, mutated

DTYPES = ("float32", "float16", "bfloat16")


def scaled(x, y):  # type: ignore[no-untyped-def]
    """Sum of two tensors: a reference that is wrong."""
    return x.abs() + y


scaled.__annotations__ = {name: tensor("B N") for name in ("x", "y", "return")}
wrong_reference = operation(relations=Relations(symmetric="B N", shifted=()))(scaled)
says_nothing = replace(wrong_reference, relations=NO_RELATIONS)


def say(entry: str, kind: CandidateKind = CandidateKind.MUTANT, quick: bool = False) -> Verdict:
    name = next(n for n in ("row_moments", "log_softmax", "softmax", "matmul", "argmax", "rms_norm")
                if entry.startswith(n))  # fmt: skip
    home = wrong_sums if hasattr(wrong_sums, entry) else wrong_kernels
    subject = Subject("s", f"{home.__name__}:{entry}", name, DTYPES)
    prepared = MetamorphicGate().prepare(subject, seed=0, quick=quick)
    return prepared.judge(Candidate(entry, kind, "s", {}), stop_at_first=True)


@pytest.mark.parametrize(
    "entry", ["softmax", "log_softmax", "matmul", "row_moments", "argmax", "rms_norm"]
)
def test_a_right_kernel_is_accepted_with_room_to_spare(entry: str) -> None:
    verdict = say(entry, CandidateKind.ORIGINAL)
    assert verdict.outcome is GateOutcome.ACCEPTED, verdict
    assert verdict.margin < 0.7
    assert verdict.cases > 10


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("softmax_without_maximum", "shift ("),
        ("softmax_tail_of_zeros", ""),
        ("softmax_one_wrong_row", "symmetry (indices of B"),
        ("softmax_one_wrong_element", "symmetry ("),
        ("matmul_of_magnitudes", "additivity ("),
        ("matmul_last_sum", "symmetry (indices of K"),
        ("matmul_whole_tiles_only", ""),
        ("softmax_of_zeros", "output is 0 everywhere, in every case"),
    ],
)
def test_a_wrong_kernel_breaks_a_relation(entry: str, says: str) -> None:
    verdict = say(entry)
    assert verdict.outcome is GateOutcome.REJECTED, verdict
    assert verdict.reason in (Reason.VALUES, Reason.NONFINITE)
    assert verdict.detail.startswith(says)


def test_an_output_that_nobody_wrote_is_rejected_though_it_is_the_same_everywhere() -> None:
    verdict = say("softmax_unwritten")
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.NONFINITE)


@pytest.mark.parametrize(
    ("entry", "kind", "outcome", "reason"),
    [
        ("softmax_raises", CandidateKind.MUTANT, GateOutcome.REJECTED, Reason.RAISED),
        ("softmax_raises", CandidateKind.ORIGINAL, GateOutcome.ERROR, Reason.NONE),
        ("softmax_out_of_memory", CandidateKind.MUTANT, GateOutcome.ERROR, Reason.NONE),
        ("softmax_flat", CandidateKind.MUTANT, GateOutcome.REJECTED, Reason.CONTRACT),
    ],
)
def test_failures_are_told_apart_as_the_oracle_tells_them(
    entry: str, kind: CandidateKind, outcome: GateOutcome, reason: Reason
) -> None:
    verdict = say(entry, kind)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)


def test_a_constant_that_scales_everything_is_not_seen_by_relations_but_by_a_reference() -> None:
    assert say("rms_norm_a_sixth_too_large").outcome is GateOutcome.ACCEPTED
    subject = Subject("s", f"{wrong_sums.__name__}:rms_norm_a_sixth_too_large", "rms_norm")
    candidate = Candidate("c", CandidateKind.MUTANT, "s", {})
    prepared = OracleGate().prepare(subject, seed=0, quick=True)
    assert prepared.judge(candidate, stop_at_first=True).outcome is GateOutcome.REJECTED


def test_a_kernel_is_judged_where_the_reference_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def softmax_of_magnitudes(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.abs(), dim=1)

    wrong = replace(get_operation("softmax"), reference=softmax_of_magnitudes)
    monkeypatch.setattr(metamorphic, "resolve_operation", lambda spec: wrong)
    assert say("softmax", CandidateKind.ORIGINAL).outcome is GateOutcome.ACCEPTED
    assert say("softmax_one_wrong_row").outcome is GateOutcome.REJECTED


def test_the_oracle_refuses_a_reference_that_breaks_a_relation_before_it_judges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = replace(
        get_operation("softmax"), reference=lambda x: torch.softmax(x.abs(), dim=1), second=None
    )
    monkeypatch.setattr("gatecert.gates.oracle.gate.resolve_operation", lambda spec: wrong)
    subject = Subject("s", f"{wrong_kernels.__name__}:softmax", "softmax")
    with pytest.raises(EnvironmentFailure, match=r"its reference breaks a relation .*: padding \("):
        OracleGate().prepare(subject, seed=0, quick=True)


def test_it_applies_where_relations_are_declared() -> None:
    gate = MetamorphicGate()
    assert gate.applies_to(Subject("s", "m:f", "softmax")) is None
    assert gate.applies_to(Subject("s", "m:f")) == "it has no operation, so no relation is declared"
    subject = Subject("s", "m:f", f"{__name__}:says_nothing")
    assert gate.applies_to(subject) is None
    with pytest.raises(UsageError, match="operation 'scaled' declares no relation"):
        gate.prepare(subject, seed=0, quick=True)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_triton_kernel_goes_through_the_sandbox(judge: Judge, dtype: str) -> None:
    assert judge("metamorphic").outcome is GateOutcome.ACCEPTED
    assert judge("metamorphic", files=WRONG).outcome is GateOutcome.REJECTED
    unshifted = mutated("x - tl.max(x, axis=0)", "x")
    verdict = judge("metamorphic", files=unshifted)
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.detail.startswith("shift (")
