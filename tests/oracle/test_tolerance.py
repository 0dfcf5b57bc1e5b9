from __future__ import annotations

import numpy as np
import pytest
import torch

from gatecert.oracle.comparators import judge
from gatecert.oracle.formats import FORMATS, round_to, torch_dtype
from gatecert.oracle.tolerance import RoundingInterval, growth_factor
from tests.oracle.expectations import expected, output

RULE = RoundingInterval()
U = 2.0**-24


def random_reference(count: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).normal(size=count)


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_correctly_rounded_output_scores_zero(dtype: str) -> None:
    r = random_reference() * 10.0 ** np.linspace(-9, 4, 4000)
    y = torch.from_numpy(round_to(r, FORMATS[dtype])).to(torch_dtype(dtype))
    judgement = judge(RULE, expected(r, dtype), y)
    assert judgement.passed
    assert judgement.score == 0.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_constant_wrong_by_1e_5_is_seen_through_16_bit_output(dtype: str) -> None:
    r = random_reference()
    y = torch.from_numpy(round_to(r * (1 + 1e-5), FORMATS[dtype])).to(torch_dtype(dtype))
    judgement = judge(RULE, expected(r, dtype), y)
    assert not judgement.passed
    assert judgement.reason == "values"
    assert 0 < judgement.share < 0.1


def test_the_constant_is_16_and_32_for_contractions() -> None:
    for factor, contraction, passes in (
        (15.9, False, True),
        (16.1, False, False),
        (31.9, True, True),
        (32.1, True, False),
    ):
        # In float64 arithmetic y is exact and r lies this many units beyond y's own rounding.
        r = np.array([1.0 + U + factor * U])
        made = expected(r, shadow=1.0, contraction=contraction)
        assert judge(RULE, made, output([1.0])).passed is passes


def test_the_allowance_grows_linearly_beyond_one_tile() -> None:
    assert [growth_factor("linear", k) for k in (1, 128, 256, 16384)] == [1, 1, 2, 128]
    assert [growth_factor("log", k) for k in (1, 128, 256, 16384)] == [1, 1, 2, 8]
    assert growth_factor("none", 16384) == 1
    r = [1.0 + U + 100 * U]
    assert not judge(RULE, expected(r, shadow=1.0, length=128), output([1.0])).passed
    assert judge(RULE, expected(r, shadow=1.0, length=1024), output([1.0])).passed


def test_a_lower_precision_step_is_allowed_only_where_it_is_declared() -> None:
    r = [1.0 + 3.9 * 2.0**-11]
    assert not judge(RULE, expected(r, shadow=1.0), output([1.0])).passed
    assert judge(RULE, expected(r, shadow=1.0, mid_unit=2.0**-11), output([1.0])).passed
    worse = [1.0 + 4.1 * 2.0**-11]
    assert not judge(RULE, expected(worse, shadow=1.0, mid_unit=2.0**-11), output([1.0])).passed


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_reference_next_to_the_overflow_limit_may_round_either_way(dtype: str) -> None:
    fmt = FORMATS[dtype]
    just_below = expected([fmt.overflow * (1 - U)], dtype)
    just_above = expected([fmt.overflow * (1 + U)], dtype)
    for made in (just_below, just_above):
        assert judge(RULE, made, output([fmt.largest], dtype)).passed
        assert judge(RULE, made, output([np.inf], dtype)).passed
        assert not judge(RULE, made, output([-np.inf], dtype)).passed
    assert judge(RULE, expected([fmt.largest * 8], dtype), output([np.inf], dtype)).passed


@pytest.mark.parametrize("dtype", FORMATS)
def test_an_overflow_that_rounding_cannot_explain_is_a_nonfinite_failure(dtype: str) -> None:
    fmt = FORMATS[dtype]
    early = judge(RULE, expected([fmt.largest * 0.9], dtype), output([np.inf], dtype))
    missing = judge(RULE, expected([fmt.largest * 2], dtype), output([fmt.largest], dtype))
    assert (early.passed, early.reason) == (False, "nonfinite")
    assert (missing.passed, missing.reason) == (False, "nonfinite")


@pytest.mark.parametrize("dtype", FORMATS)
def test_a_zero_where_the_reference_is_not_tiny_fails_however_small_the_scale(dtype: str) -> None:
    small = FORMATS[dtype].smallest_normal * 64
    assert not judge(RULE, expected([small], dtype), output([0.0], dtype)).passed
    least = 2.0 ** (FORMATS[dtype].min_exponent - FORMATS[dtype].precision + 1)
    assert judge(RULE, expected([least * 0.49], dtype), output([0.0], dtype)).passed


def test_one_subnormal_step_of_float16_is_told_from_the_next() -> None:
    r = [5 * 2.0**-24]
    assert judge(RULE, expected(r, "float16"), output(r, "float16")).passed
    assert not judge(RULE, expected(r, "float16"), output([6 * 2.0**-24], "float16")).passed


def test_score_error_and_allowance_belong_together() -> None:
    r = np.array([[1.0, 1.0], [1.0 + 9 * U, 1.0]])
    judgement = judge(RULE, expected(r, shadow=1.0), torch.ones(2, 2))
    assert judgement.worst_index == (1, 0)
    assert judgement.error == pytest.approx(8 * U)
    assert judgement.allowance == pytest.approx(16 * U)
    assert judgement.score == pytest.approx(0.5)
