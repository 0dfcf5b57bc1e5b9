"""Numbers that measure an output as a whole: RMS, cosine, and the error against torch's own.

All are blind to single elements: a mean forgives one wrong element among many, and a cosine a
wrong scale. They are here to be judged, and because published checkers use them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import round_to_dtype, to_float64
from gatecert.oracle.judgement import (
    Elements,
    Judgement,
    NotJudgeable,
    RecordJudgement,
    check_limits,
    misplaced,
    summarise,
    verdict_of,
)
from gatecert.oracle.observation import (
    Moments,
    Observation,
    baseline_moments,
    check_reference,
    finite_pairs,
    moments_of,
    nonfinite_differs,
)


class RootMeanSquare(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The RMS of `y - r` is at most `limit`; if `relative`, at most `limit` times that of `r`."""

    limit: float
    relative: bool = False
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.limit)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """By the squares over all finite elements."""
        return _judge_whole(expected, output, self.round_reference, self.measure)

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the record's own squares."""
        return _judge_record(seen, self.round_reference, *self.measure(seen.moments))

    def measure(self, moments: Moments) -> tuple[float, float]:
        """RMS error and what it may be."""
        scale = _rms(moments.reference_squared, moments.n) if self.relative else 1.0
        return _rms(moments.error_squared, moments.n), self.limit * scale


class Cosine(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """`1 - r.y / mean(|r|^2, |y|^2)` is at most `limit`.

    With the geometric mean that is the cosine distance, which no common scale changes; with the
    arithmetic one (DeepGEMM's `calc_diff`) a wrong scale shows as well. Two outputs of nothing
    but zeros are equal, one of them is as far off as can be.
    """

    limit: float
    mean: Literal["geometric", "arithmetic"] = "geometric"
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.limit)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """By the products over all finite elements."""
        return _judge_whole(expected, output, self.round_reference, self.measure)

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the record's own products."""
        return _judge_record(seen, self.round_reference, *self.measure(seen.moments))

    def measure(self, moments: Moments) -> tuple[float, float]:
        """Distance and what it may be."""
        if moments.largest_error == 0.0:
            return 0.0, self.limit  # rounding would leave a little
        r, y = moments.reference_squared, moments.candidate_squared
        mean = math.sqrt(r) * math.sqrt(y) if self.mean == "geometric" else (r + y) / 2
        return (1.0 if mean == 0.0 else max(0.0, 1.0 - moments.product / mean)), self.limit


class BaselineRatio(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The error is at most `factor` times that of torch's own result in the tested dtype, on the
    same case, and `atol`.

    `of="largest"` with a factor of 2 is what flash-attention's tests ask for
    (Dao-AILab/flash-attention, tests/test_flash_attn.py), `"mean"` and `"rms"` compare means.
    Where torch's result is exact by luck, nothing but `atol` is allowed.
    """

    factor: float = 2.0
    atol: float = 0.0
    of: Literal["largest", "mean", "rms"] = "largest"
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.factor, self.atol)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """By both errors over all finite elements.

        Raises:
            UsageError: the expectation was made without torch's own result.
        """
        baseline = baseline_moments(expected, self.round_reference)
        if baseline is None:
            raise UsageError("a baseline ratio needs torch's own result; expect it with the case")
        return _judge_whole(
            expected, output, self.round_reference, lambda own: self.measure(own, baseline)
        )

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the record's moments of both."""
        if seen.baseline is None:
            raise NotJudgeable("not judgeable from this record: it has no result of torch's own")
        measured = self.measure(seen.moments, seen.baseline)
        return _judge_record(seen, self.round_reference, *measured)

    def measure(self, own: Moments, baseline: Moments) -> tuple[float, float]:
        """Error and what it may be."""
        return self._error(own), self.factor * self._error(baseline) + self.atol

    def _error(self, moments: Moments) -> float:
        if self.of == "largest":
            return moments.largest_error
        if self.of == "mean":
            return moments.error / moments.n if moments.n else 0.0
        return _rms(moments.error_squared, moments.n)


def _rms(squares: float, n: int) -> float:
    return math.sqrt(squares / n) if n else 0.0


def _judge_whole(
    expected: ExpectedOutput,
    output: torch.Tensor,
    round_reference: bool,
    measure: Callable[[Moments], tuple[float, float]],
) -> Judgement:
    """One error and one allowance for all elements; those that carry it are the mismatched."""
    y = to_float64(output)
    rounded = round_to_dtype(expected.reference, expected.dtype)
    r, c, both = finite_pairs(rounded if round_reference else expected.reference, rounded, y)
    moments = moments_of(r, c)
    error, allowance = measure(moments)
    nonfinite = misplaced(rounded, y)
    distance = np.zeros(expected.shape)
    distance[both] = np.abs(c - r)
    share = _rms(moments.error_squared, moments.n)
    carrying = (error > allowance) & both & (distance >= share) & (distance > 0)
    elements = Elements(
        np.where(nonfinite, np.inf, distance),
        np.full(expected.shape, share),
        nonfinite | carrying,
        nonfinite,
    )
    found = summarise(elements)
    if nonfinite.any() or not distance.size:
        return found
    score = error / allowance if allowance else 0.0 if error == 0.0 else math.inf
    score = min(score, 1.0) if found.passed else max(score, math.nextafter(1.0, 2.0))
    return replace(found, error=error, allowance=allowance, score=score)


def _judge_record(
    seen: Observation, round_reference: bool, error: float, allowance: float
) -> RecordJudgement:
    check_reference(round_reference, seen)
    return verdict_of(nonfinite_differs(seen, "match"), error > allowance)
