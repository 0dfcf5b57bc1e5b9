from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatecert.oracle.comparators import Absolute, AllClose, Comparator, Exact, judge
from gatecert.oracle.formats import FORMATS, round_to, spacing, torch_dtype
from gatecert.oracle.observation import (
    NotJudgeable,
    Observation,
    judge_observation,
    observe,
    upper_hull,
)
from gatecert.oracle.tolerance import RoundingInterval
from tests.oracle.expectations import expected, output

NAN, INF = float("nan"), float("inf")
SPECIAL = (NAN, INF, -INF, 0.0, -0.0)


def comparators(rounded: bool) -> st.SearchStrategy[Comparator]:
    limit = st.sampled_from([0.0, 1e-5, 1e-3, 1e-2, 0.1])
    return st.one_of(
        st.builds(
            AllClose,
            atol=limit,
            rtol=limit,
            scale_by=st.sampled_from(["reference", "candidate", "sum"]),
            equal_nan=st.booleans(),
            round_reference=st.just(rounded),
        ),
        st.builds(
            Absolute,
            atol=limit,
            nonfinite=st.sampled_from(["match", "no_nan", "output_only"]),
            round_reference=st.just(rounded),
        ),
        st.just(Exact()),
        st.builds(RoundingInterval, constant=st.sampled_from([1.0, 16.0])),
    )


@settings(max_examples=1000, deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.booleans().flatmap(lambda rounded: st.tuples(st.just(rounded), comparators(rounded))),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_a_record_is_judged_as_the_output_itself_was(
    dtype: str, rule: tuple[bool, Comparator], near: bool, seed: int
) -> None:
    """Half of the outputs lie within 2 steps of the format around the limit."""
    rounded, comparator = rule
    generator = np.random.default_rng(seed)
    r = _numbers(generator, int(generator.integers(1, 7)))
    made = expected(r, dtype)
    y = _near_the_limit(generator, comparator, r, dtype) if near else _numbers(generator, len(r))
    if generator.random() < 0.2:
        y[generator.integers(len(y))] = generator.choice(SPECIAL)
    candidate = torch.from_numpy(round_to(y, FORMATS[dtype])).to(torch_dtype(dtype))
    direct = judge(comparator, made, candidate)
    seen = observe(made, candidate, rounded_reference=rounded)
    again = msgspec.json.decode(msgspec.json.encode(seen), type=Observation)
    from_record = judge_observation(comparator, again)
    assert (from_record.passed, from_record.reason) == (direct.passed, direct.reason)


def _numbers(generator: np.random.Generator, count: int) -> np.ndarray:
    corners = np.array([*SPECIAL, 1.0, 6e-8, 1e-40, 65519.0, -65520.0, 3.4e38, 3.5e38])
    spread = generator.normal(size=count) * 10.0 ** generator.integers(-8, 4, count)
    return np.where(generator.random(count) < 0.2, generator.choice(corners, count), spread)


def _near_the_limit(
    generator: np.random.Generator, comparator: Comparator, r: np.ndarray, dtype: str
) -> np.ndarray:
    fmt = FORMATS[dtype]
    finite = np.isfinite(r)
    base = np.where(finite, r, 1.0)
    atol, rtol = getattr(comparator, "atol", 0.0), getattr(comparator, "rtol", 0.0)
    target = round_to(base + atol + rtol * np.abs(base), fmt)
    target = np.where(np.isfinite(target), target, fmt.largest)
    steps = generator.integers(-2, 3, len(r))
    return np.where(finite, target + steps * spacing(target, fmt), r)


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
