"""Inputs of a case: made from its id alone, copied without slack, compared bit by bit."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.formats import FORMATS, Array, raw_bytes, round_to, torch_dtype
from gatecert.oracle.layouts import LAYOUTS, layout_of, place, placement_of, split_layout
from gatecert.oracle.schema import Operation, TensorSpec
from gatecert.oracle.streams import Stream
from gatecert.oracle.values import RECIPES


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments in call order: CPU tensors in the case's dtype and layout, and scalars.

    `sha256` covers names, shapes, dtypes and values, not the layout: the same on every machine.
    """

    names: tuple[str, ...]
    args: tuple[Any, ...]
    sha256: str

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensor arguments by name."""
        return {
            name: arg
            for name, arg in zip(self.names, self.args, strict=True)
            if isinstance(arg, torch.Tensor)
        }


def make_inputs(operation: Operation, case: Case) -> Inputs:
    """Make the inputs that a case describes.

    Raises:
        UsageError: the case is of another operation, lacks a dim or scalar of this one, or gives
            its layout to an argument that is no tensor of it.
    """
    _check(operation, case)
    given = dict(case.scalars)
    names: list[str] = []
    args: list[Any] = []
    for spec in operation.inputs:
        names.append(spec.name)
        if isinstance(spec, TensorSpec):
            values = _values(spec, case)
            layout = LAYOUTS[layout_of(case.layout, spec.name)]
            args.append(place(values, layout(tuple(values.shape))))
        else:
            value = given[spec.name]
            args.append(int(value) if spec.scalar.integer else value)
    return Inputs(tuple(names), tuple(args), _fingerprint(names, args))


def fresh_copy(inputs: Inputs) -> Inputs:
    """The same values and layout in new storage, gaps poisoned anew, nothing shared."""
    args = tuple(
        place(arg, placement_of(arg)) if isinstance(arg, torch.Tensor) else arg
        for arg in inputs.args
    )
    return Inputs(inputs.names, args, inputs.sha256)


def changed_inputs(before: Inputs, after: Inputs, allowed: Collection[str] = ()) -> list[str]:
    """What a call changed: names of inputs, bit by bit, except the values of `allowed` ones.

    `"x (outside its elements)"` says that memory between or before the elements changed,
    which no in-place argument allows.
    """
    changed = []
    old, new = before.tensors, after.tensors
    for name in old:
        if _same_storage(old[name], new[name]):
            continue
        if _shape_of(old[name]) != _shape_of(new[name]):
            changed.append(f"{name} (shape or strides)")
        elif name not in allowed and not np.array_equal(raw_bytes(old[name]), raw_bytes(new[name])):
            changed.append(name)
        elif not np.array_equal(_gaps(old[name]), _gaps(new[name])):
            changed.append(f"{name} (outside its elements)")
    return changed


def _check(operation: Operation, case: Case) -> None:
    if case.operation != operation.name:
        raise UsageError(f"case {case.id!r} is not one of operation {operation.name!r}")
    wanted: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
        ("dims", operation.dims, tuple(name for name, _ in case.dims)),
        (
            "scalars",
            tuple(spec.name for spec in operation.scalars),
            tuple(name for name, _ in case.scalars),
        ),
    )
    for what, needed, given in wanted:
        if sorted(needed) != sorted(given):
            raise UsageError(
                f"case {case.id!r}: {operation.name} has {what} {', '.join(needed) or 'none'}, "
                f"not {', '.join(given) or 'none'}"
            )

    tensors = [spec.name for spec in operation.tensors]
    for name in split_layout(case.layout)[1]:
        if name not in tensors:
            raise UsageError(
                f"case {case.id!r}: {operation.name} has tensors {', '.join(tensors)}, not {name}"
            )


def _values(spec: TensorSpec, case: Case) -> torch.Tensor:
    stream = Stream(f"{case.id}#{spec.name}")
    shape = spec.shape(case.sizes)
    dtype = spec.dtype(case.dtype)
    if not spec.is_float:
        return torch.from_numpy(_integers(spec, stream, shape, case)).to(torch_dtype(dtype))
    fmt = FORMATS[dtype]
    recipe = RECIPES[spec.recipe(case.recipe)]
    turned = np.moveaxis(np.empty(shape or (1,)), spec.axis, -1).shape
    values = np.moveaxis(recipe.make(stream, turned, fmt), -1, spec.axis).reshape(shape)
    if layout_of(case.layout, spec.name) == "expanded" and len(shape) > 1:
        values = np.broadcast_to(values[:1], shape)
    return _to_torch(round_to(values, fmt), dtype)


def _integers(
    spec: TensorSpec, stream: Stream, shape: tuple[int, ...], case: Case
) -> np.ndarray[Any, np.dtype[np.int64]]:
    high = case.sizes[spec.high] if isinstance(spec.high, str) else spec.high
    into_rows = isinstance(spec.high, str) and RECIPES[case.recipe].last_counts
    values = stream.integers(high - 1 if into_rows else spec.low, high, shape)
    if spec.marker is not None and values.size:
        marked = np.array(stream.uniform(shape) < 0.25)
        marked.flat[0] = marked.size > 1 and stream.uniform(()) >= 0.5
        if marked.all():
            marked.flat[-1] = False
        marked |= spec.all_marked and case.recipe == "ties"
        values = np.where(marked, spec.marker, values)
    return values


def _to_torch(values: Array, dtype: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(torch_dtype(dtype))


def _memory(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    flat = torch.empty(0, dtype=torch.uint8).set_(tensor.detach().untyped_storage())
    return flat.numpy().reshape(-1, tensor.element_size())


def _gaps(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.uint8]]:
    memory = _memory(tensor)
    places = torch.arange(len(memory)).as_strided(
        tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    )
    return np.delete(memory, places.numpy().ravel(), axis=0)


def _same_storage(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether two tensors lie alike in storages of the same bytes: the quick answer."""
    if _shape_of(old) != _shape_of(new) or old.storage_offset() != new.storage_offset():
        return False
    return np.array_equal(_memory(old), _memory(new))


def _shape_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.untyped_storage().nbytes()


def _fingerprint(names: list[str], args: list[Any]) -> str:
    digest = hashlib.sha256()
    for name, arg in zip(names, args, strict=True):
        if isinstance(arg, torch.Tensor):
            digest.update(f"{name}:{arg.dtype}:{tuple(arg.shape)}:".encode())
            digest.update(raw_bytes(arg).tobytes())
        else:
            digest.update(f"{name}:{arg!r}:".encode())
    return digest.hexdigest()
