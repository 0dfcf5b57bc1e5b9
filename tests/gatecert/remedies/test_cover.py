"""The smallest set covers all that can be, at the least cost."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gatecert.remedies.cover import cheapest_cover


def kills(**by_case: str) -> dict[str, frozenset[str]]:
    return {case: frozenset(mutants) for case, mutants in by_case.items()}


def test_one_case_that_kills_all_is_enough() -> None:
    found = cheapest_cover(kills(a="12", b="34", c="1234"), {"a": 1.0, "b": 1.0, "c": 1.5})
    assert found == ["c"]


def test_two_cheap_cases_go_before_a_dear_one() -> None:
    found = cheapest_cover(kills(a="12", b="34", c="1234"), {"a": 1.0, "b": 1.0, "c": 2.5})
    assert found == ["a", "b"]


def test_where_greed_takes_three_cases_two_are_found() -> None:
    made = kills(left="1234", right="5678", large="23567", one="1", four="4", eight="8")
    assert cheapest_cover(made, dict.fromkeys(made, 1.0)) == ["left", "right"]


def test_cases_that_cost_nothing_are_not_all_taken() -> None:
    assert len(cheapest_cover(kills(a="12", b="12", c="1"), dict.fromkeys("abc", 0.0))) == 1


def test_of_nothing_nothing_is_taken() -> None:
    assert cheapest_cover({}, {}) == []
    assert cheapest_cover(kills(a=""), {"a": 1.0}) == []


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.frozensets(st.sampled_from("12345")), min_size=1),
    st.lists(st.integers(1, 9), min_size=6, max_size=6),
)
def test_no_other_set_is_cheaper(made: dict[str, frozenset[str]], prices: list[int]) -> None:
    costs = dict(zip("abcdef", map(float, prices), strict=True))
    every = frozenset().union(*made.values())
    found = cheapest_cover(made, costs)
    assert frozenset().union(*(made[case] for case in found), frozenset()) == every
    best = min(
        sum(costs[case] for case in some)
        for size in range(len(made) + 1)
        for some in itertools.combinations(made, size)
        if frozenset().union(*(made[case] for case in some), frozenset()) == every
    )
    assert sum(costs[case] for case in found) == best
