"""Calls of a recorded function, told apart by what their arguments were like, and counted."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import torch

from gatecert.launch_log import LaunchRecord, SeenArgument
from gatecert.oracle.binding import Misfit, SeenTensor, bind
from gatecert.oracle.operations import resolve_operation

Key = tuple[Any, ...]
"""What the arguments of a call were like."""
_ALIGNED_BYTES = 16
_PLAIN = frozenset((int, float, bool, str, type(None)))


class CallCounts:
    """One recorded function, with its counts since the last flush."""

    def __init__(self, function: Any, operation: str, entry: str, subject: str) -> None:
        self._function = function
        self._operation = operation
        self._entry = entry
        self._subject = subject
        self._schema: Any = None
        self._records: dict[Key, LaunchRecord] = {}
        self.counts: dict[Key, int] = {}
        self.known: set[Key] = set()

    def take(self) -> dict[Key, int]:
        """The counts so far, which start again from nothing."""
        counts, self.counts = self.counts, {}
        return counts

    def record(self, key: Key, count: int) -> LaunchRecord:
        """The line of a key; what it is made of is worked out once."""
        if key not in self._records:
            self._records[key] = self._bound(key)
        return msgspec.structs.replace(self._records[key], count=count)

    def _bound(self, key: Key) -> LaunchRecord:
        plain = LaunchRecord(self._operation, 0, self._entry, self._subject)
        try:
            schema = self._schema = self._schema or resolve_operation(self._operation)
            names = [spec.name for spec in schema.inputs]
        except Exception as error:
            schema, names, trouble = None, [], f"operation {self._operation!r}: {error}"
        values = _by_name(self._function, key, names)
        seen = {name: v for name, v in values.items() if isinstance(v, SeenTensor)}
        try:
            if schema is None:
                raise Misfit(trouble)
            bound = bind(schema, values)
        except Misfit as misfit:
            arguments = {
                name: SeenArgument(v.shape, v.strides, v.dtype) for name, v in seen.items()
            }
            return msgspec.structs.replace(plain, misfit=str(misfit), arguments=arguments)
        return msgspec.structs.replace(
            plain,
            dims=bound.dims,
            dtype=bound.dtype,
            layout=bound.layout,
            scalars=bound.scalars,
            absent=bound.absent,
        )


def look_at(value: Any) -> Any:
    """What matters of an argument, to be compared and hashed."""
    if isinstance(value, torch.Tensor):
        start = value.storage_offset()
        offset = start * value.element_size() % _ALIGNED_BYTES if start else 0
        return value.dtype, value.shape, value.stride(), offset
    kind = type(value)
    return (kind, value) if kind in _PLAIN else kind


def _by_name(function: Any, key: Key, names: list[str]) -> dict[str, Any]:
    """The arguments of a key by the schema's names: first by place, as the oracle hands them over.

    What the call left out has the function's own default, which may not be the reference's.
    """
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = {}
    own = list(parameters) or names
    renamed = dict(zip(own, names, strict=False))
    values = {
        renamed.get(name, name): parameter.default
        for name, parameter in parameters.items()
        if isinstance(parameter.default, (int, float))
    }
    for place, look in enumerate(key):
        name: str
        if isinstance(look, tuple) and len(look) == 2 and isinstance(look[0], str):
            name, look = look[0], look[1]
        else:
            name = own[place] if place < len(own) else f"number {place + 1}"
        values[renamed.get(name, name)] = _value(look)
    return values


def _value(look: Any) -> Any:
    if isinstance(look, type):
        return look
    if len(look) == 2:
        return look[1]
    dtype, shape, strides, offset = look
    return SeenTensor(tuple(shape), tuple(strides), str(dtype).removeprefix("torch."), offset)
