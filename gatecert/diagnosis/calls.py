"""Calls of a subject's entry, captured while a gate runs: written to a file one by one, so that
whatever ends the process leaves those before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from gatecert.diagnosis.values import NamedValues, Unkept, Value, kept

MOST_CALLS = 256
MOST_BYTES = 128 << 20
_LENGTH_BYTES = 8


class Kept(msgspec.Struct, frozen=True, tag="kept"):
    """A call's arguments as they were before it. With a `kernel` it is no call of the entry, but a
    launch of that kernel over a grid that the gate makes by itself."""

    args: tuple[Value, ...]
    kwargs: NamedValues
    kernel: str = ""
    grid: tuple[int, ...] = ()


class Again(msgspec.Struct, frozen=True, tag="again"):
    """A call like one that is kept."""


class Cut(msgspec.Struct, frozen=True, tag="cut"):
    """A call beyond what there is memory for."""


class NotKept(msgspec.Struct, frozen=True, tag="not_kept"):
    """A call, or a launch of a kernel, with an argument that cannot be kept."""

    why: str
    kernel: str = ""


CallRecord: TypeAlias = Kept | Again | Cut | NotKept


class CallCapture:
    """Writes calls of the entry to a file, as an observer of them, and launches of `kernels` that
    are made outside of those (empty: of all). Calls that the entry makes of itself do not count.
    The arguments stay as they are."""

    def __init__(
        self,
        path: str,
        kernels: Collection[str] = (),
        most_calls: int = MOST_CALLS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._kernels = frozenset(kernels)
        self._path = path
        self._most_calls = most_calls
        self._most_bytes = most_bytes
        self._seen: set[bytes] = set()
        self._bytes = 0
        self._depths = threading.local()

    def entering(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Write the call down, before it can change what it was given."""
        depth = getattr(self._depths, "value", 0)
        self._depths.value = depth + 1
        if depth == 0:
            with contextlib.suppress(Exception):  # evidence must never change what happens
                self._write(self._record(args, kwargs))

    def left(self, result: Any, error: BaseException | None) -> None:
        """Nothing is kept of how it ended: it is run again."""
        self._depths.value = getattr(self._depths, "value", 1) - 1

    def launched(
        self, kernel: str, args: tuple[Any, ...], options: Mapping[str, Any], grid: tuple[int, ...]
    ) -> None:
        """Write a launch down that is none of the entry's, before it can change its tensors."""
        if getattr(self._depths, "value", 0) or (self._kernels and kernel not in self._kernels):
            return
        with contextlib.suppress(Exception):
            self._write(self._record(args, options, kernel, grid))

    def _record(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        kernel: str = "",
        grid: tuple[int, ...] = (),
    ) -> CallRecord:
        numbers: dict[int, int] = {}
        if len(self._seen) >= self._most_calls:
            return Cut()
        try:
            call = Kept(
                tuple(kept(arg, numbers) for arg in args),
                NamedValues({name: kept(arg, numbers) for name, arg in kwargs.items()}),
                kernel,
                grid,
            )
        except Unkept as reason:
            return NotKept(str(reason), kernel)
        body = msgspec.msgpack.encode(call)
        mark = hashlib.sha256(body).digest()
        if mark in self._seen:
            return Again()
        if self._bytes + len(body) > self._most_bytes:
            return Cut()
        self._seen.add(mark)
        self._bytes += len(body)
        return call

    def _write(self, record: CallRecord) -> None:
        body = msgspec.msgpack.encode(record)
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "wb", closefd=True) as file:
            file.write(len(body).to_bytes(_LENGTH_BYTES, "little") + body)


def read_calls(path: Path) -> Iterator[CallRecord]:
    """What was written, up to the first record that is not whole."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        while len(head := file.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
            body = file.read(int.from_bytes(head, "little"))
            try:
                yield msgspec.msgpack.decode(body, type=CallRecord)
            except msgspec.DecodeError:
                return
