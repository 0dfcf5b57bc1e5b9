"""Observe once, judge many: a record of one output that later comparators can be asked about.

A linear allowance `atol + rtol * scale` fails on some element exactly if it fails on a vertex
of the upper hull of the points (scale, error), so the hulls answer for every atol and rtol.
What a record cannot answer (torch's arithmetic in low precision, another growth law) raises
`NotJudgeable`; it is never guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import msgspec
import numpy as np
import torch

from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import (
    Array,
    format_of,
    raw_bytes,
    round_to_dtype,
    spacing,
    to_float64,
)
from gatecert.oracle.judgement import SCALES, Flags, NonfiniteRule, NotJudgeable
from gatecert.oracle.tolerance import Growth, RoundingInterval, unexplained_error, unit

CLASSES = ("nan", "+inf", "-inf", "zero", "finite")
Hull: TypeAlias = tuple[tuple[float, float], ...]


class Moments(msgspec.Struct, frozen=True):
    """Sums and maxima over the elements where reference and candidate are both finite."""

    n: int
    error: float
    signed_error: float
    error_squared: float
    reference: float
    reference_squared: float
    candidate_squared: float
    product: float
    largest_error: float
    largest_reference: float
    largest_candidate: float


class Interval(msgspec.Struct, frozen=True):
    """The rounding-interval score under one growth law and one weight of the middle term.

    `broken` counts elements whose NaN or infinity no rounding explains; `overflow_score` is
    the score where one of reference and candidate is infinite, next to the overflow limit.
    """

    score: float
    overflow_score: float
    broken: int
    growth: Growth
    middle_weight: float
    contraction: bool


class Observation(msgspec.Struct, frozen=True):
    """What one output of one execution showed against one kind of reference.

    `table[i][j]` counts elements whose reference, rounded to the output's dtype, is of class i
    and whose candidate is of class j (order of `CLASSES`). Errors are float64 |y - r| over
    elements finite in both; `r` is rounded first where `rounded_reference` says so. `hulls`
    are keyed by scale; histograms map floor(log2) of the error (or of the error in ULP of
    the reference) to a count. `unequal` counts elements that are not the rounded reference.
    `baseline` holds the moments of torch's own result, where that was computed.
    """

    output: str
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    rounded_reference: bool
    table: tuple[tuple[int, ...], ...]
    hulls: dict[str, Hull]
    moments: Moments
    error_histogram: dict[int, int]
    ulp_histogram: dict[int, int]
    unequal: int
    bits: str
    interval: Interval | None
    baseline: Moments | None = None


def observe(
    expected: ExpectedOutput,
    output: torch.Tensor,
    *,
    rounded_reference: bool = False,
    interval: RoundingInterval | None = None,
) -> Observation:
    """Record one output of the right shape; `interval` gives the law of its interval score."""
    y = to_float64(output)
    unrounded = np.asarray(expected.reference, np.float64)
    fmt = format_of(expected.dtype)
    rounded = round_to_dtype(unrounded, expected.dtype)
    reference_class, candidate_class = _classes(rounded), _classes(y)
    r, c, both = finite_pairs(rounded if rounded_reference else unrounded, rounded, y)
    error = np.abs(c - r)
    ulp = np.ones_like(error) if fmt is None else spacing(rounded[both], fmt)
    return Observation(
        output=expected.name,
        shape=tuple(output.shape),
        dtype=str(output.dtype).removeprefix("torch."),
        strides=tuple(output.stride()),
        rounded_reference=rounded_reference,
        table=_table(reference_class, candidate_class),
        hulls={name: upper_hull(scale(r, c), error) for name, scale in SCALES.items()},
        moments=moments_of(r, c),
        error_histogram=_histogram(error),
        ulp_histogram=_histogram(error / ulp),
        unequal=_unequal(expected, output, rounded, y),
        bits=hashlib.sha256(raw_bytes(output).tobytes()).hexdigest(),
        interval=(
            None if expected.counted else _interval(interval or RoundingInterval(), expected, y)
        ),
        baseline=baseline_moments(expected, rounded_reference),
    )


def finite_pairs(reference: Array, rounded: Array, y: Array) -> tuple[Array, Array, Flags]:
    """Reference and output where both are finite, one after another, and where that is.

    `rounded` is the reference in the output's dtype, where it may overflow.
    """
    both = np.asarray(np.isfinite(rounded) & np.isfinite(y))
    return reference[both], y[both], both


def baseline_moments(expected: ExpectedOutput, rounded_reference: bool) -> Moments | None:
    """Moments of torch's own result in the tested dtype, where the expectation has it."""
    if expected.baseline is None:
        return None
    reference = np.asarray(expected.reference, np.float64)
    rounded = round_to_dtype(reference, expected.dtype)
    chosen = rounded if rounded_reference else reference
    r, c, _ = finite_pairs(chosen, rounded, expected.baseline)
    return moments_of(r, c)


def check_reference(rounded: bool, seen: Observation) -> None:
    """Raise `NotJudgeable` where the record is against the other kind of reference."""
    if rounded != seen.rounded_reference:
        kind = "rounded" if rounded else "unrounded"
        raise NotJudgeable(f"not judgeable from this record: it has no {kind} reference")


def fails_on(hull: Sequence[tuple[float, float]], atol: float, rtol: float) -> bool:
    """Does an element exceed `atol + rtol * scale`, exactly?"""
    return any(
        Fraction(error) > Fraction(atol) + Fraction(rtol) * Fraction(scale) for scale, error in hull
    )


def nonfinite_differs(seen: Observation, rule: NonfiniteRule) -> bool:
    """Does a NaN or an infinity stand where that rule forbids it?"""
    table = np.asarray(seen.table)
    if rule == "output_only":
        return bool(table[:, :3].any() or table[1:3, 3:].any())
    matching = np.diag(np.diag(table))
    matching[3:, 3:] = table[3:, 3:]
    return bool((table != matching).any() or (rule == "no_nan" and table[:, 0].any()))


def upper_hull(scale: Array, error: Array) -> Hull:
    """Vertices (scale, error) on which some limit with atol, rtol >= 0 fails first, exactly."""
    order = np.lexsort((-error, scale))
    scale, error = scale[order], error[order]
    # A point is of no use beside one of smaller or equal scale and at least its error.
    best = np.concatenate(([-1.0], np.maximum.accumulate(error)[:-1])) if error.size else error
    useful = error > best
    hull: list[tuple[float, float]] = []
    for point in zip(scale[useful].tolist(), error[useful].tolist(), strict=True):
        while len(hull) > 1 and not _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return tuple(hull)


def _above(
    left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]
) -> bool:
    """Does the middle point lie above the line through the others?"""
    x0, y0, x1, y1, x2, y2 = (
        Fraction(number) for point in (left, middle, right) for number in point
    )
    return (y1 - y0) * (x2 - x0) > (y2 - y0) * (x1 - x0)


def _classes(values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    conditions = [np.isnan(values), values == np.inf, values == -np.inf, values == 0]
    return np.select(conditions, [0, 1, 2, 3], default=4)


def _table(
    reference: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    candidate: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
) -> tuple[tuple[int, ...], ...]:
    size = len(CLASSES)
    counts = np.bincount((reference * size + candidate).ravel(), minlength=size * size)
    return tuple(tuple(row) for row in counts.reshape(size, size).tolist())


def moments_of(r: Array, c: Array) -> Moments:
    """Moments of a reference and an output, both finite."""
    error = np.abs(c - r)

    def largest(values: Array) -> float:
        return float(np.abs(values).max(initial=0.0))

    return Moments(
        n=int(r.size),
        error=float(error.sum()),
        signed_error=float((c - r).sum()),
        error_squared=float((error**2).sum()),
        reference=float(np.abs(r).sum()),
        reference_squared=float((r**2).sum()),
        candidate_squared=float((c**2).sum()),
        product=float((r * c).sum()),
        largest_error=largest(error),
        largest_reference=largest(r),
        largest_candidate=largest(c),
    )


def _histogram(values: Array) -> dict[int, int]:
    powers, counts = np.unique(np.frexp(values[values > 0])[1] - 1, return_counts=True)
    return {int(power): int(count) for power, count in zip(powers, counts, strict=True)}


def _unequal(expected: ExpectedOutput, output: torch.Tensor, rounded: Array, y: Array) -> int:
    if expected.counted:
        return int((output.detach().cpu().numpy() != expected.reference).sum())
    return int(((rounded != y) & ~(np.isnan(rounded) & np.isnan(y))).sum())


def _interval(comparator: RoundingInterval, expected: ExpectedOutput, y: Array) -> Interval:
    error, parted = unexplained_error(expected, y)
    ratio = error / unit(comparator, expected)
    finite = np.isfinite(error)
    return Interval(
        score=float(ratio[finite].max(initial=0.0)),
        overflow_score=float(ratio[finite & parted].max(initial=0.0)),
        broken=int((~finite).sum()),
        growth=comparator.growth,
        middle_weight=comparator.middle_weight(expected) if expected.mid_unit else 0.0,
        contraction=expected.contraction,
    )
