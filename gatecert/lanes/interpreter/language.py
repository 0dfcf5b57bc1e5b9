"""Patch `triton.language` once, for good, in place of once per launch.

Afterwards nothing can be compiled in this process.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import triton.language as tl
from triton import knobs
from triton.runtime import interpreter as triton_interpreter

from gatecert.lanes.interpreter import numerics
from gatecert.lanes.interpreter.builder import CorrectedBuilder
from gatecert.lanes.interpreter.constructors import patch_constructors
from gatecert.lanes.interpreter.execution import call, launch, rewritten
from gatecert.lanes.interpreter.reduction import associative_scan, reduce
from gatecert.lanes.interpreter.rewriting import tensor_range
from gatecert.lanes.interpreter.semantics import bind_builtin
from gatecert.lanes.interpreter.shortcuts import patch_operand_checks


def patch_interpreter() -> None:
    """Make Triton's interpreter ours: builder, launches, language."""
    patch_constructors()
    _patch_builder()
    _patch_language()
    triton_interpreter._get_np_dtype = numerics.numpy_dtype
    triton_interpreter._patch_lang = lambda function: _NothingToRestore()
    triton_interpreter.InterpretedFunction.run = launch
    triton_interpreter.InterpretedFunction.__call__ = call
    _rewrite_ahead()


def is_patched() -> bool:
    """Was Triton's interpreter made ours in this process?"""
    return triton_interpreter.InterpretedFunction.run is launch


class _NothingToRestore:
    def restore(self) -> None:
        pass


def _patch_builder() -> None:
    builder = triton_interpreter.interpreter_builder
    builder.__class__ = CorrectedBuilder
    builder.memory = None
    # Overflow checks of integers are for debugging, and on hardware they are off.
    builder.options = triton_interpreter.InterpreterOptions(sanitize_overflow=False)


def _patch_language() -> None:
    semantic = triton_interpreter.interpreter_semantic
    patch_operand_checks(semantic)
    for scope in (tl, tl.core, tl.tensor, tl.math, tl.core.tensor_descriptor_base):
        for name, member in inspect.getmembers(scope):
            if tl.core.is_builtin(member):
                setattr(scope, name, bind_builtin(member, semantic))
    # What is left of Triton's own patches: truth, indexing and types of tensors. It reads the
    # modules to patch from a function's globals.
    stand_in = types.FunctionType((lambda: None).__code__, {"tl": tl, "core": tl.core})
    triton_interpreter._patch_lang(stand_in)
    for module in (tl, tl.core):
        module.range = tensor_range
        module.reduce = reduce
        module.associative_scan = associative_scan
        module.dot = _dot_with_precision(module.dot)
    tl.tensor.reduce = reduce
    tl.tensor.associative_scan = associative_scan
    # Triton's own code asks `if other`, meaning "is there one"; kernels ask `truth`.
    tl.tensor.__bool__ = lambda self: True
    tl.tensor.__index__ = lambda self: int(self.handle.data.item())


def _dot_with_precision(dot: Callable[..., Any]) -> Callable[..., Any]:
    """`tl.dot` that is `ieee` unless the kernel or the environment names a precision."""

    @functools.wraps(dot)
    def with_precision(*args: Any, **kwargs: Any) -> Any:
        named = len(args) > 3 or any(
            kwargs.get(name) is not None for name in ("input_precision", "allow_tf32")
        )
        if not named and not knobs.language.fp32_default:
            kwargs["input_precision"] = "ieee"
        return dot(*args, **kwargs)

    return with_precision


def _rewrite_ahead() -> None:
    """Rewrite Triton's own functions (`tl.sum`, ...) now, and not again in every child."""
    for member in vars(tl.standard).values():
        if isinstance(member, triton_interpreter.InterpretedFunction):
            rewritten(member.fn)
