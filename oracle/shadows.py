"""A magnitude shadow for operations that bring none: noise at the size of fp32 rounding.

The reference is run a few times with every input scaled by 1 + u * noise. The spread, in
units of u, stands for what rounding can do; |y| and, per element, the largest input are added
because rounding inside the operation is invisible to noise on its inputs (a difference of
equal numbers gives 0 while a kernel rounds at their size). It is wider than a formula, never
narrower than one rounding of the largest input.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gatecert.oracle.case import Case
from gatecert.oracle.formats import Array, to_float64
from gatecert.oracle.schema import Operation
from gatecert.oracle.streams import Stream

_RUNS = 4
_STEP = 2.0**-24


def noise_shadow(
    operation: Operation, case: Case, exact: list[Any], results: tuple[torch.Tensor, ...]
) -> list[Array]:
    """Per output: largest |change| over u under noise, plus |y|, plus the largest |input|."""
    spreads = [np.zeros(tuple(result.shape)) for result in results]
    for run in range(_RUNS):
        noisy = [_perturb(arg, f"{case.id}#noise{run}.{at}") for at, arg in enumerate(exact)]
        moved = operation.returned(noisy, operation.call(operation.reference, noisy))
        for at, (new, old) in enumerate(zip(moved, results, strict=True)):
            with np.errstate(invalid="ignore"):
                change = np.abs(to_float64(new) - to_float64(old)) / _STEP
            spreads[at] = np.fmax(spreads[at], np.where(np.isfinite(change), change, 0.0))
    floor = max((_largest(arg) for arg in exact if isinstance(arg, torch.Tensor)), default=0.0)
    return [
        spread + np.nan_to_num(np.abs(to_float64(result)), nan=0.0, posinf=0.0) + floor
        for spread, result in zip(spreads, results, strict=True)
    ]


def _perturb(arg: Any, key: str) -> Any:
    if not isinstance(arg, torch.Tensor) or not arg.is_floating_point():
        return arg
    sign = 2.0 * Stream(key).integers(0, 2, tuple(arg.shape)) - 1.0
    return arg * (1.0 + _STEP * torch.from_numpy(sign))


def _largest(arg: torch.Tensor) -> float:
    if not arg.is_floating_point() or arg.numel() == 0:
        return 0.0
    return float(torch.nan_to_num(arg, nan=0.0, posinf=0.0, neginf=0.0).abs().max())
