"""Floating-point formats of kernel outputs: spacing and correct rounding, in float64.

Every value of float8, float16, bfloat16 and float32 is a float64 value, so the spacing of a format
can be computed there without error, subnormals and the largest value included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import UsageError

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary format: `precision` significant bits, exponents `min_exponent..max_exponent`.

    One that `saturates` has no infinity: its topmost code is its NaN, and what is too large becomes
    the largest value, as torch and the hardware's saturating conversion do.
    """

    name: str
    precision: int
    min_exponent: int
    max_exponent: int
    saturates: bool = False

    @property
    def unit(self) -> float:
        """Unit roundoff u: half the spacing just above 1."""
        return 2.0**-self.precision

    @property
    def largest(self) -> float:
        """The largest finite value."""
        step = 2.0 ** (1 - self.precision)
        return (2.0 - (2 if self.saturates else 1) * step) * 2.0**self.max_exponent

    @property
    def smallest_normal(self) -> float:
        """The smallest normal value; below it the spacing is constant."""
        return 2.0**self.min_exponent

    @property
    def overflow(self) -> float:
        """Magnitudes from here on round to infinity; infinite where there is none."""
        if self.saturates:
            return math.inf
        return self.largest + 2.0 ** (self.max_exponent - self.precision)


FORMATS = {
    "float16": FloatFormat("float16", 11, -14, 15),
    "bfloat16": FloatFormat("bfloat16", 8, -126, 127),
    "float32": FloatFormat("float32", 24, -126, 127),
}
"""Formats that an operation is tested in."""
STORAGE_FORMATS = {
    "float8_e4m3fn": FloatFormat("float8_e4m3fn", 4, -6, 8, saturates=True),
    "float8_e5m2": FloatFormat("float8_e5m2", 3, -14, 15),
}
"""Formats of tensors with a kind of their own: quantised values (Micikevicius et al., FP8 Formats
for Deep Learning, arXiv 2209.05433)."""

TORCH_DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
    "bool": torch.bool,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
}


def format_of(dtype: str) -> FloatFormat | None:
    """The floating-point format called `dtype`, or None for an integer dtype."""
    return FORMATS.get(dtype) or STORAGE_FORMATS.get(dtype)


def is_float_format(dtype: str) -> bool:
    """Whether that is a floating-point format here."""
    return format_of(dtype) is not None


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype called `name`.

    Raises:
        UsageError: there is no such dtype here.
    """
    try:
        return TORCH_DTYPES[name]
    except KeyError:
        raise UsageError(f"dtype {name!r} is not one of {', '.join(TORCH_DTYPES)}") from None


def spacing(values: Array, fmt: FloatFormat) -> Array:
    """Distance from each |value| to the next larger value of the format (finite values)."""
    exponent = np.frexp(np.abs(values))[1] - 1
    exponent = np.where(values == 0, fmt.min_exponent, exponent)
    step = np.maximum(exponent, fmt.min_exponent) - (fmt.precision - 1)
    return np.asarray(np.ldexp(1.0, step))


def round_to(values: Array, fmt: FloatFormat) -> Array:
    """Round float64 to the format, once, to nearest even; overflow gives infinity, if it has one.

    `tensor.to(torch.float16)` would round twice (through float32).
    """
    values = np.asarray(values, np.float64)
    finite = np.isfinite(values)
    safe = np.where(finite, values, 0.0)
    step = spacing(safe, fmt)
    with np.errstate(over="ignore"):
        rounded = np.copysign(np.rint(safe / step) * step, safe)
    top = fmt.largest if fmt.saturates else np.inf
    rounded = np.where(np.abs(rounded) > fmt.largest, np.copysign(top, safe), rounded)
    return np.where(finite, rounded, np.clip(values, -top, top))


def round_to_dtype(values: Array, dtype: str) -> Array:
    """Round float64 to a float format, or to whole numbers for an integer dtype."""
    fmt = format_of(dtype)
    if fmt is not None:
        return round_to(values, fmt)
    return np.asarray(np.rint(np.asarray(values, np.float64)))


def half_gap_towards(outputs: Array, reference: Array, fmt: FloatFormat) -> Array:
    """Half the distance from each output to its neighbour in the format, towards the reference.

    Finite arrays only. Below a power of two the neighbour is nearer; beyond the largest value
    the neighbour is the value that would come next.
    """
    magnitude = np.abs(outputs)
    outward = spacing(outputs, fmt)
    power_of_two = (np.frexp(magnitude)[0] == 0.5) & (magnitude > fmt.smallest_normal)
    inward = np.where(power_of_two, outward / 2, outward)
    goes_inward = np.where(outputs >= 0, reference < outputs, reference > outputs) & (outputs != 0)
    return np.where(goes_inward, inward, outward) / 2


def raw_bytes(tensor: torch.Tensor) -> npt.NDArray[np.uint8]:
    """The bytes of a tensor's elements, in the order of its indices, wherever they lie.

    A copy, since torch calls a lone element contiguous whatever its stride.
    """
    flat = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1)
    found: npt.NDArray[np.uint8] = flat.view(torch.uint8).numpy()
    return found


def to_float64(tensor: torch.Tensor) -> Array:
    """The values of a tensor in float64, without error for every format here."""
    array: Array = tensor.detach().to(device="cpu", dtype=torch.float64).contiguous().numpy()
    return array
