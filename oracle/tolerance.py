"""The rounding-interval test: what an output's own rounding cannot explain.

A kernel that accumulates in fp32 and rounds once must return the rounding of a number within
a few fp32 roundings of the truth. So the exact half-ULP of the output is subtracted from
|y - r|, and the rest is held against `2^-24 * g(K) * S`: S is the operation's magnitude
shadow, g grows with the reduction length K. A tolerance that contains a whole output ULP
hides what this sees: a constant wrong by 1e-5 through a float16 output.

The constants were measured on an H200 with Triton and vendor kernels, K up to 16384: with
linear growth contractions needed up to 26 units, every other correct kernel less than 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import UsageError
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import Array, format_of, half_gap_towards, to_float64
from gatecert.oracle.judgement import (
    Elements,
    Judgement,
    NotJudgeable,
    RecordJudgement,
    check_limits,
    summarise,
    verdict_of,
)

if TYPE_CHECKING:
    from gatecert.oracle.observation import Observation

Growth: TypeAlias = Literal["linear", "log", "none"]
FP32_UNIT = 2.0**-24
_FLOOR = 2.0**-125
_TILE = 128


class RoundingInterval(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Fails an element whose unexplained error exceeds `constant` units.

    The unit is `2^-24 g(K) S`, plus `u_mid S_mid` where a step in lower precision is declared:
    `lower_precision_constant` of those are allowed. Tensor cores drift linearly on one-sided
    data, hence linear growth and a larger constant for contractions.
    """

    constant: float = 16.0
    contraction_constant: float = 32.0
    lower_precision_constant: float = 4.0
    growth: Growth = "linear"

    def __post_init__(self) -> None:
        check_limits(self.constant, self.contraction_constant, self.lower_precision_constant)
        if not (self.constant and self.contraction_constant):
            raise UsageError("a rounding-interval test needs constants above 0")

    def limit(self, expected: ExpectedOutput) -> float:
        """The constant that applies to this output."""
        return self.contraction_constant if expected.contraction else self.constant

    def middle_weight(self, expected: ExpectedOutput) -> float:
        """Weight of the lower-precision term inside the unit."""
        return self.lower_precision_constant / self.limit(expected)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """Each element by its error beyond the output's own rounding."""
        error, nonfinite = unexplained_error(expected, to_float64(output))
        units, limit = unit(self, expected), self.limit(expected)
        failed = ~(error / units <= limit)
        return summarise(Elements(error, limit * units, failed, failed & nonfinite))

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the record's score, if that is under the same law."""
        found = seen.interval
        if found is None:
            raise NotJudgeable("not judgeable from this record: it has no interval score")
        limit = self.contraction_constant if found.contraction else self.constant
        if self.growth != found.growth:
            raise NotJudgeable("not judgeable from this record: another growth law")
        if found.middle_weight and self.lower_precision_constant / limit != found.middle_weight:
            raise NotJudgeable(
                "not judgeable from this record: another weight of the lower-precision step"
            )
        nonfinite = found.broken > 0 or found.overflow_score > limit
        return verdict_of(nonfinite, found.score > limit)


def growth_factor(growth: Growth, reduction_length: int) -> float:
    """g(K): 1 up to one tile of 128 elements."""
    tiles = max(1.0, reduction_length / _TILE)
    return {"linear": tiles, "log": 1.0 + float(np.log2(tiles)), "none": 1.0}[growth]


def unit(comparator: RoundingInterval, expected: ExpectedOutput) -> Array:
    """One unit of allowed error per element: what a score counts in."""
    rounding = FP32_UNIT * growth_factor(comparator.growth, expected.reduction_length)
    middle = comparator.middle_weight(expected) * expected.mid_unit
    return np.asarray(rounding * expected.shadow + middle * expected.mid_shadow + _FLOOR)


def unexplained_error(
    expected: ExpectedOutput, output: Array
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Error beyond the output's own rounding, and where infinity and finite values part.

    A finite reference near the largest value may round either way: an infinite output is
    short of its reference by what that lacks to the overflow limit. The error is infinite
    where NaN or infinity cannot be explained so. Integers that a kernel rounds to are 1 apart.
    """
    fmt, reference = format_of(expected.dtype), expected.reference
    if fmt is None:
        whole = np.maximum(0.0, np.abs(output - reference) - 0.5)
        return np.asarray(whole), np.zeros(expected.shape, np.bool_)
    both = np.isfinite(reference) & ~np.isnan(output)
    same = (np.isnan(reference) & np.isnan(output)) | (reference == output)
    infinite = both & np.isinf(output)
    r = np.where(both, reference, 0.0)
    y = np.where(both & ~infinite, output, 0.0)
    rounded = np.abs(y - r) - half_gap_towards(y, r, fmt)
    short = fmt.overflow - np.where(infinite, np.sign(output), 0.0) * r
    error = np.maximum(0.0, np.where(infinite, short, rounded))
    parted = ~both | (np.isinf(output) != (np.abs(r) >= fmt.overflow))
    return np.asarray(np.where(both, error, np.where(same, 0.0, np.inf))), np.asarray(parted)
