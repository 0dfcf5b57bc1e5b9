"""Pass operands that already agree through Triton's checks of types and shapes at once.

Most operations of a kernel have two blocks of one shape, often of one type. Triton compares their
types, casts each to what it is and broadcasts it to the shape it has, at a quarter of all time.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

_KEPT = frozenset(one.name for one in (tl.float32, tl.float64, tl.int32, tl.int64))
"""Names of the types that every operation on two of them computes in, division too."""


def patch_operand_checks(semantic: Any) -> None:
    """Let `semantic` return operands that agree as they are."""
    check, broadcast = type(semantic).binary_op_type_checking_impl, semantic.broadcast_impl_value

    def checked(lhs: Any, rhs: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            type(lhs) is tl.tensor
            and type(rhs) is tl.tensor
            and lhs.dtype is rhs.dtype
            and lhs.dtype.name in _KEPT
            and _have_one_shape(lhs, rhs)
        ):
            return lhs, rhs
        return check(semantic, lhs, rhs, *args, **kwargs)

    def broadcasted(lhs: Any, rhs: Any) -> Any:
        return (lhs, rhs) if _have_one_shape(lhs, rhs) else broadcast(lhs, rhs)

    semantic.binary_op_type_checking_impl = checked
    semantic.broadcast_impl_value = broadcasted


def _have_one_shape(lhs: Any, rhs: Any) -> bool:
    # A number has the data of a block of one element.
    return type(lhs.type) is type(rhs.type) and lhs.handle.data.shape == rhs.handle.data.shape
