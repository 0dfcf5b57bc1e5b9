"""How long kernels ran. Imports no Triton."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent inside kernels so far."""

    seconds: float = 0.0


_RUNNING: ContextVar[Stopwatch | None] = ContextVar("stopwatch", default=None)


@contextlib.contextmanager
def timed() -> Iterator[Stopwatch]:
    """Measure the kernels that run inside."""
    watch = Stopwatch()
    token = _RUNNING.set(watch)
    try:
        yield watch
    finally:
        _RUNNING.reset(token)


@contextlib.contextmanager
def kernel_runs() -> Iterator[None]:
    """A kernel runs inside: its time is added to the watch in force."""
    watch, started = _RUNNING.get(), time.perf_counter()
    try:
        yield
    finally:
        if watch is not None:
            watch.seconds += time.perf_counter() - started
