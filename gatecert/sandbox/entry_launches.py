"""Which of a gate's launches are the entry's: made in a call of it, or in a backward pass through
what a call of it returned."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TypeAlias

import msgspec
import torch
from torch.autograd.function import BackwardCFunction

from gatecert.lanes import interpreter
from gatecert.lanes.records import Launch
from gatecert.mutants.entry_calls import entry_observed

_AUTOGRAD = BackwardCFunction.apply.__code__.co_filename
_MOST_NODES = 10_000

Origin: TypeAlias = tuple[str, tuple[str, int]]
"""What a launch is of: its kernel, and the launcher that made it."""


class EntryCalls:
    """Knows, as an observer of the entry's calls, whether what happens now is the entry's doing.

    Calls of all threads count together: an entry may launch from threads of its own.
    """

    def __init__(self) -> None:
        self.count = 0
        self._under_way = 0
        self._functions: set[type] = set()
        self._lock = threading.Lock()

    @property
    def under_way(self) -> bool:
        """Is it called, or in a backward pass through what it returned?"""
        return bool(self._under_way) or self._is_in_backward()

    def entering(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A call of the entry begins."""
        with self._lock:
            self.count += 1
            self._under_way += 1

    def left(self, result: Any, error: BaseException | None) -> None:
        """A call of the entry ends; what it returned may be differentiated later."""
        with self._lock:
            self._under_way -= 1
        with contextlib.suppress(Exception):
            self._functions.update(_functions_behind(result))

    def _is_in_backward(self) -> bool:
        return bool(self._functions) and any(type(node) in self._functions for node in _nodes())


class EntryLaunches(list[Launch]):
    """A list of launches that knows which of them are made in the entry's `calls`."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = EntryCalls()
        self._made: set[Origin] = set()

    def append(self, launch: Launch) -> None:
        """A launch: called where it is made."""
        super().append(launch)
        if self.calls.under_way:
            self._made.add((launch.kernel, launch.launcher))

    def of_entry(self) -> list[Launch]:
        """As `of_entry`."""
        return of_entry(self, self._made, self.calls.count)


def of_entry(launches: Iterable[Launch], made: Collection[Origin], calls: int) -> list[Launch]:
    """Every launch of a kernel that the entry launches, which `made` those; where it was never
    called, all.

    A compiled form counts whoever asks for it, but only the entry's own launchers are named.
    """
    if not calls:
        return list(launches)
    kernels = {kernel for kernel, _ in made}
    places = {launcher for _, launcher in made}
    return [
        launch if launch.launcher in places else msgspec.structs.replace(launch, launcher=("", 0))
        for launch in launches
        if launch.kernel in kernels
    ]


@contextlib.contextmanager
def launches_of_entry() -> Iterator[EntryLaunches]:
    """Record all launches inside, and which of them are the entry's."""
    launches = EntryLaunches()
    with interpreter.recording(launches), entry_observed(launches.calls, all_threads=True):
        yield launches


def _nodes() -> Iterator[BackwardCFunction]:
    """The functions of `torch.autograd` whose backward pass is under way in this thread."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _AUTOGRAD:
            node = frame.f_locals.get("self")
            if isinstance(node, BackwardCFunction):
                yield node
        frame = frame.f_back


def _functions_behind(result: Any) -> Iterator[type]:
    """The functions written in Python that tensors were made by."""
    waiting: list[Any] = [tensor.grad_fn for tensor in _tensors(result)]
    seen: set[Any] = set()
    while waiting and len(seen) < _MOST_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, BackwardCFunction):
            yield type(node)
        waiting += [before for before, _ in node.next_functions]


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _of_all(value.values())
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        yield from _of_all(value)


def _of_all(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        yield from _tensors(value)
