"""Triton's interpreter builder, with what it gets wrong put right.

Each method overrides one of `triton.runtime.interpreter.InterpreterBuilder`. Memory goes to the
launch's `Memory`; casts, comparisons, dots and 16-bit and 8-bit arithmetic follow
`numerics`. What cannot be computed rightly raises `LaneRefusal`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from gatecert.lanes.interpreter import libdevice, numerics
from gatecert.lanes.interpreter.failures import LaneRefusal
from gatecert.lanes.interpreter.memory import Memory
from gatecert.lanes.interpreter.numerics import Array, numpy_dtype

_RMW: dict[Any, Callable[[Array, Array], Array]] = {
    ir.ATOMIC_OP.ADD: np.add,
    ir.ATOMIC_OP.FADD: np.add,
    ir.ATOMIC_OP.MIN: np.minimum,
    ir.ATOMIC_OP.UMIN: np.minimum,
    ir.ATOMIC_OP.MAX: np.maximum,
    ir.ATOMIC_OP.UMAX: np.maximum,
    ir.ATOMIC_OP.AND: np.bitwise_and,
    ir.ATOMIC_OP.OR: np.bitwise_or,
    ir.ATOMIC_OP.XOR: np.bitwise_xor,
    ir.ATOMIC_OP.XCHG: lambda old, new: new,
}

_COMPARISONS = {
    "icmpSLE": np.less_equal,
    "icmpSLT": np.less,
    "icmpSGE": np.greater_equal,
    "icmpSGT": np.greater,
    "icmpULE": np.less_equal,
    "icmpULT": np.less,
    "icmpUGE": np.greater_equal,
    "icmpUGT": np.greater,
    "icmpEQ": np.equal,
    "icmpNE": np.not_equal,
    "fcmpOLT": np.less,
    "fcmpOGT": np.greater,
    "fcmpOLE": np.less_equal,
    "fcmpOGE": np.greater_equal,
    "fcmpOEQ": np.equal,
    "fcmpUNE": np.not_equal,
}
"""The comparisons that Triton's language emits; numpy's treatment of NaN is theirs."""


class CorrectedBuilder(InterpreterBuilder):  # type: ignore[misc]
    """The builder of the interpreter lane; `memory` is that of the launch that runs."""

    memory: Memory

    # memory

    def create_load(self, ptr: Any, *hints: Any, **named: Any) -> Any:
        dtype = ptr.get_element_ty()
        return TensorHandle(self.memory.load(ptr.data, None, None, numpy_dtype(dtype)), dtype)

    def create_masked_load(
        self, ptrs: Any, mask: Any, other: Any, *hints: Any, **named: Any
    ) -> Any:
        dtype = ptrs.get_element_ty()
        fill = None if other is None else other.data
        data = self.memory.load(ptrs.data, _data(mask), fill, numpy_dtype(dtype))
        return TensorHandle(data, dtype)

    def create_store(self, ptr: Any, val: Any, *hints: Any, **named: Any) -> None:
        self._store(ptr, val, None)

    def create_masked_store(
        self, ptrs: Any, value: Any, mask: Any, *hints: Any, **named: Any
    ) -> None:
        self._store(ptrs, value, _data(mask))

    def _store(self, ptrs: Any, value: Any, mask: Array | None) -> None:
        data = value.data.astype(numpy_dtype(ptrs.get_element_ty()), copy=False)
        self.memory.store(ptrs.data, mask, np.broadcast_to(data, ptrs.data.shape))

    def create_atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, *hints: Any) -> Any:
        combine = _RMW.get(op)
        if combine is None:
            raise LaneRefusal(f"atomic {op} is not supported by the interpreter lane")
        seen = self.memory.update(
            ptr.data, _data(mask), val.data, lambda old, new, lanes: combine(old, new)
        )
        return TensorHandle(seen, val.dtype.scalar)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, *hints: Any) -> Any:
        bits = np.dtype(f"u{val.data.itemsize}")
        expected = cmp.data.reshape(-1)

        def swap(old: Array, new: Array, lanes: Array) -> Array:
            return np.where(old.view(bits) == expected[lanes].view(bits), new, old)

        everywhere = np.ones(ptr.data.shape, np.bool_)
        return TensorHandle(
            self.memory.update(ptr.data, everywhere, val.data, swap), cmp.dtype.scalar
        )

    def create_atomic_poll(self, *args: Any) -> Any:
        raise LaneRefusal("a program waits for another one; the interpreter lane runs one by one")

    # constants

    def get_bf16(self, value: Any) -> Any:
        return TensorHandle(np.array([value], numpy_dtype(tl.bfloat16)), tl.bfloat16)

    # casts

    def cast_impl(self, src: Any, dst_type: Any) -> Any:
        return TensorHandle(numerics.convert(src.data, numpy_dtype(dst_type)), dst_type.scalar)

    def create_fp_to_fp(self, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
        target = numpy_dtype(dst_type)
        if rounding_mode == ir.ROUNDING_MODE.RTZ:
            return TensorHandle(numerics.convert_toward_zero(src.data, target), dst_type.scalar)
        return TensorHandle(numerics.convert(src.data, target), dst_type.scalar)

    def create_bitcast(self, src: Any, dst_type: Any) -> Any:
        if dst_type.scalar.is_ptr():
            self.memory.may_misalign = True
        data = np.ascontiguousarray(src.data) if src.data.ndim else src.data
        return TensorHandle(data.view(numpy_dtype(dst_type)), dst_type.scalar)

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    # arithmetic

    def create_fabs(self, arg: Any) -> Any:
        return TensorHandle(np.abs(arg.data), arg.dtype.scalar)

    def create_minnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Any, rhs: Any) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
        if propagate_nans == ir.PROPAGATE_NAN.NONE:
            data = np.fmin(np.fmax(arg.data, lo.data), hi.data)
        else:
            data = np.minimum(np.maximum(arg.data, lo.data), hi.data)
        return TensorHandle(data, arg.dtype.scalar)

    def create_fma(self, x: Any, y: Any, z: Any) -> Any:
        if z.data.dtype == np.float64:
            return super().create_fma(x, y, z)
        # Exact in float64 for 8 to 32 bits but for the sum's own rounding.
        exact = x.data.astype(np.float64) * y.data.astype(np.float64) + z.data.astype(np.float64)
        return TensorHandle(exact.astype(z.data.dtype), z.dtype.scalar)

    def create_erf(self, arg: Any) -> Any:
        wide = torch.special.erf(torch.from_numpy(arg.data.astype(np.float64)))
        return TensorHandle(wide.numpy().astype(arg.data.dtype), arg.dtype.scalar)

    # products

    def create_dot(self, a: Any, b: Any, d: Any, input_precision: Any, *hints: Any) -> Any:
        return TensorHandle(_product(a.data, b.data, d.data, input_precision), d.dtype.scalar)

    def create_dot_scaled(self, *args: Any, **named: Any) -> Any:
        raise LaneRefusal("tl.dot_scaled is not supported by the interpreter lane")

    def create_inline_asm(self, *args: Any, **named: Any) -> Any:
        raise LaneRefusal("inline assembly cannot run on the interpreter lane")

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: list[Any], result: Any, pure: bool
    ) -> Any:
        arrays = [argument.data for argument in arguments]
        return TensorHandle(libdevice.compute(symbol, arrays, numpy_dtype(result)), result.scalar)


def _data(mask: Any) -> Array:
    """A mask's lanes; older versions of Triton pass the array itself."""
    lanes: Array = mask if isinstance(mask, np.ndarray) else mask.data
    return lanes if lanes.dtype == np.bool_ else lanes.astype(np.bool_)


def _product(a: Array, b: Array, d: Array, precision: Any) -> Array:
    """`a @ b + d`: exact products, summed in float32 (float64 and integers in their own)."""
    if a.dtype.kind in "iu":
        # Products of bytes are exact in float64 for any length that fits in memory.
        whole: Array = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
        return (whole + d).astype(d.dtype)
    if a.dtype == np.float32 and precision == ir.INPUT_PRECISION.TF32:
        a, b = numerics.round_to_tf32(a), numerics.round_to_tf32(b)
    wide = np.dtype(np.float64 if a.dtype == np.float64 else np.float32)
    total: Array = np.matmul(a.astype(wide, copy=False), b.astype(wide, copy=False))
    return (total + d.astype(wide, copy=False)).astype(d.dtype, copy=False)


def _comparison(operation: Any) -> Any:
    def compare(self: CorrectedBuilder, lhs: Any, rhs: Any) -> Any:
        return TensorHandle(operation(lhs.data, rhs.data), tl.int1)

    return compare


for _name, _operation in _COMPARISONS.items():
    setattr(CorrectedBuilder, f"create_{_name}", _comparison(_operation))
