"""The diagnosis is right about survivors that were labelled before it was written."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
import pytest

from gatecert.sandbox.client import Server
from gatecert.witness.records import HuntBudget
from tests.e2e.commands import ROOT
from tests.survivor_exam import Answer, Examiner
from tests.survivors import Situation, WhySurvived, situations

KEPT = ROOT / "benchmarks" / "data" / "survivors.json"
PER_REASON = 2
BUDGET = HuntBudget(seconds=120.0, cases=60)


def sample() -> Sequence[Situation]:
    """A few of each reason, the same every time."""
    order = random.Random(6).sample(situations(), len(situations()))
    return [
        situation
        for reason in WhySurvived
        for situation in [one for one in order if one.reasons[0] is reason][:PER_REASON]
    ]


@pytest.fixture(scope="module")
def examiner() -> Iterator[Examiner]:
    with Server() as server:
        yield Examiner(server, BUDGET)


@pytest.mark.parametrize("situation", sample(), ids=lambda situation: situation.id)
def test_the_first_reason_is_the_labels(examiner: Examiner, situation: Situation) -> None:
    answer = examiner.answer(situation)
    assert answer.right, (answer.label, answer.causes, answer.said)


@pytest.fixture(scope="module")
def kept() -> tuple[Answer, ...]:
    """The whole exam, as it was last passed by `python -m tests.survivor_exam --out`."""
    return msgspec.json.decode(KEPT.read_bytes(), type=tuple[Answer, ...])


def test_the_whole_exam_was_of_these_labels(kept: tuple[Answer, ...]) -> None:
    labels = {one.id: tuple(reason.value for reason in one.reasons) for one in situations()}
    assert {one.id: one.label for one in kept} == labels


def test_the_whole_exam_is_passed_in_every_reason(kept: tuple[Answer, ...]) -> None:
    right = Counter(one.label[0] for one in kept if one.right)
    assert all(right[reason.value] >= 10 for reason in WhySurvived), right
    assert right.total() >= 57
