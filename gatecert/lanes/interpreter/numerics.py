"""How Triton's types are held and rounded in numpy.

bf16 and fp8 are numpy types of their own (from `ml_dtypes`), so an operation on them computes
in float32 and rounds once, to nearest even. Stock Triton holds them as unsigned integers and
computes on the raw bits.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from gatecert.lanes.interpreter.failures import LaneRefusal

Array = npt.NDArray[Any]

_BY_NAME: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "int1": np.bool_,
        "int8": np.int8,
        "uint8": np.uint8,
        "int16": np.int16,
        "uint16": np.uint16,
        "int32": np.int32,
        "uint32": np.uint32,
        "int64": np.int64,
        "uint64": np.uint64,
        "fp16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "fp32": np.float32,
        "fp64": np.float64,
        "fp8e5": ml_dtypes.float8_e5m2,
        "fp8e4nv": ml_dtypes.float8_e4m3fn,
        "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
        "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
    }.items()
}
_POINTER = np.dtype(np.uint64)
_TF32_DROPPED_BITS = 13


def numpy_dtype(triton_type: Any) -> np.dtype[Any]:
    """The numpy type of a Triton type, a block's element type, or a pointer (uint64).

    Raises:
        LaneRefusal: the type has no exact counterpart.
    """
    scalar = triton_type.scalar
    if scalar.is_ptr():
        return _POINTER
    try:
        return _BY_NAME[scalar.name]
    except KeyError:
        raise LaneRefusal(f"type {scalar} is not supported by the interpreter lane") from None


def convert(data: Array, target: np.dtype[Any]) -> Array:
    """Convert as NVIDIA hardware does: to nearest even; integers saturate, NaN becomes 0.

    fp8 saturates at its largest finite value, as `cvt.rn.satfinite` does.
    """
    if target == data.dtype:
        return data
    if _is_fp8(target) and data.dtype.kind not in "iub":
        # float32 holds every value of fp16, bf16 and fp8, so this rounds once from those.
        wide = data if data.dtype == np.float64 else data.astype(np.float32)
        limit = float(ml_dtypes.finfo(target).max)
        clipped: Array = np.clip(wide, -limit, limit)
        return clipped.astype(target)
    if target.kind in "iu" and data.dtype.kind not in "iub":
        return _to_integer(data, target)
    return data.astype(target)


def convert_toward_zero(data: Array, target: np.dtype[Any]) -> Array:
    """Convert to a narrower float, dropping what does not fit."""
    wide = data.astype(np.float64)
    rounded = convert(data, target)
    too_far = np.abs(rounded.astype(np.float64)) > np.abs(wide)
    bits = rounded.view(np.dtype(f"u{target.itemsize}"))
    # Floats of one sign are ordered as their bits are: one less is the neighbour toward zero.
    nearer: Array = bits - too_far.astype(bits.dtype)
    return nearer.view(target)


def round_to_tf32(data: Array) -> Array:
    """Round float32 to 10 bits of mantissa, to nearest even; Inf and NaN stay."""
    bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
    half = np.uint32((1 << (_TF32_DROPPED_BITS - 1)) - 1)
    odd = (bits >> np.uint32(_TF32_DROPPED_BITS)) & np.uint32(1)
    rounded = (bits + half + odd) & np.uint32(0xFFFFFFFF << _TF32_DROPPED_BITS & 0xFFFFFFFF)
    return np.where(np.isfinite(data), rounded.view(np.float32), data)


def _is_fp8(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 1 and dtype.kind not in "iub"


def _to_integer(data: Array, target: np.dtype[Any]) -> Array:
    wide = np.nan_to_num(np.trunc(data.astype(np.float64)), nan=0.0)
    info = np.iinfo(target)
    # The bounds of 64-bit integers are no float64, so ends are set and not clipped.
    result = np.where(np.abs(wide) < 2.0**62, wide, 0.0).astype(np.int64).astype(target)
    if target.itemsize == 8:
        middle = (wide >= 2.0**62) & (wide < float(info.max))
        result = np.where(middle, wide.astype(target), result)
        low = (wide <= -(2.0**62)) & (wide > float(info.min))
        result = np.where(low, wide.astype(target), result)
    result = np.where(wide >= float(info.max), info.max, result)
    return np.where(wide <= float(info.min), info.min, result).astype(target)
