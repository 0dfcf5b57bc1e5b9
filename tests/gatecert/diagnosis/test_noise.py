"""Claims about what is more than rounding."""

from __future__ import annotations

import math

import numpy as np
import torch

from gatecert.diagnosis.noise import difference
from gatecert.diagnosis.values import Value, kept
from gatecert.oracle.expectation import Expected, ExpectedOutput

EXACT = np.array([1.0, 2.0, 1e-6])
EXPECTED = Expected(
    (ExpectedOutput("out", "float32", EXACT, np.abs(EXACT), 0 * EXACT, 0.0, 1, False),)
)
RIGHT = torch.tensor(EXACT, dtype=torch.float32)


def results(*things: object) -> tuple[Value, ...]:
    return tuple(kept(thing, {}) for thing in things)


def test_equal_bits_are_no_difference_even_where_they_are_nan() -> None:
    both = results(torch.tensor([math.nan, 1.0]), 3)
    assert not difference(both, both, None).other_bits


def test_one_rounding_is_a_difference_and_no_more_than_noise() -> None:
    seen = difference(results(RIGHT), results(RIGHT.nextafter(torch.tensor(9.0))), EXPECTED)
    assert (seen.other_bits, seen.beyond_noise) == (True, False)


def test_an_error_of_a_thousandth_is_more_and_both_errors_are_told() -> None:
    seen = difference(results(RIGHT), results(RIGHT * 1.001), EXPECTED)
    assert seen.beyond_noise
    assert seen.error is not None and seen.own_error is not None
    assert math.isclose(seen.error, 0.002, rel_tol=1e-3)
    assert seen.own_error < 1e-7


def test_a_small_element_that_is_all_wrong_beside_large_ones_is_more() -> None:
    wrong = RIGHT.clone()
    wrong[2] = 1.2e-6  # far below the rounding of the largest
    assert difference(results(RIGHT), results(wrong), EXPECTED).beyond_noise


def test_nan_another_shape_or_a_result_less_is_more() -> None:
    nan = RIGHT.clone()
    nan[0] = math.nan
    for other in (results(nan), results(RIGHT[:2]), results(), results(RIGHT, RIGHT)):
        assert difference(results(RIGHT), other, EXPECTED).beyond_noise


def test_without_a_reference_the_originals_own_values_stand_for_it() -> None:
    assert difference(results(RIGHT), results(RIGHT * 1.001), None).beyond_noise
    near = RIGHT.nextafter(torch.tensor(9.0))
    assert not difference(results(RIGHT), results(near), None).beyond_noise


def test_numbers_that_are_no_tensors_must_be_equal() -> None:
    assert difference(results(1), results(2), None).beyond_noise
    assert not difference(results(math.nan), results(math.nan), None).other_bits
