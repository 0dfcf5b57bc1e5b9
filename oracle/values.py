"""Value recipes: named ways to fill a tensor, each opening a gate that others leave shut.

A recipe gives float64 values for one tensor of at least one dim; the last is "the row". They are
rounded to the tested dtype afterwards. Magnitudes stay well inside float16, so that every recipe
serves every dtype; `huge` and `adversarial` go with the dtype, and `far_below` with its spacing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gatecert.oracle.formats import Array, FloatFormat
from gatecert.oracle.streams import Stream

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Allowance:
    """How large and how many the values of an exact probe may be (see `oracle.exact`).

    Integers up to `magnitude`, powers of two over a range of `exponents` binades, and only the
    part `density` of all values different from zero.
    """

    magnitude: int = 15
    exponents: int = 6
    density: float = 1.0


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to fill a tensor, and what it is for."""

    name: str
    reveals: str
    make: Callable[[Stream, Shape, FloatFormat], Array]
    finite: bool = True
    """Whether every value is finite."""
    moderate: bool = True
    """Whether sums and products of the values stay finite."""
    last_counts: bool = False
    """Whether an index into a row is its last place, the only one that is surely finite."""
    narrow: bool = False
    """Whether only sums in formats of 16 bits and fewer are likely to show it."""
    within: Callable[[Stream, Shape, Allowance], Array] | None = None
    """Of a recipe for exact sums: the same within an allowance."""


def _normal(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return stream.normal(shape)


def _uniform01(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return stream.uniform(shape)


def _uniform10(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return 20.0 * stream.uniform(shape) - 10.0


def _all_negative(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return -(0.5 + 4.0 * stream.uniform(shape))


def _large_offset(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return 100.0 + stream.normal(shape)


def _log_uniform(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return stream.log_uniform(-8, 4, shape)


def _rising(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return np.asarray(_ramp(shape) * 12.0 - 6.0 + 0.25 * stream.normal(shape))


def _falling(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return np.asarray(6.0 - _ramp(shape) * 12.0 + 0.25 * stream.normal(shape))


def _ties(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Every row holds one value: sums are multiples of it and maxima tie everywhere.
    row = np.round(stream.uniform((*shape[:-1], 1)) * 8.0 - 4.0, 1)
    return np.array(np.broadcast_to(row, shape), np.float64)


def _one_hot(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    values = np.zeros(shape)
    if values.size:
        hot = stream.integers(0, shape[-1], (*shape[:-1], 1))
        np.put_along_axis(values, hot, 1.0, axis=-1)
    return values


def _ternary(stream: Stream, shape: Shape, allow: Allowance) -> Array:
    return _thinned(stream, stream.integers(-1, 2, shape).astype(np.float64), allow)


def _small_integers(stream: Stream, shape: Shape, allow: Allowance) -> Array:
    whole = stream.integers(-allow.magnitude, allow.magnitude + 1, shape)
    return _thinned(stream, whole.astype(np.float64), allow)


def _powers_of_two(stream: Stream, shape: Shape, allow: Allowance) -> Array:
    # Both signs, around 1.
    low = -(allow.exponents // 2)
    exponent = stream.integers(low, low + allow.exponents + 1, shape)
    sign = 1.0 - 2.0 * stream.integers(0, 2, shape)
    return _thinned(stream, np.asarray(np.ldexp(sign, exponent)), allow)


def _thinned(stream: Stream, values: Array, allow: Allowance) -> Array:
    if allow.density == 1.0:
        return values
    return np.where(stream.uniform(values.shape) < allow.density, values, 0.0)


def _probe(name: str, reveals: str, within: Callable[[Stream, Shape, Allowance], Array]) -> Recipe:
    """A recipe for exact sums; where nothing is known of them it takes the widest allowance."""
    return Recipe(
        name, reveals, lambda stream, shape, fmt: within(stream, shape, Allowance()), within=within
    )


def _near_zero(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    return 2.0**-9 * stream.normal(shape)


def _subnormal(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Whole multiples of the format's smallest value, below its smallest normal one.
    steps = stream.integers(1, 2 ** (fmt.precision - 1), shape)
    sign = 1.0 - 2.0 * stream.integers(0, 2, shape)
    return np.asarray(
        sign * np.ldexp(steps.astype(np.float64), fmt.min_exponent - fmt.precision + 1)
    )


def _huge(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # From 16 to half the largest finite value: the last binade is left out.
    return stream.log_uniform(4, fmt.max_exponent, shape)


def _masked_rows(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Rows take turns: -inf in the first half, in a third of all places, in all but the last. So
    # whole first tiles hold nothing, and the last place alone is finite in every row.
    values = stream.normal(shape)
    masked = stream.uniform(shape) < 1.0 / 3.0
    masked[..., -1:] = False
    place = np.arange(shape[-1])
    turn = _row_number(shape) % 3
    masked = np.where(turn == 0, place < shape[-1] // 2, masked)
    masked = np.where(turn == 2, place < shape[-1] - 1, masked)
    return np.where(masked, -np.inf, values)


def _nonfinite(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # One special value in the last place of every second row: NaN, +inf, -inf in turn.
    values = stream.normal(shape)
    last = values[..., -1:].reshape(-1)
    last[::2] = np.resize([np.nan, np.inf, -np.inf], last[::2].shape)
    values[..., -1:] = last.reshape(values[..., -1:].shape)
    return values


def _nan_injected(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # One value in twenty is NaN, +inf, -inf or 0.
    special = np.array([np.nan, np.inf, -np.inf, 0.0])[stream.integers(0, 4, shape)]
    return np.where(stream.uniform(shape) < 0.05, special, 20.0 * stream.uniform(shape) - 10.0)


def _adversarial(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Five buckets of equal size. The large ones are such that sums of squares stay finite in
    # float32 where the format has its range, and values stay finite in float16.
    large = np.ldexp(1.0, min(fmt.max_exponent - 1, 48))
    buckets = (
        np.zeros(shape),
        np.ldexp(1.0 - 2.0 * stream.uniform(shape), fmt.min_exponent),
        large * (2.0 * stream.uniform(shape) - 1.0),
        2000.0 * stream.uniform(shape) - 1000.0,
        np.array([np.nan, np.inf, -np.inf])[stream.integers(0, 3, shape)],
    )
    return np.asarray(np.choose(stream.integers(0, len(buckets), shape), buckets))


def _spike(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Rows near -100, every second one (of heads: every second head) with a late peak near
    # +100: a running maximum that starts at 0 underflows where there is no peak, one that
    # stays with the first tile or is not subtracted overflows where there is.
    values = -100.0 + stream.normal(shape)
    leading = shape[:-2] or shape[:-1]
    peaked = np.arange(int(np.prod(leading))).reshape(leading) % 2 == 0
    lone = peaked.reshape(leading + (1,) * (len(shape) - len(leading)))
    values[..., -1:] += np.where(lone, 200.0, 0.0)
    return np.asarray(values)


def _far_below(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Rows near -20000 and -2000 in turn, a few steps of the format apart.
    level = np.where(_row_number(shape) % 2 == 0, -20000.0, -2000.0)
    step = np.exp2(np.floor(np.log2(-level)) + 1 - fmt.precision)
    return np.asarray(level + np.maximum(step, 2.0) * stream.normal(shape))


def _early_peak(stream: Stream, shape: Shape, fmt: FloatFormat) -> Array:
    # Attention with heads of 16 makes a score of about 9.5 of the first one and 0 of the others:
    # what each tile of those adds to a running sum is below half a step of 11 bits and of 8, and
    # thirty of them are not.
    values = 0.01 * stream.normal(shape)
    values[..., :1] += 4.75
    return values


def _row_number(shape: Shape) -> npt.NDArray[np.int64]:
    """Rows counted through, as a column beside them."""
    leading = shape[:-1]
    return np.arange(int(np.prod(leading))).reshape(*leading, 1)


def _ramp(shape: Shape) -> Array:
    return np.linspace(0.0, 1.0, shape[-1]) if shape[-1] > 1 else np.zeros(())


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("normal", "nothing in particular; what most tests use", _normal),
        Recipe("uniform01", "no negative values; one-sided sums", _uniform01),
        Recipe("uniform10", "values in [-10, 10)", _uniform10),
        Recipe("all_negative", "padding with zero under a maximum", _all_negative),
        Recipe("large_offset", "a mean far from zero; exponentials that overflow", _large_offset),
        Recipe("log_uniform", "magnitudes from 2^-8 to 2^4", _log_uniform),
        Recipe("rising", "a running maximum that changes in every tile", _rising),
        Recipe("falling", "a running maximum that never changes", _falling),
        Recipe("ties", "rows of one value: variance zero, tied maxima", _ties),
        Recipe("one_hot", "exact probes of an index; products with zero", _one_hot),
        _probe("ternary", "exact sums of -1, 0 and 1", _ternary),
        _probe("small_integers", "exact sums that leave a narrow accumulator", _small_integers),
        _probe("powers_of_two", "exact sums in which each place counts by itself", _powers_of_two),
        Recipe("near_zero", "values so small that an epsilon matters", _near_zero),
        Recipe("subnormal", "subnormal inputs of the tested format", _subnormal),
        Recipe("huge", "a clamp, or a narrower format on the way", _huge, moderate=False),
        Recipe(
            "masked_rows",
            "-inf in parts of each row, whole first tiles too",
            _masked_rows,
            False,
            True,
            True,
        ),
        Recipe("nonfinite", "NaN and infinities in every second row", _nonfinite, finite=False),
        Recipe("nan_injected", "NaN, infinities and zeros anywhere", _nan_injected, finite=False),
        Recipe(
            "adversarial",
            "zeros, tiny, large and ordinary values, NaN and infinities in equal parts",
            _adversarial,
            finite=False,
        ),
        Recipe("spike", "rows near -100, half of them with a late peak near +100", _spike),
        Recipe("far_below", "a maximum that starts at -1e3 or -1e4", _far_below, moderate=False),
        Recipe(
            "early_peak",
            "a sum in 16 bits that loses all which comes after one early value",
            _early_peak,
            narrow=True,
        ),
    )
}

PROBES = ("small_integers", "powers_of_two")
"""Recipes for exact mode alone: operations have them that declare what of them is exact."""
PROBES_AS_THEY_ARE = {name: name for name in PROBES}
"""For `stand_ins` of tensors that take part in exact sums but else stay ordinary."""
EXACT_RECIPES = ("ternary", "one_hot", *PROBES)
"""Recipes whose sums are exact in float32 up to a length: see `oracle.exact`."""
MODERATE_RECIPES = tuple(
    name
    for name, recipe in RECIPES.items()
    if recipe.moderate and not recipe.narrow and name not in PROBES
)
FINITE_RECIPES = tuple(name for name in MODERATE_RECIPES if RECIPES[name].finite)
