"""Inputs of a case: made from its id alone, copied without slack, compared bit by bit."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.dims import size_of_dim
from gatecert.oracle.exact import allowance_for
from gatecert.oracle.formats import Array, format_of, raw_bytes, round_to, torch_dtype
from gatecert.oracle.indices import check_indices, make_indices
from gatecert.oracle.layouts import LAYOUTS, layout_of, place, placement_of, poison_of, split_layout
from gatecert.oracle.ranges import integer_range
from gatecert.oracle.schema import Operation, SizeSpec, TensorSpec
from gatecert.oracle.sparse import is_sparse, nonzero_gaps
from gatecert.oracle.streams import Stream
from gatecert.oracle.values import RECIPES


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments in call order: CPU tensors in the case's dtype and layout, and scalars.

    `sha256` covers names, dtypes, shapes, strides and the bytes of every element: the same on
    every machine.
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


def make_inputs(
    operation: Operation, case: Case, held: Mapping[str, torch.Tensor] | None = None
) -> Inputs:
    """Make the inputs that a case describes; tensors that are `held` (a snapshot's) as they are.

    Raises:
        UsageError: the case is of another operation, lacks a dim or scalar of this one, or gives
            its layout or values to an argument that is no tensor of it; a given or held tensor
            has another shape or dtype.
    """
    _check(operation, case)
    given = dict(case.scalars)
    held = {**_given_tensors(operation, case), **(held or {})}
    values = _all_values(operation, case, held)
    names: list[str] = []
    args: list[Any] = []
    for spec in operation.inputs:
        names.append(spec.name)
        if isinstance(spec, TensorSpec):
            made = values.get(spec.name)
            args.append(None if made is None else lay_out(spec, case, made))
        elif isinstance(spec, SizeSpec):
            args.append(size_of_dim(spec.dim, case.sizes))
        else:
            value = given[spec.name]
            args.append(int(value) if spec.scalar.integer else value)
    return Inputs(tuple(names), tuple(args), _fingerprint(names, args))


def lay_out(spec: TensorSpec, case: Case, values: torch.Tensor) -> torch.Tensor:
    """A tensor with these values, in the layout that the case gives the argument."""
    name = layout_of(case.layout, spec.name)
    if name == "expanded" and not spec.may_share_rows:
        name = "contiguous"
    return place(values, LAYOUTS[name](tuple(values.shape)))


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
    for name in (*split_layout(case.layout)[1], *dict(case.given), *case.absent):
        if name not in tensors:
            raise UsageError(
                f"case {case.id!r}: {operation.name} has tensors {', '.join(tensors)}, not {name}"
            )
    for name in case.absent:
        if name not in operation.optional:
            raise UsageError(
                f"case {case.id!r}: argument {name} of {operation.name} cannot be left out; those "
                f"that can: {', '.join(operation.optional) or 'none'}"
            )


def _given_tensors(operation: Operation, case: Case) -> dict[str, torch.Tensor]:
    """The values written out in the case, rounded to their dtypes."""
    found = {}
    shapes = {spec.name: spec for spec in operation.tensors}
    for name, values in case.given:
        spec = shapes[name]
        shape, dtype = spec.shape(case.sizes), spec.dtype(case.dtype)
        if len(values) != int(np.prod(shape)):
            raise UsageError(
                f"case {case.id!r}: argument {name} has shape {shape}, which takes "
                f"{int(np.prod(shape))} values, not {len(values)}"
            )
        array = np.array(values, np.float64).reshape(shape)
        fmt = format_of(dtype)
        if fmt is not None:
            found[name] = _to_torch(round_to(array, fmt), dtype)
        else:
            found[name] = torch.from_numpy(array.astype(np.int64)).to(torch_dtype(dtype))
    return found


def _all_values(
    operation: Operation, case: Case, held: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Values by argument; index tensors that others go by come before those."""
    found: dict[str, torch.Tensor] = {}
    by_need = sorted(operation.tensors, key=lambda spec: bool(spec.index and spec.index.tensors))
    for spec in by_need:
        if spec.name in case.absent:
            continue
        if spec.name in held:
            found[spec.name] = _held(spec, case, held)
            check_indices(spec, case, found)
        elif spec.destination:
            shape, dtype = spec.shape(case.sizes), torch_dtype(spec.dtype(case.dtype))
            found[spec.name] = torch.full(shape, poison_of(dtype), dtype=dtype)
        elif spec.index is not None:
            found[spec.name] = make_indices(spec, case, found)
        else:
            found[spec.name] = _values(operation, spec, case)
    for name, places in operation.unread(found).items() if operation.unread else ():
        if layout_of(case.layout, name) == "expanded":  # one row of memory for all of them
            places = places.all(0).expand(places.shape)
        if name not in held:
            found[name][places] = torch.nan
    return found


def _held(spec: TensorSpec, case: Case, held: Mapping[str, torch.Tensor]) -> torch.Tensor:
    values = held[spec.name]
    expected = spec.shape(case.sizes), torch_dtype(spec.dtype(case.dtype))
    actual = tuple(values.shape), values.dtype
    for what, wanted, found in zip(("shape", "dtype"), expected, actual, strict=True):
        if wanted != found:
            raise UsageError(
                f"case {case.id!r}: argument {spec.name} must have {what} {wanted}, not {found}"
            )
    if layout_of(case.layout, spec.name) == "expanded" and values.ndim > 1:
        values = values[:1].expand(values.shape)
    return values


def _values(operation: Operation, spec: TensorSpec, case: Case) -> torch.Tensor:
    case = msgspec.structs.replace(case, given=())  # they change no other tensor
    stream = Stream(f"{case.id}#{spec.name}")
    shape = spec.shape(case.sizes)
    dtype = spec.dtype(case.dtype)
    fmt = format_of(dtype)
    if fmt is None:
        return torch.from_numpy(_integers(spec, stream, shape, case)).to(torch_dtype(dtype))
    recipe = RECIPES[spec.recipe(case.recipe)]
    turned = np.moveaxis(np.empty(shape or (1,)), spec.axis, -1).shape
    if recipe.within is None:
        made = recipe.make(stream, turned, fmt)
    else:
        made = recipe.within(stream, turned, allowance_for(operation, case.sizes, fmt))
    values = np.moveaxis(made, -1, spec.axis).reshape(shape)
    if layout_of(case.layout, spec.name) == "expanded" and len(shape) > 1:
        values = np.broadcast_to(values[:1], shape)
    return _to_torch(round_to(values, fmt), dtype)


def _integers(
    spec: TensorSpec, stream: Stream, shape: tuple[int, ...], case: Case
) -> np.ndarray[Any, np.dtype[np.int64]]:
    high = size_of_dim(spec.high, case.sizes)
    largest = integer_range(spec.dtype(case.dtype))[1]
    if math.prod(shape) and not spec.low < high <= largest + 1:
        why = "holds none" if spec.low >= high else f"does not fit {spec.dtype(case.dtype)}"
        raise UsageError(
            f"case {case.id!r}: argument {spec.name} is drawn from [{spec.low}, {spec.high}), here "
            f"[{spec.low}, {high}), which {why}"
        )
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


def _gaps(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    if is_sparse(tensor):
        return nonzero_gaps(tensor)
    memory = _memory(tensor)
    places = torch.arange(len(memory)).as_strided(
        tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
    )
    return np.delete(memory, places.numpy().ravel(), axis=0)


def _same_storage(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether two tensors lie alike in storages of the same bytes: the quick answer."""
    if is_sparse(old) or is_sparse(new):
        return False
    if _shape_of(old) != _shape_of(new) or old.storage_offset() != new.storage_offset():
        return False
    return np.array_equal(_memory(old), _memory(new))


def _shape_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.untyped_storage().nbytes()


def _fingerprint(names: list[str], args: list[Any]) -> str:
    digest = hashlib.sha256()
    for name, arg in zip(names, args, strict=True):
        if isinstance(arg, torch.Tensor):
            lies = tuple(arg.stride()), int(arg.storage_offset())
            digest.update(f"{name}:{arg.dtype}:{tuple(arg.shape)}:{lies}:".encode())
            digest.update(raw_bytes(arg).tobytes())
        else:
            digest.update(f"{name}:{arg!r}:".encode())
    return digest.hexdigest()
