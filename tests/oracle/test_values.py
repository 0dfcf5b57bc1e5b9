from __future__ import annotations

import numpy as np
import pytest

from gatecert.oracle.formats import FORMATS, Array, FloatFormat, round_to
from gatecert.oracle.streams import Stream
from gatecert.oracle.values import FINITE_RECIPES, RECIPES

SHAPE = (6, 257)


def rows(recipe: str) -> Array:
    return RECIPES[recipe].make(Stream(recipe), SHAPE, FORMATS["float16"])


def test_the_normal_stream_is_nearly_normal() -> None:
    values = Stream("check").normal((200_000,))
    assert abs(values.mean()) < 0.01
    assert abs(values.std() - 1.0) < 0.01
    assert abs((np.abs(values) < 1.0).mean() - 0.6827) < 0.01


def test_uniform_numbers_are_multiples_of_two_to_the_minus_53_below_one() -> None:
    values = Stream("check").uniform((10_000,))
    assert values.min() >= 0.0 and values.max() < 1.0
    assert np.array_equal(values * 2.0**53, np.floor(values * 2.0**53))
    assert abs(values.mean() - 0.5) < 0.02


def test_recipes_are_what_their_names_say() -> None:
    assert (rows("all_negative") < 0).all()
    assert (rows("uniform01") >= 0).all()
    assert np.abs(rows("uniform10")).max() > 9
    assert rows("large_offset").mean() > 90
    assert (np.ptp(rows("ties"), axis=1) == 0).all()
    assert (rows("one_hot").sum(axis=1) == 1).all()
    assert set(np.unique(rows("ternary"))) == {-1.0, 0.0, 1.0}
    magnitudes = np.abs(rows("log_uniform"))
    assert magnitudes.min() < 2.0**-6 and magnitudes.max() > 2.0**3


@pytest.mark.parametrize("block", [16, 64, 128])
def test_rising_rows_raise_the_running_maximum_in_every_tile_and_falling_rows_never(
    block: int,
) -> None:
    def maxima(values: Array) -> Array:
        return np.stack([values[:, at : at + block].max(axis=1) for at in range(0, 256, block)])

    assert (np.diff(maxima(rows("rising")), axis=0) > 0).all()
    assert (np.diff(maxima(rows("falling")), axis=0) < 0).all()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_huge_values_reach_the_last_but_one_binade_of_the_format(fmt: FloatFormat) -> None:
    magnitudes = np.abs(RECIPES["huge"].make(Stream("huge"), SHAPE, fmt))
    assert magnitudes.min() >= 16.0
    assert fmt.largest / 8 < magnitudes.max() < 2.0**fmt.max_exponent
    assert "huge" not in FINITE_RECIPES


def test_masked_rows_start_with_masked_tiles_in_turn_and_end_with_a_finite_value() -> None:
    values = rows("masked_rows")
    masked = np.isneginf(values)
    assert masked[::3, :128].all() and not masked[::3, 128:].any()
    assert (masked[1::3].mean(axis=1) > 0.2).all() and (masked[1::3].mean(axis=1) < 0.45).all()
    assert masked[2::3, :-1].all()
    assert np.isfinite(values[:, -1]).all()


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
def test_rows_far_below_lie_under_every_start_and_differ_within(fmt: FloatFormat) -> None:
    values = round_to(RECIPES["far_below"].make(Stream("far"), SHAPE, fmt), fmt)
    assert (values[::2] < -15_000).all()
    assert (values[1::2] < -1_900).all() and (values[1::2] > -2_100).all()
    assert all(len(np.unique(row)) > 3 for row in values)
    assert "far_below" not in FINITE_RECIPES


def test_every_second_spike_row_has_a_late_peak_and_the_others_stay_far_below_zero() -> None:
    values = rows("spike")
    assert (values[::2, -1] > 90).all()
    assert (values[1::2, -1] < -90).all()
    assert (values[:, :-1] < -90).all()


def test_spikes_alternate_by_head_in_a_tensor_with_heads() -> None:
    values = RECIPES["spike"].make(Stream("heads"), (2, 3, 4, 5), FORMATS["float16"])
    peaks = (values[..., -1] > 90).all(axis=2), (values[..., -1] < -90).all(axis=2)
    assert peaks[0].tolist() == [[True, False, True], [False, True, False]]
    assert (peaks[0] != peaks[1]).all()


def test_every_second_row_is_spoilt_by_nan_and_both_infinities() -> None:
    values = rows("nonfinite")
    assert np.isfinite(values[1::2]).all()
    assert np.isnan(values[0, -1])
    assert values[2, -1] == np.inf
    assert values[4, -1] == -np.inf


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (2, 1), (2, 3, 4)])
def test_every_recipe_fills_every_shape(recipe: str, shape: tuple[int, ...]) -> None:
    values = RECIPES[recipe].make(Stream("any"), shape, FORMATS["bfloat16"])
    assert values.shape == shape
