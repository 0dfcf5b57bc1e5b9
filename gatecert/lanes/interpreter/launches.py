"""Record launches, with or without running them. Imports no Triton."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from gatecert.in_force import InForce
from gatecert.lanes.records import Launch, LaunchTrace


@dataclass(frozen=True, slots=True)
class Recorder:
    """Takes launches; `dry` means that they are recorded and not run."""

    launches: list[Launch] = field(default_factory=list)
    dry: bool = False


class LaunchObserver(Protocol):
    """Sees the tensors of launches; it must leave them as they are."""

    def before(self, launch: Launch, tensors: Mapping[str, Any]) -> None:
        """A launch is about to run on these arguments, by name."""
        ...

    def after(self, launch: Launch, tensors: Mapping[str, Any], trace: LaunchTrace) -> None:
        """It has run, and did not raise."""
        ...


class _Observers(threading.local):
    """Those of one thread: what they keep is made for one."""

    seeing: tuple[LaunchObserver, ...] = ()


class SeesArguments(Protocol):
    """Sees launches with all that they are made of; it must leave that as it is."""

    def launched(
        self, kernel: str, args: tuple[Any, ...], options: Mapping[str, Any], grid: tuple[int, ...]
    ) -> None:
        """The kernel of that name (`module:qualname`) is about to run."""
        ...


_ARGUMENTS: InForce[SeesArguments | None] = InForce(None)
_RECORDERS: InForce[tuple[Recorder, ...]] = InForce(())
_OBSERVERS = _Observers()
_CONFIG = InForce(0)
_BETWEEN = ("gatecert.lanes.", "triton.")
"""Modules whose code stands between a launcher and a launch."""


def recorders() -> tuple[Recorder, ...]:
    """The recorders in force, outermost first."""
    return _RECORDERS.value


def observers() -> tuple[LaunchObserver, ...]:
    """The observers in force in this thread."""
    return _OBSERVERS.seeing


def sees_arguments() -> SeesArguments | None:
    """Who sees the arguments of launches now."""
    return _ARGUMENTS.value


@contextlib.contextmanager
def arguments_shown(to: SeesArguments) -> Iterator[None]:
    """Show every launch inside, with its arguments, before it runs; also those of other threads."""
    with _ARGUMENTS.set(to):
        yield


def place_of_launch() -> tuple[str, int]:
    """File and line of the code that is launching a kernel: the nearest outside lane and Triton."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).startswith(_BETWEEN):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


def config_in_force() -> int:
    """The position of the configuration that an autotuned kernel runs with."""
    return _CONFIG.value


@contextlib.contextmanager
def recording(into: list[Launch] | None = None) -> Iterator[list[Launch]]:
    """Every launch inside, in order, repeats included, also those of other threads; appended to
    `into`, where given."""
    with _in_force(Recorder([] if into is None else into)) as launches:
        yield launches


@contextlib.contextmanager
def observed(observer: LaunchObserver) -> Iterator[None]:
    """Show the tensors of every launch that this thread makes inside to `observer`."""
    before = _OBSERVERS.seeing
    _OBSERVERS.seeing = (*before, observer)
    try:
        yield
    finally:
        _OBSERVERS.seeing = before


@contextlib.contextmanager
def dry_run() -> Iterator[list[Launch]]:
    """Every launch inside, recorded and not run; of an autotuned kernel, every configuration."""
    with _in_force(Recorder(dry=True)) as launches:
        yield launches


@contextlib.contextmanager
def tuned(index: int) -> Iterator[None]:
    """Run autotuned kernels with their configuration `index`, counted round and round."""
    with _CONFIG.set(index):
        yield


@contextlib.contextmanager
def _in_force(recorder: Recorder) -> Iterator[list[Launch]]:
    with _RECORDERS.set((*_RECORDERS.value, recorder)):
        yield recorder.launches
