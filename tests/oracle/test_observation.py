from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatecert.oracle.comparators import (
    Absolute,
    AllClose,
    Comparator,
    NotJudgeable,
    judge_observation,
)
from gatecert.oracle.observation import observe, upper_hull
from gatecert.oracle.tolerance import RoundingInterval
from tests.oracle.expectations import expected, output

NAN, INF = float("nan"), float("inf")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e3)), max_size=30),
    st.floats(0, 1e3),
    st.floats(0, 10),
)
def test_a_limit_fails_on_a_point_exactly_if_it_fails_on_the_hull(
    points: list[tuple[float, float]], atol: float, rtol: float
) -> None:
    def fails(found: Iterable[tuple[float, float]]) -> bool:
        return any(
            Fraction(error) > Fraction(atol) + Fraction(rtol) * Fraction(scale)
            for scale, error in found
        )

    scale, error = (np.array([point[axis] for point in points]) for axis in (0, 1))
    hull = upper_hull(scale, error)
    assert set(hull) <= set(points)
    assert fails(hull) == fails(points)


def test_a_hull_is_far_smaller_than_the_output() -> None:
    r = np.random.default_rng(0).normal(size=20_000)
    y = output((r * (1 + 1e-3 * np.sin(r * 1e4))).tolist())
    assert len(observe(expected(r), y).hulls["reference"]) < 40


def test_the_table_counts_classes_of_reference_against_candidate() -> None:
    seen = observe(
        expected([NAN, INF, -INF, 0.0, 1.0, 1.0, 2.0]), output([NAN, INF, INF, 0.0, 1.0, 0.0, NAN])
    )
    assert seen.table == (
        (1, 0, 0, 0, 0),
        (0, 1, 0, 0, 0),
        (0, 1, 0, 0, 0),
        (0, 0, 0, 1, 0),
        (1, 0, 0, 1, 1),
    )
    assert seen.moments.n == 3
    assert seen.unequal == 3


def test_moments_and_histograms_are_those_of_the_finite_pairs() -> None:
    seen = observe(expected([1.0, -4.0, NAN]), output([1.25, -4.5, NAN]))
    assert seen.moments.error == 0.75
    assert seen.moments.signed_error == -0.25
    assert seen.moments.error_squared == 0.25**2 + 0.5**2
    assert seen.moments.reference == 5.0
    assert seen.moments.product == 1.25 + 18.0
    assert seen.moments.largest_error == 0.5
    assert seen.error_histogram == {-2: 1, -1: 1}
    # One ULP of float32 is 2^-23 at 1 and 2^-21 at 4.
    assert seen.ulp_histogram == {21: 1, 20: 1}


def test_equal_bits_give_equal_hashes_whatever_the_layout() -> None:
    made = expected(np.ones((2, 3)))
    plain = torch.arange(6.0).reshape(2, 3)
    turned = plain.t().contiguous().t()
    assert observe(made, plain).bits == observe(made, turned).bits
    assert observe(made, plain).strides != observe(made, turned).strides
    assert observe(made, plain).bits != observe(made, -plain).bits


@pytest.mark.parametrize(
    ("comparator", "lacking"),
    [
        (AllClose(1.0, 1.0, compare_dtype="output"), "own dtype"),
        (AllClose(1.0, 1.0, round_reference=True), "rounded reference"),
        (Absolute(1.0, round_reference=True), "rounded reference"),
        (RoundingInterval(growth="log"), "growth law"),
        (RoundingInterval(lower_precision_constant=2.0), "lower-precision step"),
    ],
)
def test_what_a_record_cannot_answer_is_said_and_never_guessed(
    comparator: Comparator, lacking: str
) -> None:
    seen = observe(expected([1.0], mid_unit=2.0**-11), output([1.0]))
    with pytest.raises(NotJudgeable, match=lacking):
        judge_observation(comparator, seen)


def test_an_integer_record_is_judged_by_equality() -> None:
    made = expected([1, 2], "int64")
    assert judge_observation(Absolute(5.0), observe(made, torch.tensor([1, 2]))).passed
    assert not judge_observation(Absolute(5.0), observe(made, torch.tensor([1, 3]))).passed
