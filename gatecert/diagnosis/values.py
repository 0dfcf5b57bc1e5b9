"""Arguments and results of a call as plain data, and back: each tensor as it lies in memory.

Nothing here is code: what is read back can do nothing (no pickle).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec
import torch

from gatecert.oracle.formats import raw_bytes
from gatecert.oracle.layouts import Placement, place, placement_of

_TRITON_DTYPE = "triton.language.core.dtype"


class Unkept(Exception):
    """A value that cannot be kept; the message says what it is."""


class TensorValue(msgspec.Struct, frozen=True, tag="tensor"):
    """A tensor; equal `number`s in one call are one and the same."""

    number: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    span: int
    requires_grad: bool
    data: bytes


class PlainValue(msgspec.Struct, frozen=True, tag="plain"):
    """A number, a text, or nothing."""

    value: bool | int | float | str | None


class TorchValue(msgspec.Struct, frozen=True, tag="torch"):
    """A dtype or device of torch, or a dtype of Triton, by what it prints."""

    kind: str
    text: str


class ManyValues(msgspec.Struct, frozen=True, tag="many"):
    """A tuple or a list."""

    is_tuple: bool
    items: tuple[Value, ...]


class NamedValues(msgspec.Struct, frozen=True, tag="named"):
    """A dict with texts for keys."""

    items: dict[str, Value]


Value: TypeAlias = TensorValue | PlainValue | TorchValue | ManyValues | NamedValues


def kept(thing: Any, numbers: dict[int, int]) -> Value:
    """The thing as plain data; `numbers` tells tensors of one call apart by their ids.

    Raises:
        Unkept: it is an object of another kind, or a tensor that is not in plain memory.
    """
    if isinstance(thing, torch.Tensor):
        return _tensor(thing, numbers)
    if thing is None or isinstance(thing, bool | int | float | str):
        return PlainValue(thing)
    if isinstance(thing, torch.dtype | torch.device):
        return TorchValue(type(thing).__name__, str(thing))
    if f"{type(thing).__module__}.{type(thing).__name__}" == _TRITON_DTYPE:
        return TorchValue(_TRITON_DTYPE, thing.name)
    if isinstance(thing, tuple | list):
        return ManyValues(isinstance(thing, tuple), tuple(kept(part, numbers) for part in thing))
    if isinstance(thing, Mapping) and all(isinstance(key, str) for key in thing):
        return NamedValues({key: kept(part, numbers) for key, part in thing.items()})
    raise Unkept(f"a {type(thing).__module__}.{type(thing).__name__}")


def made(value: Value, tensors: dict[int, torch.Tensor]) -> Any:
    """The thing anew, its tensors in memory of their own; they are added to `tensors`."""
    if isinstance(value, TensorValue):
        if value.number not in tensors:
            tensors[value.number] = tensor_of(value)
        return tensors[value.number]
    if isinstance(value, ManyValues):
        parts = [made(part, tensors) for part in value.items]
        return tuple(parts) if value.is_tuple else parts
    if isinstance(value, NamedValues):
        return {key: made(part, tensors) for key, part in value.items.items()}
    if isinstance(value, TorchValue) and value.kind == _TRITON_DTYPE:
        import triton.language as tl

        return tl.dtype(value.text)
    if isinstance(value, TorchValue):
        text = value.text.removeprefix("torch.")
        return torch.device(text) if value.kind == "device" else getattr(torch, text)
    return value.value


def tensor_of(value: TensorValue) -> torch.Tensor:
    """The tensor, in new memory, at the same strides."""
    found = place(contents_of(value), Placement(value.strides, value.offset, value.span))
    return found.requires_grad_(value.requires_grad)


def contents_of(value: TensorValue) -> torch.Tensor:
    """Its elements, close together."""
    dtype: torch.dtype = getattr(torch, value.dtype)
    if not value.data:
        return torch.empty(value.shape, dtype=dtype)
    return torch.frombuffer(bytearray(value.data), dtype=dtype).reshape(value.shape)


def tensors_in(value: Value) -> Iterator[TensorValue]:
    """All tensors, from left to right."""
    if isinstance(value, TensorValue):
        yield value
    elif isinstance(value, ManyValues):
        for part in value.items:
            yield from tensors_in(part)
    elif isinstance(value, NamedValues):
        for part in value.items.values():
            yield from tensors_in(part)


def _tensor(tensor: torch.Tensor, numbers: dict[int, int]) -> TensorValue:
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise Unkept(f"a tensor on {tensor.device} ({tensor.layout})")
    where = placement_of(tensor)
    return TensorValue(
        number=numbers.setdefault(id(tensor), len(numbers)),
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        strides=where.strides,
        offset=where.offset,
        span=where.span,
        requires_grad=tensor.requires_grad and tensor.is_leaf,
        data=raw_bytes(tensor).tobytes(),
    )
