"""Comparators: values that say how wrong an output may be, and the function that applies one.

NaN and infinities must stand where they stand in the reference as rounded to the output's
dtype, with the same signs. Linear limits are decided exactly: `err > atol + rtol * scale`
holds or not in real arithmetic on the float64 numbers, so a record of the hull decides alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import InternalError, UsageError
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import Array, round_to_dtype, to_float64, torch_dtype
from gatecert.oracle.tolerance import RoundingInterval, unexplained_error, unit

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


class AllClose(msgspec.Struct, frozen=True, tag=True):
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
        _check_limits(self.atol, self.rtol)


class Absolute(msgspec.Struct, frozen=True, tag=True):
    """`|y - r| <= atol`."""

    atol: float
    nonfinite: NonfiniteRule = "match"
    round_reference: bool = False

    def __post_init__(self) -> None:
        _check_limits(self.atol)


class Exact(msgspec.Struct, frozen=True, tag=True):
    """`y` is `r` rounded to the output's dtype; -0 equals +0."""


def _check_limits(*limits: float) -> None:
    for limit in limits:
        if not 0.0 <= limit < float("inf"):
            raise UsageError(f"a tolerance must be finite and not negative, not {limit}")


Comparator: TypeAlias = RoundingInterval | AllClose | Absolute | Exact


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a comparator says of one output.

    `reason` is `""`, `"values"` or `"nonfinite"`. `error` and `allowance` belong to the worst
    element; `score` is the largest error over allowance (at most 1 where it passed).
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
class Elements:
    """Per element: error, allowance, failed, and whether the failure is a non-finite one."""

    error: Array
    allowance: Array
    failed: Flags
    nonfinite: Flags


def judge(comparator: Comparator, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
    """Apply a comparator to one output, whatever device it is on.

    Indices and counts must be equal under every comparator.

    Raises:
        InternalError: the output has another shape; `contract_violation` comes first.
    """
    if tuple(output.shape) != expected.shape:
        raise InternalError(
            f"{expected.name} has shape {tuple(output.shape)}, not {expected.shape}; "
            "check the contract before judging values"
        )
    if expected.counted:
        return _summarise(_integers(expected, output))
    values = to_float64(output)
    if isinstance(comparator, RoundingInterval):
        return _summarise(_interval(comparator, expected, values))
    if isinstance(comparator, AllClose):
        if comparator.compare_dtype == "output":
            return _summarise(_as_torch(comparator, expected, output))
        return _summarise(_all_close(comparator, expected, values))
    if isinstance(comparator, Absolute):
        return _summarise(_absolute(comparator, expected, values))
    return _summarise(_exact(expected, values))


def exceeds(error: Array, atol: float, rtol: float, scale: Array) -> Flags:
    """`error > atol + rtol * scale`, decided exactly; near-ties go through fractions."""
    allowance = atol + rtol * scale
    failed = np.asarray(error > allowance)
    close = np.abs(error - allowance) <= 2.0**-50 * (np.abs(error) + allowance)
    for at in zip(*np.nonzero(close & (error > 0)), strict=True):
        exact = Fraction(atol) + Fraction(rtol) * Fraction(float(scale[at]))
        failed[at] = Fraction(float(error[at])) > exact
    return failed


def misplaced(reference: Array, output: Array) -> Flags:
    """Where NaN or an infinity stands in one but not, with the same sign, in the other."""
    nan = np.isnan(reference) != np.isnan(output)
    infinite = (np.isinf(reference) | np.isinf(output)) & (reference != output)
    return np.asarray(nan | (infinite & ~np.isnan(reference) & ~np.isnan(output)))


def _interval(comparator: RoundingInterval, expected: ExpectedOutput, output: Array) -> Elements:
    error, nonfinite = unexplained_error(expected, output)
    units = unit(comparator, expected)
    limit = comparator.limit(expected)
    failed = error / units > limit
    return Elements(error, limit * units, failed, failed & nonfinite)


def _all_close(comparator: AllClose, expected: ExpectedOutput, output: Array) -> Elements:
    rule: NonfiniteRule = "match" if comparator.equal_nan else "no_nan"
    return _linear(
        expected,
        output,
        comparator.atol,
        comparator.rtol,
        comparator.scale_by,
        rule,
        comparator.round_reference,
    )


def _absolute(comparator: Absolute, expected: ExpectedOutput, output: Array) -> Elements:
    return _linear(
        expected,
        output,
        comparator.atol,
        0.0,
        "reference",
        comparator.nonfinite,
        comparator.round_reference,
    )


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
    nonfinite = misplaced(rounded, output)
    if rule == "no_nan":
        nonfinite = nonfinite | np.isnan(output)
    elif rule == "output_only":
        nonfinite = ~np.isfinite(output) | (np.isinf(rounded) & np.isfinite(output))
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


def _exact(expected: ExpectedOutput, output: Array) -> Elements:
    rounded = round_to_dtype(expected.reference, expected.dtype)
    nonfinite = misplaced(rounded, output)
    failed = nonfinite | (np.isfinite(rounded) & (rounded != output))
    with np.errstate(invalid="ignore"):
        error = np.where(failed, np.abs(output - rounded), 0.0)
    return Elements(np.where(nonfinite, np.inf, error), np.zeros(expected.shape), failed, nonfinite)


def _integers(expected: ExpectedOutput, output: torch.Tensor) -> Elements:
    values: npt.NDArray[Any] = output.detach().cpu().numpy()
    failed = np.asarray(values != expected.reference)
    error = np.abs(values.astype(np.float64) - expected.reference.astype(np.float64))
    nothing = np.zeros(expected.shape)
    # Large integers may differ by less than float64 shows.
    return Elements(np.where(failed, np.maximum(error, 1.0), 0.0), nothing, failed, nothing > 0)


def _summarise(elements: Elements) -> Judgement:
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
