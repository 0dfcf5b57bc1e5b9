"""All small sizes are tried where a mask, a bound or an index is wrong, and none twice."""

from __future__ import annotations

import itertools

import pytest

from gatecert.operators.records import Reveal
from gatecert.oracle.cases import cases_for
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation
from gatecert.subjects import Subject
from gatecert.witness.small_domains import (
    MOST_CASES,
    is_about_sizes,
    largest_bound,
    small_domain,
)
from gatecert.witness.space import Space, space_of


def space(operation: Operation) -> tuple[Space, tuple[object, ...]]:
    own = cases_for(operation, dtypes=("float32",), strategy="quick")
    subject = Subject("s", "m:f", operation.name, dtypes=("float32",))
    return space_of(operation, subject, own, 0), own


def test_every_combination_up_to_the_bound_comes_once_and_small_ones_first() -> None:
    found, own = space(get_operation("softmax"))
    bound = largest_bound(found)
    assert bound == 16
    cases = list(small_domain(found, own, bound))
    sizes = [(case.sizes["B"], case.sizes["N"]) for case in cases]
    assert set(sizes) == set(itertools.product(range(1, 17), repeat=2))
    assert len(sizes) == len(set(sizes)) == MOST_CASES
    assert sizes[0] == (1, 1) and sizes[-1] == (16, 16)
    assert {(case.dtype, case.recipe, case.layout) for case in cases} == {
        (own[0].dtype, own[0].recipe, own[0].layout)
    }


@pytest.mark.parametrize("operation", operations(), ids=lambda one: one.name)
def test_the_bound_is_the_largest_that_keeps_within_the_number_of_cases(
    operation: Operation,
) -> None:
    found, own = space(operation)
    bound = largest_bound(found)
    if bound:
        assert 1 <= sum(1 for _ in small_domain(found, own, bound)) <= MOST_CASES
        assert sum(1 for _ in small_domain(found, own, bound + 1)) > MOST_CASES


@pytest.mark.parametrize(
    ("tags", "asked"),
    [
        ((Reveal.TAIL,), True),
        ((Reveal.ANY, Reveal.SEVERAL_ROWS), True),
        ((Reveal.NEGATIVE, Reveal.HALF_PRECISION), False),
        ((), False),
    ],
)
def test_they_are_asked_for_by_tags_that_name_sizes(tags: tuple[Reveal, ...], asked: bool) -> None:
    assert is_about_sizes(tags) is asked
