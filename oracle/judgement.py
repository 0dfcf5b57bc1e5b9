"""What a comparator says of an output, and the rules that all comparators share.

NaN and infinities must stand where they stand in the reference as rounded to the output's
dtype, with the same signs. Linear limits are decided exactly: `err > atol + rtol * scale`
holds or not in real arithmetic on the float64 numbers, so a record of the hull decides alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import UsageError
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import Array

if TYPE_CHECKING:
    from gatecert.oracle.observation import Observation

Flags: TypeAlias = npt.NDArray[np.bool_]
NonfiniteRule: TypeAlias = Literal["match", "no_nan", "output_only"]
"""`match`: positions and signs as in the reference. `no_nan`: also, a NaN always fails.
`output_only`: a non-finite output fails, a finite one passes where the reference is NaN
(a published checker's defect, for its preset)."""
SCALES: dict[str, Callable[[Array, Array], Array]] = {
    "reference": lambda r, y: np.abs(r),
    "candidate": lambda r, y: np.abs(y),
    "sum": lambda r, y: np.abs(r) + np.abs(y),
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a comparator says of one output.

    `reason` is `""`, `"values"` or `"nonfinite"`. `error` and `allowance` belong to the worst
    element, or to the whole output where the comparator measures it as a whole; `score` is the
    largest error over allowance (at most 1 where it passed).
    """

    passed: bool
    reason: str
    mismatched: int
    compared: int
    worst_index: tuple[int, ...]
    error: float
    allowance: float
    score: float

    @property
    def share(self) -> float:
        """Part of the elements that are wrong."""
        return self.mismatched / self.compared if self.compared else 0.0


@dataclass(frozen=True, slots=True)
class RecordJudgement:
    """Passed or not, and why not: `"values"` or `"nonfinite"`."""

    passed: bool
    reason: str


class NotJudgeable(UsageError):
    """The record does not hold what this comparator needs."""


class ToleranceModel(Protocol):
    """What every comparator can do; a comparator is data, a frozen `msgspec.Struct`.

    Both get outputs of the right shape that hold no counted integers.
    """

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """Judge an output, element by element or as a whole."""
        ...

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """Judge the record of an output as `judge` would have judged the output.

        Raises:
            NotJudgeable: the record does not hold what that needs; it is never guessed.
        """
        ...


@dataclass(frozen=True, slots=True)
class Elements:
    """Per element: error, allowance, failed, and whether the failure is a non-finite one."""

    error: Array
    allowance: Array
    failed: Flags
    nonfinite: Flags


def check_limits(*limits: float) -> None:
    """Refuse a tolerance that is none.

    Raises:
        UsageError: a limit is negative, infinite or NaN.
    """
    for limit in limits:
        if not 0.0 <= limit < float("inf"):
            raise UsageError(f"a tolerance must be finite and not negative, not {limit}")


def exceeds(error: Array, atol: float, rtol: float, scale: Array) -> Flags:
    """`error > atol + rtol * scale`, decided exactly; near-ties go through fractions."""
    allowance = atol + rtol * scale
    failed = np.asarray(error > allowance)
    close = np.abs(error - allowance) <= 2.0**-50 * (np.abs(error) + allowance)
    for at in zip(*np.nonzero(close & (error > 0)), strict=True):
        exact = Fraction(atol) + Fraction(rtol) * Fraction(float(scale[at]))
        failed[at] = Fraction(float(error[at])) > exact
    return failed


def misplaced(reference: Array, output: Array, rule: NonfiniteRule = "match") -> Flags:
    """Where NaN or an infinity stands in one but not, with the same sign, in the other."""
    if rule == "output_only":
        return np.asarray(~np.isfinite(output) | (np.isinf(reference) & np.isfinite(output)))
    nan = np.isnan(reference) != np.isnan(output)
    infinite = (np.isinf(reference) | np.isinf(output)) & (reference != output)
    wrong = nan | (infinite & ~np.isnan(reference) & ~np.isnan(output))
    return np.asarray(wrong | np.isnan(output) if rule == "no_nan" else wrong)


def summarise(elements: Elements) -> Judgement:
    """The judgement on an output of which every element was judged."""
    if elements.error.size == 0:
        return Judgement(True, "", 0, 0, (), 0.0, 0.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = elements.error / elements.allowance
    ratio = np.where(elements.error == 0, 0.0, ratio)
    # Decisions at the limit are exact; the ratio is rounded, so it must not contradict them.
    ratio = np.where(elements.failed, np.maximum(ratio, np.nextafter(1.0, 2.0)), ratio)
    ratio = np.where(elements.failed, ratio, np.minimum(ratio, 1.0))
    flat = int(np.argmax(np.where(elements.nonfinite, np.inf, ratio)))
    worst = np.unravel_index(flat, elements.error.shape)
    any_nonfinite, any_failed = bool(elements.nonfinite.any()), bool(elements.failed.any())
    return Judgement(
        passed=not any_failed,
        reason="nonfinite" if any_nonfinite else "values" if any_failed else "",
        mismatched=int(elements.failed.sum()),
        compared=elements.error.size,
        worst_index=tuple(int(axis) for axis in worst),
        error=float(elements.error[worst]),
        allowance=float(elements.allowance[worst]),
        score=float(ratio[worst]),
    )


def verdict_of(nonfinite: bool, values: bool) -> RecordJudgement:
    """The judgement on a record with misplaced NaN or infinities, or values too far off."""
    reason = "nonfinite" if nonfinite else "values" if values else ""
    return RecordJudgement(not reason, reason)
