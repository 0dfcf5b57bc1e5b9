"""A kernel's parameters: binding arguments, making them tensors, describing a launch."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime.interpreter import TensorHandle
from triton.runtime.jit import KernelInterface, KernelParam, mangle_type
from triton.tools.tensor_descriptor import TensorDescriptor

from gatecert.lanes.interpreter.memory import Memory
from gatecert.lanes.interpreter.numerics import numpy_dtype
from gatecert.lanes.records import Launch

Constexpr = int | float | bool | str | None
Grid = tuple[int, int, int]
_DEFAULT_WARPS = 4
_DEFAULT_STAGES = 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `type` is its annotated Triton type, or empty."""

    name: str
    is_constexpr: bool
    type: str


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name (`module:qualname`) and parameters."""

    kernel: str
    parameters: tuple[Parameter, ...]
    defaults: Mapping[str, Any]

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by name, in the order of parameters; launch options are left out.

        Raises:
            TypeError: an argument is missing, or there are too many.
        """
        if len(args) > len(self.parameters):
            raise TypeError(
                f"{self.kernel} takes {len(self.parameters)} arguments, got {len(args)}"
            )
        bound = {}
        for position, parameter in enumerate(self.parameters):
            name = parameter.name
            if position < len(args):
                bound[name] = args[position]
            elif name in kwargs:
                bound[name] = kwargs[name]
            elif name in self.defaults:
                bound[name] = self.defaults[name]
            else:
                raise TypeError(f"{self.kernel}: argument {name!r} is missing")
        return bound

    def tensors(self, bound: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
        """What the kernel's parameters hold while it runs."""
        return {
            parameter.name: _plain(bound[parameter.name])
            if parameter.is_constexpr
            else _tensor(parameter.name, bound[parameter.name], parameter.type, memory)
            for parameter in self.parameters
        }

    def describe(self, bound: Mapping[str, Any], options: Mapping[str, Any], grid: Grid) -> Launch:
        """The launch as a record."""
        types: list[tuple[str, str]] = []
        constexprs: list[tuple[str, Constexpr]] = []
        integers: list[tuple[str, int]] = []
        for parameter in self.parameters:
            value = bound[parameter.name]
            if parameter.is_constexpr or value is None:
                constexprs.append((parameter.name, _constexpr(value)))
                continue
            types.append((parameter.name, _type_of(value, parameter.type)))
            if isinstance(value, int) and not isinstance(value, bool):
                integers.append((parameter.name, value))
        return Launch(
            kernel=self.kernel,
            grid=grid,
            types=tuple(types),
            constexprs=tuple(constexprs),
            integers=tuple(integers),
            num_warps=int(options.get("num_warps") or _DEFAULT_WARPS),
            num_stages=int(options.get("num_stages") or _DEFAULT_STAGES),
        )


@functools.cache
def signature_of(function: Callable[..., Any]) -> Signature:
    """The signature of a kernel's Python function."""
    parameters = []
    defaults = {}
    for number, declared in enumerate(inspect.signature(function).parameters.values()):
        known = KernelParam(number, declared, False, False)
        parameters.append(Parameter(known.name, known.is_constexpr, known.annotation_type))
        if declared.default is not inspect.Parameter.empty:
            defaults[known.name] = declared.default
    return Signature(name_of(function), tuple(parameters), defaults)


def name_of(function: Callable[..., Any]) -> str:
    """`module:qualname`."""
    return f"{function.__module__}:{function.__qualname__}"


def resolve_grid(grid: Any, bound: Mapping[str, Any], options: Mapping[str, Any]) -> Grid:
    """Three whole numbers; a callable grid gets the arguments and launch options by name.

    Raises:
        ValueError: more than three dimensions.
    """
    dims = grid({**options, **bound}) if callable(grid) else grid
    if not isinstance(dims, (tuple, list)):
        dims = (dims,)
    if len(dims) > 3:
        raise ValueError(f"a grid has at most 3 dimensions, got {len(dims)}")
    x, y, z = (*(int(_plain(dim)) for dim in dims), 1, 1, 1)[:3]
    return x, y, z


def _tensor(name: str, value: Any, declared: str, memory: Memory) -> Any:
    if value is None:
        return None
    if isinstance(value, (bool, int, float)):
        dtype = _triton_type(declared or mangle_type(value))
        return tl.tensor(TensorHandle(np.array([value], numpy_dtype(dtype)), dtype), dtype)
    if hasattr(value, "data_ptr"):
        dtype = _pointer_type(value.dtype, declared)
        plain = value.base if isinstance(value, triton.runtime.jit.TensorWrapper) else value
        address = np.array([memory.pointer(name, plain)], np.uint64)
        return tl.tensor(TensorHandle(address, dtype), dtype)
    if isinstance(value, tuple):
        parts = [_tensor(f"{name}[{i}]", part, "", memory) for i, part in enumerate(value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tl.tuple(parts)
    if isinstance(value, TensorDescriptor):
        return _descriptor(name, value, memory)
    return _plain(value)


def _descriptor(name: str, value: TensorDescriptor, memory: Memory) -> Any:
    from triton.runtime.interpreter import interpreter_semantic

    strides = [_tensor(name, stride, "", memory) for stride in value.strides]
    strides[-1] = tl.constexpr(1)
    descriptor = interpreter_semantic.make_tensor_descriptor(
        base=_tensor(name, value.base, "", memory),
        shape=[_tensor(name, size, "", memory) for size in value.shape],
        strides=strides,
        block_shape=[tl.constexpr(size) for size in value.block_shape],
        padding_option=value.padding,
    )
    if hasattr(value, "round_f32_to_tf32"):
        descriptor.handle.round_f32_to_tf32 = value.round_f32_to_tf32
    return descriptor


def _type_of(value: Any, declared: str) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_type_of(part, '') for part in value)})"
    if hasattr(value, "data_ptr"):
        return _pointer_name(value.dtype)
    return declared or str(mangle_type(value))


@functools.cache
def _pointer_name(dtype: Any) -> str:
    return str(mangle_type(triton.runtime.jit.MockTensor(dtype)))


@functools.cache
def _pointer_type(dtype: Any, declared: str) -> Any:
    name = _pointer_name(dtype)
    return _triton_type(f"*k{name[1:]}" if declared.startswith("*k") else name)


@functools.cache
def _triton_type(name: str) -> Any:
    return tl.str_to_ty(name, None)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _constexpr(value: Any) -> Constexpr:
    value = _plain(value)
    if isinstance(value, tl.dtype):
        return f"dtype:{value.name}"
    if isinstance(value, KernelInterface):
        inner: Any = value
        while not inspect.isfunction(inner):
            inner = inner.fn
        return f"fn:{name_of(inner)}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float:{value}"  # JSON has no infinity
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return f"repr:{value!r}"
