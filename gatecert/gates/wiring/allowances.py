"""How wide a tolerance is on the values it was used on."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import torch

_MOST_ELEMENTS = 1 << 16
_SMALLEST = 1 / 64
_DEFAULTS = {
    torch.bfloat16: (1e-5, 1.6e-2),
    torch.float16: (1e-5, 1e-3),
    torch.float32: (1e-5, 1.3e-6),
    torch.float64: (1e-7, 1e-7),
}
"""(atol, rtol) of `torch.testing.assert_close` in torch 2.13, coarsest first."""


class Allowance(msgspec.Struct, frozen=True):
    """See `Compared`; a typical element is the median one of those that are not much smaller
    than the largest. `of_default` is None for 16-bit values: there rounding alone needs most of
    what the default allows."""

    wrong_by: float
    of_default: float | None
    used: float


def default_tolerance(dtype: torch.dtype) -> tuple[float, float]:
    """(atol, rtol) of `torch.testing.assert_close`; exact for what is no float."""
    return _DEFAULTS.get(dtype, (0.0, 0.0))


def allowance_of(actual: Any, expected: Any, atol: float, rtol: float) -> Allowance | None:
    """The allowance `atol + rtol * |expected|` held against values and errors; None where there
    are no floats to hold it against."""
    pair = [_as_tensor(side) for side in (actual, expected)]
    if not all(side.is_floating_point() and side.numel() for side in pair):
        return None
    shape = np.broadcast_shapes(pair[0].shape, pair[1].shape)
    a, b = (_sample(side.broadcast_to(shape)) for side in pair)
    fmt = min((_format_of(side) for side in (a, b)), key=list(_DEFAULTS).index)
    a, b = a.double(), b.double()
    finite = a.isfinite() & b.isfinite()
    a, size = a[finite], b[finite].abs()
    error = (a - b[finite]).abs()
    allowed = atol + rtol * size
    typical = (size > 0) & (size >= size.max() * _SMALLEST) if size.numel() else size > 0
    if not typical.any() or not (allowed > 0).all():
        return None
    default = _DEFAULTS[fmt][0] + _DEFAULTS[fmt][1] * size
    wide = fmt.itemsize > 2
    return Allowance(
        wrong_by=_rounded((allowed / size)[typical].median()),
        of_default=_rounded((allowed / default)[typical].median()) if wide else None,
        used=_rounded((error / allowed).max()),
    )


def _as_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.from_numpy(np.array(value))


def _sample(values: torch.Tensor) -> torch.Tensor:
    flat = values.reshape(-1)
    return flat[:: max(1, flat.numel() // _MOST_ELEMENTS)]


def _format_of(values: torch.Tensor) -> torch.dtype:
    """The coarsest format that holds all values: they may have been widened to be compared."""
    finite = values[values.isfinite()]
    for fmt in _DEFAULTS:
        if fmt.itemsize <= values.dtype.itemsize and torch.equal(finite.to(fmt).to(values), finite):
            return fmt
    return torch.float64


def _rounded(value: torch.Tensor) -> float:
    return float(f"{float(value):.3g}")
