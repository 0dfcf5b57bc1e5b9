"""Observe once, judge many: a record of one output that later comparators can be asked about.

A linear allowance `atol + rtol * scale` fails on some element exactly if it fails on a vertex
of the upper hull of the points (scale, error), so the hulls answer for every atol and rtol.
What a record cannot answer (torch's arithmetic in low precision, another growth law) raises
`NotJudgeable`; it is never guessed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.comparators import (
    SCALES,
    Absolute,
    AllClose,
    Comparator,
    NonfiniteRule,
)
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import (
    FORMATS,
    Array,
    raw_bytes,
    round_to_dtype,
    spacing,
    to_float64,
)
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


class NotJudgeable(UsageError):
    """The record does not hold what this comparator needs."""


@dataclass(frozen=True, slots=True)
class RecordJudgement:
    """Passed or not, and why not: `"values"` or `"nonfinite"`."""

    passed: bool
    reason: str


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
    fmt = FORMATS.get(expected.dtype)
    rounded = round_to_dtype(unrounded, expected.dtype)
    reference_class, candidate_class = _classes(rounded), _classes(y)
    both = np.isfinite(rounded) & np.isfinite(y)
    r, c = (rounded if rounded_reference else unrounded)[both], y[both]
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
        moments=_moments(r, c, error),
        error_histogram=_histogram(error),
        ulp_histogram=_histogram(error / ulp),
        unequal=_unequal(expected, output, rounded, y),
        bits=hashlib.sha256(raw_bytes(output).tobytes()).hexdigest(),
        interval=(
            None if expected.counted else _interval(interval or RoundingInterval(), expected, y)
        ),
    )


def judge_observation(comparator: Comparator, seen: Observation) -> RecordJudgement:
    """Judge a record as `comparators.judge` would have judged the output.

    Raises:
        NotJudgeable: the record does not hold what the comparator needs.
    """
    if seen.interval is None:
        return RecordJudgement(seen.unequal == 0, "values" if seen.unequal else "")
    if isinstance(comparator, RoundingInterval):
        return _judge_interval(comparator, seen.interval)
    if isinstance(comparator, AllClose):
        if comparator.compare_dtype == "output":
            raise NotJudgeable(
                "not judgeable from this record: torch.allclose in the output's own dtype"
            )
        _same_reference(comparator.round_reference, seen)
        hull = seen.hulls[comparator.scale_by]
        rule: NonfiniteRule = "match" if comparator.equal_nan else "no_nan"
        return _verdict(_nonfinite(seen, rule), _fails_on(hull, comparator.atol, comparator.rtol))
    if isinstance(comparator, Absolute):
        _same_reference(comparator.round_reference, seen)
        too_far = _fails_on(seen.hulls["reference"], comparator.atol, 0.0)
        return _verdict(_nonfinite(seen, comparator.nonfinite), too_far)
    return _verdict(_nonfinite(seen, "match"), seen.unequal > 0)


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


def _fails_on(hull: Sequence[tuple[float, float]], atol: float, rtol: float) -> bool:
    return any(
        Fraction(error) > Fraction(atol) + Fraction(rtol) * Fraction(scale) for scale, error in hull
    )


def _same_reference(rounded: bool, seen: Observation) -> None:
    if rounded != seen.rounded_reference:
        kind = "rounded" if rounded else "unrounded"
        raise NotJudgeable(f"not judgeable from this record: it has no {kind} reference")


def _judge_interval(comparator: RoundingInterval, seen: Interval) -> RecordJudgement:
    limit = comparator.contraction_constant if seen.contraction else comparator.constant
    weight = comparator.lower_precision_constant / limit
    if comparator.growth != seen.growth:
        raise NotJudgeable("not judgeable from this record: another growth law")
    if seen.middle_weight and weight != seen.middle_weight:
        raise NotJudgeable(
            "not judgeable from this record: another weight of the lower-precision step"
        )
    return _verdict(seen.broken > 0 or seen.overflow_score > limit, seen.score > limit)


def _verdict(nonfinite: bool, values: bool) -> RecordJudgement:
    reason = "nonfinite" if nonfinite else "values" if values else ""
    return RecordJudgement(not reason, reason)


def _nonfinite(seen: Observation, rule: NonfiniteRule) -> bool:
    table = np.asarray(seen.table)
    if rule == "output_only":
        return bool(table[:, :3].any() or table[1:3, 3:].any())
    matching = np.diag(np.diag(table))
    matching[3:, 3:] = table[3:, 3:]
    return bool((table != matching).any() or (rule == "no_nan" and table[:, 0].any()))


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


def _moments(r: Array, c: Array, error: Array) -> Moments:
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
