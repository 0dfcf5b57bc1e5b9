"""Limits per element that are linear in a magnitude: allclose, absolute, and an envelope."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import Array, round_to_dtype, to_float64, torch_dtype
from gatecert.oracle.judgement import (
    SCALES,
    Elements,
    Judgement,
    NonfiniteRule,
    NotJudgeable,
    RecordJudgement,
    check_limits,
    exceeds,
    misplaced,
    summarise,
    verdict_of,
)
from gatecert.oracle.observation import (
    Observation,
    check_reference,
    fails_on,
    nonfinite_differs,
)


class AllClose(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """`|y - r| <= atol + rtol * scale`, as `torch.allclose` has it.

    `torch.allclose(a, b)` scales by its second argument: `scale_by` says which that is.
    `compare_dtype="output"` computes it as torch does, in the output's dtype, on the
    reference rounded to it; `"float64"` computes in float64, with `round_reference` on the
    rounded reference.
    """

    atol: float
    rtol: float
    scale_by: Literal["reference", "candidate", "sum"] = "reference"
    equal_nan: bool = True
    compare_dtype: Literal["float64", "output"] = "float64"
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.atol, self.rtol)

    @property
    def nonfinite(self) -> NonfiniteRule:
        """What NaN may do."""
        return "match" if self.equal_nan else "no_nan"

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """Each element by its own limit."""
        if self.compare_dtype == "output":
            return summarise(_as_torch(self, expected, output))
        return summarise(
            _linear(
                expected,
                to_float64(output),
                self.atol,
                self.rtol,
                self.scale_by,
                self.nonfinite,
                self.round_reference,
            )
        )

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """On the hull of the errors; torch's own arithmetic leaves no such trace."""
        if self.compare_dtype == "output":
            raise NotJudgeable(
                "not judgeable from this record: torch.allclose in the output's own dtype"
            )
        check_reference(self.round_reference, seen)
        too_far = fails_on(seen.hulls[self.scale_by], self.atol, self.rtol)
        return verdict_of(nonfinite_differs(seen, self.nonfinite), too_far)


class Absolute(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """`|y - r| <= atol`."""

    atol: float
    nonfinite: NonfiniteRule = "match"
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.atol)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """Each element by the one limit."""
        y = to_float64(output)
        return summarise(
            _linear(expected, y, self.atol, 0.0, "reference", self.nonfinite, self.round_reference)
        )

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the largest error."""
        check_reference(self.round_reference, seen)
        too_far = seen.moments.largest_error > self.atol
        return verdict_of(nonfinite_differs(seen, self.nonfinite), too_far)


class Envelope(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """`|y - r| <= factor * observed`: what controls showed, with a margin.

    `observed` is a statistic of the controls' largest error per run: its 95th percentile
    (published with a factor of 1.5 by gpuemu: one run in twenty lies above the percentile by
    construction) or the largest of all (with 1.2: the largest and a fifth). `runs` is how many
    there were.
    """

    observed: float
    statistic: Literal["p95", "max"] = "max"
    factor: float = 1.5
    runs: int = 0
    round_reference: bool = False

    def __post_init__(self) -> None:
        check_limits(self.observed, self.factor)
        if self.factor < 1.0:
            raise UsageError(f"an envelope has a factor of 1 or more, not {self.factor:g}")

    @property
    def limit(self) -> Absolute:
        """The absolute tolerance that it comes to."""
        return Absolute(self.factor * self.observed, round_reference=self.round_reference)

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """As the absolute tolerance does."""
        return self.limit.judge(expected, output)

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """As the absolute tolerance does."""
        return self.limit.judge_record(seen)


def _linear(
    expected: ExpectedOutput,
    output: Array,
    atol: float,
    rtol: float,
    scale_by: str,
    rule: NonfiniteRule,
    round_reference: bool,
) -> Elements:
    rounded = round_to_dtype(expected.reference, expected.dtype)
    finite = np.isfinite(rounded) & np.isfinite(output)
    r = np.where(finite, rounded if round_reference else expected.reference, 0.0)
    y = np.where(finite, output, 0.0)
    scale = SCALES[scale_by](r, y)
    nonfinite = misplaced(rounded, output, rule)
    error = np.where(nonfinite, np.inf, np.abs(y - r))
    failed = nonfinite | exceeds(np.abs(y - r), atol, rtol, scale)
    return Elements(error, np.asarray(atol + rtol * scale), failed, nonfinite)


def _as_torch(comparator: AllClose, expected: ExpectedOutput, output: torch.Tensor) -> Elements:
    rounded = round_to_dtype(expected.reference, expected.dtype)
    reference = torch.from_numpy(rounded).to(torch_dtype(expected.dtype))
    candidate = output.detach().cpu()
    pair = (reference, candidate) if comparator.scale_by == "candidate" else (candidate, reference)
    close = torch.isclose(
        *pair, rtol=comparator.rtol, atol=comparator.atol, equal_nan=comparator.equal_nan
    )
    values = to_float64(candidate)
    failed = ~close.numpy()
    nonfinite = failed & ~(np.isfinite(rounded) & np.isfinite(values))
    with np.errstate(invalid="ignore"):
        error = np.where(nonfinite, np.inf, np.abs(values - rounded))
        scale = SCALES[comparator.scale_by](rounded, values)
    error = np.where(np.isnan(error), 0.0, error)
    allowance = comparator.atol + comparator.rtol * np.where(np.isfinite(scale), scale, 0.0)
    return Elements(error, allowance, failed, nonfinite)
