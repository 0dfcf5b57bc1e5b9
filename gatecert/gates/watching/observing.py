"""What launches and calls of the entry were given, as records."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol

import torch
from torch.utils.weak import WeakIdKeyDictionary

from gatecert.gates.evidence import LaunchInputs
from gatecert.gates.watching.sights import Sizes
from gatecert.gates.watching.tensor_reads import dtype_name
from gatecert.lanes.records import Launch, LaunchTrace

_DEEPEST = 4
"""How far lists, dicts and objects are looked into."""


class Takes(Protocol):
    """Takes the records."""

    def quietly(self) -> contextlib.AbstractContextManager[None]:
        """Nothing is noted inside."""
        ...

    def launched(self, inputs: LaunchInputs, sizes: Sizes) -> None:
        """A kernel ran; `sizes` are its integers."""
        ...

    def called(self, inputs: LaunchInputs) -> None:
        """The entry is called."""
        ...

    def gave_back(self, tensors: Iterable[torch.Tensor]) -> None:
        """The call gave these back."""
        ...

    def returned(self, error: BaseException | None, in_place: bool) -> None:
        """The call has ended."""
        ...


class LaunchInputsObserver:
    """Makes a record of every launch of some kernels (empty: of all)."""

    def __init__(self, takes: Takes, kernels: frozenset[str]) -> None:
        self._takes = takes
        self._kernels = kernels
        self._written: Any = WeakIdKeyDictionary()
        self._negative: dict[str, bool | None] = {}

    def before(self, launch: Launch, tensors: Mapping[str, torch.Tensor]) -> None:
        """Look at values now: the kernel may overwrite them."""
        with self._takes.quietly():
            self._negative = {name: is_negative(tensor) for name, tensor in tensors.items()}

    def after(
        self, launch: Launch, tensors: Mapping[str, torch.Tensor], trace: LaunchTrace
    ) -> None:
        """Note what the launch was given; only now is it known what it reads."""
        with self._takes.quietly():
            given = {
                name: tensor
                for name, tensor in tensors.items()
                if name in trace.read and not self._made_by_a_kernel(tensor)
            }
            for name in trace.wrote & tensors.keys():
                self._written[tensors[name]] = True
            inputs = LaunchInputs(
                kernel=launch.kernel,
                shapes=_shapes(tensors.items()),
                dtypes=tuple(dtype_name(tensor.dtype) for tensor in tensors.values()),
                blocks=tuple(
                    (name, value) for name, value in launch.constexprs if type(value) is int
                ),
                contiguous=all(tensor.is_contiguous() for tensor in given.values()),
                negative=_any(self._negative.get(name) for name in given),
                programs=math.prod(launch.grid) if trace.asks_which_program else None,
                masked=trace.masked,
                longest_loop=trace.longest_loop,
            )
        if not self._kernels or launch.kernel in self._kernels:
            self._takes.launched(inputs, _sizes(launch, tensors.values()))

    def _made_by_a_kernel(self, tensor: torch.Tensor) -> bool:
        base = tensor._base
        return tensor in self._written or (base is not None and base in self._written)


class CallObserver:
    """Makes a record of every call of the entry; calls that it makes of itself do not count."""

    def __init__(self, takes: Takes, entry: str) -> None:
        self._takes = takes
        self._entry = entry
        self._depth = 0
        self._storages: frozenset[int] = frozenset()

    def entering(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note what the call was given."""
        self._depth += 1
        if self._depth > 1:
            return
        with self._takes.quietly(), contextlib.suppress(Exception):
            named = {f"argument {number}": value for number, value in enumerate(args)}
            tensors = dict(_tensors({**named, **kwargs}))
            self._storages = frozenset(_storage(tensor) for tensor in tensors.values()) - {0}
            inputs = LaunchInputs(
                kernel=self._entry,
                shapes=_shapes(tensors.items()),
                dtypes=tuple(dtype_name(tensor.dtype) for tensor in tensors.values()),
                contiguous=all(tensor.is_contiguous() for tensor in tensors.values()),
                negative=_any(is_negative(tensor) for tensor in tensors.values()),
            )
            self._takes.called(inputs)

    def left(self, result: Any, error: BaseException | None) -> None:
        """Note how it ended."""
        self._depth -= 1
        if self._depth:
            return
        in_place = False
        if error is None:
            with self._takes.quietly(), contextlib.suppress(Exception):
                found = [tensor for _, tensor in _tensors({"": result})]
                in_place = not found or any(_storage(t) in self._storages for t in found)
                self._takes.gave_back(found)
        self._takes.returned(error, in_place)


def is_negative(tensor: torch.Tensor) -> bool | None:
    """Does a floating-point tensor hold a value below zero? None where it holds no floats."""
    if not tensor.is_floating_point() or not tensor.numel():
        return None
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return None  # to look at a value would end the capture
    try:
        return bool(tensor.detach().amin() < 0)
    except (RuntimeError, NotImplementedError):  # an 8-bit format
        return None


def _tensors(values: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors by name, those held by lists, dicts and objects included."""
    for name, value in values.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif depth < _DEEPEST:
            yield from _tensors(dict(_parts(name, value)), depth + 1)


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, tuple | list):
        yield from ((f"{name}[{i}]", part) for i, part in enumerate(value))
    elif isinstance(value, Mapping):
        yield from ((f"{name}[{key!r}]", part) for key, part in value.items())
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            yield f"{name}.{one.name}", getattr(value, one.name, None)
    elif not callable(value) and not isinstance(value, ModuleType | enum.Enum):
        attributes = getattr(value, "__dict__", {})
        yield from ((f"{name}.{key}", part) for key, part in attributes.items())


def _shapes(
    tensors: Iterable[tuple[str, torch.Tensor]],
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, tuple(tensor.shape)) for name, tensor in tensors)


def _sizes(launch: Launch, tensors: Iterable[torch.Tensor]) -> Sizes:
    """Integers that are no strides: how much of the tensors a launch is to work on, perhaps."""
    strides = {step for tensor in tensors for step in tensor.stride()}
    return tuple((name, value) for name, value in launch.integers if value not in strides)


def _any(found: Iterable[bool | None]) -> bool | None:
    known = [one for one in found if one is not None]
    return any(known) if known else None


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())
