"""Bind the arguments of a call to an operation's schema: dims by name, dtype, layout, scalars.

Shapes and strides alone are read, never a value, so that nothing waits for a device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatecert.oracle.dims import CDIV, names_in, size_of_dim, solve
from gatecert.oracle.layouts import LAYOUTS
from gatecert.oracle.schema import Operation, ScalarSpec, SizeSpec, TensorSpec

_ALIGNED_BYTES = 16


@dataclass(frozen=True, slots=True)
class SeenTensor:
    """What a tensor argument was like; `offset` counts the bytes past an aligned address."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Bound:
    """A call that fits the schema; `layout` is as in a case."""

    dims: dict[str, int]
    dtype: str
    layout: str
    scalars: dict[str, float]
    absent: tuple[str, ...] = ()
    """Optional tensors that were left out."""


class Misfit(Exception):
    """A call does not fit the schema; the message names the argument, what it must be and is."""


def bind(operation: Operation, arguments: Mapping[str, Any]) -> Bound:
    """Bind `SeenTensor`s and numbers by name; an argument that is left out has its default.

    A type stands for a value of that type which cannot be told.

    Raises:
        Misfit: names the first argument that does not fit.
    """
    known = {spec.name for spec in operation.inputs}
    for name, value in arguments.items():
        if name not in known and value is not None:
            raise Misfit(f"argument {name}: {operation.name} has none of that name")
    tensors = {
        spec.name: seen
        for spec in operation.tensors
        if (seen := _tensor(spec, arguments.get(spec.name))) is not None
    }
    return Bound(
        dims=_dims(operation, arguments),
        dtype=_dtype(operation, tensors),
        layout=_layout(tensors),
        scalars=dict(_scalars(operation.scalars, arguments)),
        absent=tuple(name for name in operation.optional if name not in tensors),
    )


def _tensor(spec: TensorSpec, value: Any) -> SeenTensor | None:
    if value is None and spec.optional:
        return None
    if not isinstance(value, SeenTensor):
        raise Misfit(f"argument {spec.name}: expected a tensor {_shown(spec)}, {_given(value)}")
    if len(value.shape) != len(spec.dims):
        raise Misfit(f"argument {spec.name}: expected shape {_shown(spec)}, has {value.shape}")
    return value


def _dims(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Sizes by name: of dims that are a name first, then of those with one unknown name left."""
    seen: list[tuple[TensorSpec | SizeSpec, str, int]] = [
        (spec, dim, actual)
        for spec in operation.tensors
        if isinstance(tensor := arguments.get(spec.name), SeenTensor)
        for dim, actual in zip(spec.dims, tensor.shape, strict=True)
    ]
    seen += [
        (spec, spec.dim, value)
        for spec in operation.inputs
        if isinstance(spec, SizeSpec) and isinstance(value := arguments.get(spec.name), int)
    ]
    sizes: dict[str, int] = {}
    waiting = sorted(seen, key=lambda one: not one[1].isidentifier())
    while waiting:
        left = [one for one in waiting if not _settled(one, sizes, arguments)]
        if len(left) == len(waiting):
            break
        waiting = left
    missing = [dim for dim in operation.dims if dim not in sizes]
    if missing:
        raise Misfit(f"dim {missing[0]}: no argument tells its size")
    return {dim: sizes[dim] for dim in operation.dims}


def _settled(
    one: tuple[TensorSpec | SizeSpec, str, int],
    sizes: dict[str, int],
    arguments: Mapping[str, Any],
) -> bool:
    """Learn from one dim, or hold it against what is known; False where too much is unknown."""
    spec, dim, actual = one
    unknown = [name for name in names_in(dim) if name not in sizes]
    if len(unknown) > 1 or (unknown and CDIV in dim):
        return False
    if unknown:
        size = solve(dim, unknown[0], actual, sizes)
        if size is None:
            raise Misfit(_mismatch(spec, sizes, arguments))
        sizes[unknown[0]] = size
    elif size_of_dim(dim, sizes) != actual:
        raise Misfit(_mismatch(spec, sizes, arguments))
    return True


def _mismatch(
    spec: TensorSpec | SizeSpec, sizes: Mapping[str, int], arguments: Mapping[str, Any]
) -> str:
    seen = arguments[spec.name]

    def known(dim: str) -> int | str:
        return size_of_dim(dim, sizes) if set(names_in(dim)) <= set(sizes) else dim

    if isinstance(spec, SizeSpec):
        return f"argument {spec.name}: expected {spec.dim} = {known(spec.dim)}, is {seen}"
    expected = ", ".join(str(known(dim)) for dim in spec.dims)
    return f"argument {spec.name}: expected shape {_shown(spec)} = [{expected}], has {seen.shape}"


def _dtype(operation: Operation, tensors: Mapping[str, SeenTensor]) -> str:
    """The tested dtype, in which all tensors of no fixed kind must agree."""
    tested, first = "", ""
    for spec in operation.tensors:
        seen = tensors.get(spec.name)
        if seen is None:
            continue
        if spec.kind == "float" and not tested:
            tested, first = seen.dtype, spec.name
        expected = spec.dtype(tested)
        if seen.dtype != expected:
            why = f", as {first} has" if spec.kind == "float" else ""
            raise Misfit(f"argument {spec.name}: expected dtype {expected}{why}, has {seen.dtype}")
    return tested


def _scalars(
    specs: Iterable[ScalarSpec], arguments: Mapping[str, Any]
) -> Iterator[tuple[str, float]]:
    for spec in specs:
        value = arguments.get(spec.name)
        value = spec.default if value is None else value
        if not isinstance(value, (int, float)):
            raise Misfit(f"argument {spec.name}: expected a number, {_given(value)}")
        yield spec.name, float(value)


def _layout(tensors: Mapping[str, SeenTensor]) -> str:
    """The layout of the first tensor that is not contiguous, and who else has it."""
    layouts = {name: layout_class(seen) for name, seen in tensors.items()}
    moved = {name: layout for name, layout in layouts.items() if layout != "contiguous"}
    if not moved:
        return "contiguous"
    layout = next(iter(moved.values()))
    takers = [name for name, own in moved.items() if own == layout]
    able = [name for name, seen in tensors.items() if len(seen.shape) > 1]
    return layout if len(takers) >= len(able) else f"{layout}:{'+'.join(takers)}"


def layout_class(seen: SeenTensor) -> str:
    """The name of the layout whose strides lead as this tensor's do; axes of one index have none.

    `other` is what no named layout has.
    """
    order = [axis for axis, size in enumerate(seen.shape) if size > 1]
    if 0 in seen.shape or not order:
        return "contiguous"
    strides = [seen.strides[axis] for axis in order]
    if 0 in strides:
        return "expanded"
    if _agree(seen, "contiguous"):
        return "offset_base" if seen.offset % _ALIGNED_BYTES else "contiguous"
    for name in ("transposed", "inner_transposed"):
        if _agree(seen, name):
            return name
    if len(seen.shape) == 1:
        return "strided_vectors"
    falling = all(wide >= narrow for wide, narrow in itertools.pairwise(strides))
    if not falling:
        return "transposed" if strides[-1] == 1 else "inner_transposed"
    if strides[-1] != 1:
        return "spread"
    return "sliced" if seen.offset % _ALIGNED_BYTES else "row_padded"


def _agree(seen: SeenTensor, layout: str) -> bool:
    wanted: Sequence[int] = LAYOUTS[layout](seen.shape).strides
    return all(
        size == 1 or one == other
        for size, one, other in zip(seen.shape, seen.strides, wanted, strict=True)
    )


def _given(value: Any) -> str:
    if value is None:
        return "not given"
    kind = value if isinstance(value, type) else type(value)
    return f"is a {'tensor' if kind is SeenTensor else kind.__name__}"


def _shown(spec: TensorSpec) -> str:
    return f"[{', '.join(spec.dims)}]"
