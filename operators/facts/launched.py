"""Which calls launch a kernel: `kernel[grid](...)`, and `wrap_triton(kernel)[grid](...)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from gatecert.operators.facts.language import absolute, dotted

_WRAPPER = "torch.library.wrap_triton"


def launched(callee: ast.expr | cst.BaseExpression, imported: Mapping[str, str]) -> str | None:
    """The name of the kernel that a call of `callee` launches; None where it launches none.

    `imported` maps local names to the absolute names that they stand for.
    """
    match callee:
        case ast.Subscript(value=kernel) | cst.Subscript(value=kernel):
            return kernel_name(kernel, imported)
    return None


def kernel_name(node: ast.expr | cst.BaseExpression, imported: Mapping[str, str]) -> str | None:
    """The name, `a.b.c`, in `a.b.c` and in `torch.library.wrap_triton(a.b.c)`."""
    match node:
        case (
            ast.Call(func=wrapper, args=[kernel], keywords=[])
            | cst.Call(func=wrapper, args=[cst.Arg(value=kernel, keyword=None, star="")])
        ):
            is_wrapped = absolute(dotted(wrapper) or "", imported) == _WRAPPER
            return dotted(kernel) if is_wrapped else None
    return dotted(node)
