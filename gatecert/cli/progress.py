"""How a run is getting on: a bar on a terminal, else a line every half minute, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from gatecert.gates.records import Verdict

_LINE_EVERY_S = 30.0


class BarProgress:
    """A bar per stage, drawn by rich."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = bars.add_task("start", total=None)

    def stage(self, name: str, total: int) -> None:
        """A stage of `total` steps begins."""
        self._bars.update(self._task, visible=False)
        self._task = self._bars.add_task(name, total=total)

    def step(self, verdict: Verdict | None = None) -> None:
        """One step is done."""
        self._bars.advance(self._task)

    def say(self, line: str) -> None:
        """A line that stays."""
        self._bars.console.print(f"gatecert: {line}", highlight=False)


class LineProgress:
    """A line when a stage begins, then one every 30 s while it lasts."""

    def __init__(self, stream: TextIO, every_s: float = _LINE_EVERY_S) -> None:
        self._stream = stream
        self._every_s = every_s
        self._lock = threading.Lock()
        self._name, self._total, self._done = "", 0, 0
        self._due = 0.0

    def stage(self, name: str, total: int) -> None:
        """A stage of `total` steps begins."""
        with self._lock:
            self._name, self._total, self._done = name, total, 0
            self._due = time.monotonic() + self._every_s
            print(f"gatecert: {name}: {total}", file=self._stream, flush=True)

    def step(self, verdict: Verdict | None = None) -> None:
        """One step is done."""
        with self._lock:
            self._done += 1
            if time.monotonic() >= self._due:
                self._due = time.monotonic() + self._every_s
                line = f"gatecert: {self._name}: {self._done} of {self._total}"
                print(line, file=self._stream, flush=True)

    def say(self, line: str) -> None:
        """A line of its own."""
        with self._lock:
            print(f"gatecert: {line}", file=self._stream, flush=True)


@contextmanager
def shown_progress(stream: TextIO | None = None) -> Iterator[BarProgress | LineProgress]:
    """The kind of progress that suits the stream (stderr by default)."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield LineProgress(stream)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bars:
        yield BarProgress(bars)
