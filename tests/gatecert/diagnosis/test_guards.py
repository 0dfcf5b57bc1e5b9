"""Claims about what guards see of a call that was run in several manners."""

from __future__ import annotations

import torch

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.guards import MANNERS, guards_in
from gatecert.diagnosis.records import Guard
from gatecert.diagnosis.replaying import Manner, Ran
from gatecert.diagnosis.values import NamedValues, TensorValue, kept
from gatecert.lanes.records import Finding, FindingKind

X = torch.ones(4)
CALL = Kept((kept(X, {}),), NamedValues({}))
FINDING = Finding(FindingKind.LOAD_OUT_OF_BOUNDS, "m:k", "x_ptr", 3, 4)


def ran(scale: float = 1.0, **more: object) -> Ran:
    return Ran(results=(kept(X * scale, {id(X): 0, 1: 1}),), **more)  # type: ignore[arg-type]


def seen(plain: Ran, **others: Ran) -> dict[Guard, str]:
    """The plain run, and those in other manners that are not like it."""
    runs = {manner: others.get(manner.name, plain) for manner in MANNERS}
    return guards_in(CALL, runs, (), None)


def test_runs_that_are_all_alike_are_seen_by_nobody() -> None:
    assert seen(ran()) == {}


def test_each_manner_has_its_guard() -> None:
    assert list(seen(ran(), REVERSED=ran(2.0))) == [Guard.RACE]
    assert list(seen(ran(), LATE=ran(2.0))) == [Guard.RACE]
    assert list(seen(ran(), POISONED=ran(2.0))) == [Guard.POISON]
    assert list(seen(ran(), AGAIN=ran(2.0))) == [Guard.REPEAT]


def test_other_roundings_in_another_order_are_no_race() -> None:
    assert seen(ran(), REVERSED=ran(1.0 + 2.0**-23)) == {}


def test_a_finding_is_told_with_its_lanes_and_what_it_read_is_no_poison() -> None:
    found = seen(ran(findings=(FINDING,)), POISONED=ran(2.0, findings=(FINDING,)))
    assert found == {Guard.BOUNDS: "load_out_of_bounds on x_ptr, 3 lanes in all"}


def test_an_argument_that_the_call_should_not_change_is_seen() -> None:
    after = kept(X * 3, {})
    assert isinstance(after, TensorValue)
    changed = ran(changed={0: after})
    assert list(seen(changed)) == [Guard.INPUTS]
    runs = dict.fromkeys(MANNERS, changed)
    assert guards_in(CALL, runs, {0}, None) == {}


def test_an_error_in_one_order_alone_is_a_race() -> None:
    assert Guard.RACE in seen(ran(), INTERLEAVED=Ran(error="ValueError: no"))
    assert MANNERS[:2] == (Manner.PLAIN, Manner.AGAIN)


def test_a_run_that_gave_no_answer_in_its_time_says_nothing() -> None:
    hung = Ran(error="no answer within 30 s", hung=True)
    assert seen(ran(), LATE=hung, POISONED=hung) == {}
    assert seen(hung, LATE=ran()) == {}
