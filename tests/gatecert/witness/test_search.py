"""Claims about the order of a hunt's cases."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gatecert.operators.records import Reveal
from gatecert.oracle.case import Case
from gatecert.witness.records import RUNS, Stage
from gatecert.witness.search import Attempt, Search, nearest
from gatecert.witness.space import changed, differences, space_of
from tests.gatecert.witness.test_space import OWN, SOFTMAX, SUBJECT


def attempts(count: int = 120, *, seed: int = 0, runs: bool = False) -> list[Attempt]:
    space = space_of(SOFTMAX, SUBJECT, OWN, seed)
    search = Search(space, OWN, (Reveal.STRIDED,), seed, runs)
    return list(itertools.islice(search.attempts(), count))


def distance(case: Case, own: Sequence[Case] = OWN) -> int:
    return min(len(differences(one, case)) for one in own)


def test_the_order_follows_from_the_seed_alone() -> None:
    assert attempts() == attempts()
    assert attempts() != attempts(seed=1)


def test_no_case_comes_twice_and_none_is_one_of_the_gates_own() -> None:
    cases = [attempt.case for attempt in attempts()]
    assert len(set(cases)) == len(cases)
    assert set(OWN).isdisjoint(cases)


def test_what_the_tags_call_for_comes_first() -> None:
    first = attempts(3)
    assert [attempt.stage for attempt in first] == [Stage.CALLED] * 3
    assert first[0].case.layout == "transposed"


def test_each_round_has_every_kind() -> None:
    assert {attempt.stage for attempt in attempts(10)} == {
        *(Stage.CALLED, Stage.ONE_AXIS, Stage.TWO_AXES, Stage.RANDOM)
    }


def test_one_axis_is_varied_from_one_of_the_gates_cases() -> None:
    found = [attempt for attempt in attempts() if attempt.stage is Stage.ONE_AXIS]
    # So many rows do not fit beside the columns of any of them.
    assert all(distance(attempt.case) == 1 for attempt in found if attempt.case.sizes["B"] < 1025)
    # In another dtype each of its cases is another of its cases.
    assert {axis for attempt in found for axis in attempt.axes} == {
        *("layout", "recipe", "seed", "dim B", "dim N")
    }


def test_two_axes_lie_within_two_of_the_gates_cases() -> None:
    found = [attempt for attempt in attempts() if attempt.stage is Stage.TWO_AXES]
    assert found
    assert all(distance(attempt.case) <= 2 for attempt in found)


def test_the_gates_own_cases_come_first_where_it_takes_turns_of_orders() -> None:
    found = attempts(len(OWN), runs=True)
    assert [attempt.case for attempt in found] == list(OWN)
    assert all(attempt.axes == (RUNS,) for attempt in found)


def test_the_nearest_own_case_is_the_one_that_differs_on_fewest_axes() -> None:
    case = changed(SOFTMAX, OWN[2], {"dim N": 77})
    own, changes = nearest(case, OWN)
    assert own == OWN[2]
    assert changes == {"dim N": (OWN[2].sizes["N"], 77)}


def test_a_value_that_fits_none_of_the_gates_cases_is_tried_among_small_sizes() -> None:
    space = space_of(SOFTMAX, SUBJECT, OWN, seed=0)
    search = Search(space, OWN, (Reveal.LARGE_SPAN,))
    cases = [attempt.case.sizes for attempt in itertools.islice(search.attempts(), 150)]
    assert {"B": 1, "N": 2**15 + 1} in cases or {"B": 2, "N": 2**15 + 1} in cases
    assert all(one.sizes["N"] < 2**15 for one in OWN)
