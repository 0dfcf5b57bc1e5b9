"""How long kernels ran. Imports no Triton."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from gatecert.in_force import InForce


@dataclass(slots=True)
class Stopwatch:
    """Seconds spent inside kernels so far."""

    seconds: float = 0.0


_RUNNING: InForce[Stopwatch | None] = InForce(None)


@contextlib.contextmanager
def timed() -> Iterator[Stopwatch]:
    """Measure the kernels that run inside."""
    watch = Stopwatch()
    with _RUNNING.set(watch):
        yield watch


@contextlib.contextmanager
def kernel_runs() -> Iterator[None]:
    """A kernel runs inside: its time is added to the watch in force."""
    watch, started = _RUNNING.value, time.perf_counter()
    try:
        yield
    finally:
        if watch is not None:
            watch.seconds += time.perf_counter() - started
