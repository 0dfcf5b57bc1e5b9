"""Claims about the order of the oracle's cases: a bug's labels make it sooner seen, and no more."""

from __future__ import annotations

import functools
import hashlib
import itertools

import msgspec
import pytest

from gatecert.campaign.shards import candidate_of
from gatecert.gates.oracle import OracleGate, PreparedCase, PreparedOracle
from gatecert.gates.oracle.cases import likely_first
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.operators.records import Reveal
from gatecert.oracle.cases import cases_for
from gatecert.oracle.layouts import LAYOUTS
from gatecert.oracle.operations import get_operation
from gatecert.oracle.strategies import OF_THEIR_OWN
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_kernels
from tests.runs import mutant

FAR = (Reveal.LARGE_SPAN,)
STRIDED = (Reveal.TAIL, Reveal.STRIDED)
BOTH = (*STRIDED, *FAR)
ELSE = tuple(tag for tag in Reveal if tag not in BOTH)
CASES = [
    PreparedCase(case, inputs=None, expected=None)  # type: ignore[arg-type]
    for case in cases_for(
        get_operation("swiglu"), dtypes=("float32", "float16"), layouts=tuple(LAYOUTS)
    )
]
WRONG = [name for name in vars(wrong_kernels) if name.startswith("softmax_")]


def layouts(reveal: tuple[Reveal, ...]) -> list[str]:
    """Of the cases in their order, without the tensors that take them."""
    return [one.case.layout.partition(":")[0] for _, one in likely_first(CASES, reveal)]


@pytest.mark.parametrize(
    "reveal", [(), *itertools.combinations(Reveal, 1), STRIDED, BOTH, ELSE], ids=str
)
def test_no_case_is_lost_or_changed_and_likely_and_unlikely_ones_keep_their_order(
    reveal: tuple[Reveal, ...],
) -> None:
    ordered = list(likely_first(CASES, reveal))
    assert sorted(ordered, key=lambda entry: entry[0]) == list(enumerate(CASES))
    places = [place for place, _ in ordered]
    turns = sum(after < before for before, after in itertools.pairwise(places))
    assert turns <= 1


def test_a_bug_of_strides_is_looked_for_where_tensors_are_not_contiguous() -> None:
    found = layouts(STRIDED)
    assert {"contiguous", "row_padded", "spread"} < set(found)
    strided = sum(layout != "contiguous" for layout in found)
    assert "contiguous" not in found[:strided]
    assert set(found[strided:]) == {"contiguous"}


def test_a_bug_of_far_offsets_is_looked_for_where_offsets_are_far() -> None:
    found = layouts(FAR)
    far = sum(layout in OF_THEIR_OWN for layout in found)
    assert set(found[:far]) == set(OF_THEIR_OWN)
    assert not set(found[far:]) & set(OF_THEIR_OWN)


@pytest.mark.parametrize("reveal", [(), ELSE], ids=["none", "all others"])
def test_other_labels_leave_the_order_as_it_is(reveal: tuple[Reveal, ...]) -> None:
    assert list(likely_first(CASES, reveal)) == list(enumerate(CASES))


@functools.cache
def prepared() -> PreparedOracle:
    """The oracle's cases of softmax; the entry comes later."""
    subject = Subject(
        "s",
        f"{wrong_kernels.__name__}:softmax",
        "softmax",
        dtypes=("float32", "bfloat16"),
        layouts=("contiguous", "row_padded", "spread"),
    )
    return OracleGate().prepare(subject, seed=0, quick=False)


def say(entry: str, reveal: tuple[Reveal, ...] = (), *, stop_at_first: bool = True) -> Verdict:
    wrong_kernels._EARLIER.clear()
    gate = prepared()
    subject = msgspec.structs.replace(gate.subject, entry=f"{wrong_kernels.__name__}:{entry}")
    bound = PreparedOracle(gate.gate, subject, gate.operation, gate.comparator, gate.cases)
    candidate = Candidate(entry, CandidateKind.MUTANT, "s", {}, reveal=reveal)
    return bound.judge(candidate, stop_at_first=stop_at_first)


@pytest.mark.parametrize("entry", WRONG)
def test_labels_decide_nothing_but_which_case_says_no_first(entry: str) -> None:
    usual = say(entry)
    assert usual.outcome in (GateOutcome.REJECTED, GateOutcome.ERROR)
    assert {say(entry, reveal).outcome for reveal in (STRIDED, FAR, BOTH)} == {usual.outcome}


def test_the_verdict_on_a_right_kernel_is_the_same_whatever_its_labels_say() -> None:
    usual = say("softmax")
    assert usual.outcome is GateOutcome.ACCEPTED
    assert usual.cases == len(prepared().cases)
    assert say("softmax", STRIDED) == say("softmax", FAR) == usual


def test_a_lost_stride_takes_one_case_where_its_label_says_so() -> None:
    usual, labelled = say("softmax_ignores_strides"), say("softmax_ignores_strides", STRIDED)
    assert labelled.cases == 1 < usual.cases
    assert labelled.case == usual.case


def test_where_every_case_is_run_the_first_of_the_usual_order_is_named() -> None:
    usual = say("softmax_of_zeros", stop_at_first=False)
    assert say("softmax_of_zeros", STRIDED, stop_at_first=False) == usual
    assert usual.case == prepared().cases[0].case.id
    assert usual.cases == len(prepared().cases)
    sooner = say("softmax_of_zeros", STRIDED)
    assert "/contiguous/" not in sooner.case


def test_a_gate_is_told_a_mutant_s_labels() -> None:
    sha256 = hashlib.sha256(b"").hexdigest()
    one = mutant("softmax/k/wrong-stride/1-aaaaaa", reveal=STRIDED, source_sha256=sha256)
    assert candidate_of(one, {one.path: ""}).reveal == STRIDED
