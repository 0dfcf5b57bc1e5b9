"""Ctrl-C and SIGTERM end a command in good order: what is known is kept, nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from gatecert.errors import INTERRUPTED, TERMINATED

_STOPS = (signal.SIGINT, signal.SIGTERM)
_ASKED = b"gatecert: stopping; once more ends it at once and may leave files behind\n"


class Stops:
    """The signals to stop that have come, in order."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    @property
    def exit_status(self) -> int:
        """The first one's; of Ctrl-C where none was seen."""
        return TERMINATED if self._seen[:1] == [signal.SIGTERM] else INTERRUPTED

    def heed(self, number: int, frame: FrameType | None) -> None:
        """The first one interrupts, the second waits for that to end, the third ends all."""
        self._seen.append(number)
        if len(self._seen) == 1:
            raise KeyboardInterrupt
        if len(self._seen) == 2:
            os.write(2, _ASKED)
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


@contextlib.contextmanager
def stoppable() -> Iterator[Stops]:
    """Heed both signals inside, also where a shell has put the command in the background, which
    starts it with interrupts ignored."""
    stops = Stops()
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    before = {number: signal.signal(number, stops.heed) for number in _STOPS}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
