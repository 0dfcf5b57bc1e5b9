from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gatecert.errors import InternalError, UsageError
from gatecert.oracle.comparators import (
    COMPARATORS,
    Absolute,
    AllClose,
    BaselineRatio,
    Comparator,
    Cosine,
    Envelope,
    Exact,
    RootMeanSquare,
    judge,
)
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.judgement import exceeds
from gatecert.oracle.tolerance import RoundingInterval
from tests.oracle.expectations import expected, output

NAN, INF = float("nan"), float("inf")
WIDE = AllClose(atol=1e30, rtol=1e30)
EVERY: tuple[Comparator, ...] = (
    RoundingInterval(),
    WIDE,
    AllClose(atol=1.0, rtol=1.0, compare_dtype="output"),
    Absolute(1e30),
    Envelope(1e30),
    BaselineRatio(1e30, atol=1e30),
    RootMeanSquare(1e30),
    RootMeanSquare(1e30, relative=True),
    Cosine(2.0),
    Cosine(2.0, mean="arithmetic"),
    Exact(),
)


def test_every_comparator_is_among_those_tested_here() -> None:
    assert {type(comparator) for comparator in EVERY} == set(COMPARATORS)


@pytest.mark.parametrize("comparator", EVERY)
@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(
    ("reference", "candidate"),
    [(NAN, 1.0), (1.0, NAN), (INF, 1.0), (-INF, INF), (NAN, INF), (INF, NAN), (1.0, -INF)],
)
def test_a_nan_or_infinity_out_of_place_fails_every_comparator(
    comparator: Comparator, dtype: str, reference: float, candidate: float
) -> None:
    # `NaN > atol` is false: a published validator passes a finite output for a NaN reference.
    judgement = judge(
        comparator, expected([2.0, reference], dtype), output([2.0, candidate], dtype)
    )
    assert not judgement.passed
    assert judgement.reason == "nonfinite"
    assert judgement.worst_index == (1,)
    assert judgement.mismatched == 1
    assert judgement.score > 1.0


@pytest.mark.parametrize("comparator", EVERY)
@pytest.mark.parametrize("dtype", FORMATS)
def test_nan_and_infinities_in_their_places_pass_every_comparator(
    comparator: Comparator, dtype: str
) -> None:
    values = [NAN, INF, -INF, 0.0, 1.5]
    judgement = judge(comparator, expected(values, dtype), output(values, dtype))
    assert judgement.passed
    assert judgement.score == 0.0
    assert judgement.compared == 5


def test_equal_nan_off_fails_where_both_are_nan_as_torch_does() -> None:
    for compare_dtype in ("float64", "output"):
        rule = AllClose(1.0, 1.0, equal_nan=False, compare_dtype=compare_dtype)
        assert not judge(rule, expected([NAN]), output([NAN])).passed
        assert judge(rule, expected([INF]), output([INF])).passed


def test_the_output_only_rule_reproduces_the_published_defect() -> None:
    rule = Absolute(0.1, nonfinite="output_only")
    assert judge(rule, expected([NAN]), output([1.0])).passed
    assert not judge(rule, expected([NAN]), output([NAN])).passed
    assert not judge(rule, expected([INF]), output([INF])).passed
    assert not judge(rule, expected([INF]), output([1.0])).passed


def test_zeros_pass_an_absolute_tolerance_wider_than_the_output_but_not_the_interval() -> None:
    made = expected(np.full(100, 0.009))
    zeros = torch.zeros(100)
    assert judge(Absolute(0.01), made, zeros).passed
    assert judge(AllClose(0.01, 0.01), made, zeros).passed
    judgement = judge(RoundingInterval(), made, zeros)
    assert not judgement.passed
    assert judgement.mismatched == 100


def test_one_absolute_tolerance_cannot_fit_short_and_long_sums_but_a_shadow_can() -> None:
    # The same relative quality at K = 1 and K = 1024: 2e-4 is far too wide for the first.
    short = expected([0.01], shadow=[0.01], length=1, contraction=True)
    long = expected([10.0], shadow=[1000.0], length=1024, contraction=True)
    wrong_short, fine_long = output([0.0101]), output([10.0 + 1e-3])
    assert judge(Absolute(2e-4), short, wrong_short).passed
    assert not judge(Absolute(2e-4), long, fine_long).passed
    assert not judge(RoundingInterval(), short, wrong_short).passed
    assert judge(RoundingInterval(), long, fine_long).passed


@pytest.mark.parametrize("comparator", EVERY)
def test_integer_outputs_must_be_equal_under_every_comparator(comparator: Comparator) -> None:
    reference = [3, 2**53 + 1]
    made = expected(reference, "int64")
    assert judge(comparator, made, torch.tensor(reference)).passed
    judgement = judge(comparator, made, torch.tensor([3, 2**53]))
    assert not judgement.passed
    assert judgement.worst_index == (1,)


def test_exact_compares_with_the_reference_rounded_to_the_output() -> None:
    made = expected([1.0 + 2.0**-12, -0.0], "float16")
    assert judge(Exact(), made, output([1.0, 0.0], "float16")).passed
    assert not judge(Exact(), made, output([1.0 + 2.0**-10, 0.0], "float16")).passed


def test_all_close_scales_by_the_side_it_is_told() -> None:
    made = expected([1.0])
    y = output([1.25])
    # 0.25 against 0.21 |r| = 0.21, 0.21 |y| = 0.2625, 0.21 (|r| + |y|) = 0.4725.
    assert not judge(AllClose(0.0, 0.21, "reference"), made, y).passed
    assert judge(AllClose(0.0, 0.21, "candidate"), made, y).passed
    assert judge(AllClose(0.0, 0.21, "sum"), made, y).passed


def test_all_close_in_the_output_dtype_decides_as_torch() -> None:
    generator = np.random.default_rng(1)
    differ = 0
    for dtype in FORMATS:
        r = generator.normal(size=4000)
        y = output((r * (1 + 0.012 * generator.uniform(-1, 1, 4000))).tolist(), dtype)
        close = torch.isclose(output(r.tolist(), dtype), y, rtol=0.01, atol=1e-4)
        rule = AllClose(1e-4, 0.01, "candidate", compare_dtype="output")
        assert judge(rule, expected(r, dtype), y).mismatched == int((~close).sum()) > 0
        plain = AllClose(1e-4, 0.01, "candidate", round_reference=True)
        differ += judge(plain, expected(r, dtype), y).mismatched != int((~close).sum())
    assert differ > 0  # low precision is another rule, so it needs its own switch


def test_a_rounded_reference_hides_what_an_unrounded_one_shows() -> None:
    made = expected([1.0 + 0.4 * 2.0**-10], "float16")
    y = output([1.0], "float16")
    assert judge(Absolute(1e-5, round_reference=True), made, y).passed
    assert not judge(Absolute(1e-5), made, y).passed


@settings(max_examples=500, deadline=None)
@given(st.floats(0, 1e6), st.floats(0, 10), st.floats(0, 1e6), st.integers(-2, 2), st.booleans())
def test_a_limit_is_decided_as_in_real_arithmetic(
    atol: float, rtol: float, scale: float, steps: int, near: bool
) -> None:
    error = atol + rtol * scale if near else scale
    for _ in range(abs(steps)):
        error = float(np.nextafter(error, np.inf if steps > 0 else 0.0))
    wanted = Fraction(error) > Fraction(atol) + Fraction(rtol) * Fraction(scale)
    assert exceeds(np.array([error]), atol, rtol, np.array([scale]))[0] == wanted


@pytest.mark.parametrize("limit", [-1.0, INF, NAN])
def test_a_limit_that_is_no_limit_is_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="finite and not negative"):
        AllClose(atol=limit, rtol=0.0)
    with pytest.raises(UsageError, match="finite and not negative"):
        Absolute(limit)


def test_judging_another_shape_is_an_internal_error_and_never_a_broadcast() -> None:
    with pytest.raises(InternalError, match="check the contract"):
        judge(WIDE, expected(np.ones((3, 4))), torch.ones(1, 4))


@pytest.mark.parametrize("comparator", EVERY)
def test_an_empty_output_passes_and_says_that_nothing_was_compared(
    comparator: Comparator,
) -> None:
    judgement = judge(comparator, expected(np.zeros((0, 3))), torch.zeros(0, 3))
    assert (judgement.passed, judgement.compared, judgement.share) == (True, 0, 0.0)


def test_a_nonfinite_failure_comes_before_a_larger_number_of_wrong_values() -> None:
    judgement = judge(Absolute(0.1), expected([1.0, 1.0, 1.0]), output([5.0, NAN, 7.0]))
    assert judgement.reason == "nonfinite"
    assert judgement.mismatched == 3
    assert judgement.share == 1.0
    assert judgement.worst_index == (1,)


def test_the_score_never_contradicts_the_verdict() -> None:
    # In float64 0.1 + 0.2 * 1 rounds up past the true sum: the verdict is exact, so is the score.
    for steps in (-1, 0, 1):
        error = 0.1 + 0.2
        error = float(np.nextafter(error, steps * np.inf)) if steps else error
        made = expected([1.0])
        y = torch.tensor([1.0 + error], dtype=torch.float64)
        judgement = judge(AllClose(0.1, 0.2), made, y)
        assert (judgement.score <= 1.0) is judgement.passed
