"""What the programs of one launch did with memory: for those who ask afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from gatecert.in_force import InForce
from gatecert.lanes.interpreter.numerics import Array

_SHOWN: InForce[Callable[[bool], None] | None] = InForce(None)


@contextlib.contextmanager
def masks_shown(to: Callable[[bool], None]) -> Iterator[None]:
    """Tell of every access with a mask whether all of its lanes are active, while it is made."""
    with _SHOWN.set(to):
        yield


class Accesses:
    """Numbers of the buffers read and written, masks, and loops on the way."""

    __slots__ = ("atomics", "longest_loop", "masked", "read", "written")

    def __init__(self) -> None:
        self.read: set[int] = set()
        self.written: set[int] = set()
        self.atomics = False
        self.masked: bool | None = None
        """Whether a lane was masked off; None before an access with a mask."""
        self.longest_loop: int | None = None
        """Turns of the longest loop over a range; None before there was one. A loop that constants
        hold to one turn is none."""

    @property
    def are_shared(self) -> bool:
        """Whether there were atomics, or a buffer was both read and written."""
        return self.atomics or not self.read.isdisjoint(self.written)

    def is_whole(self, mask: Array | None) -> bool:
        """Are all lanes of an access active? The answer is noted."""
        if mask is None:
            return True
        whole = bool(mask.all())
        self.masked = bool(self.masked) or not whole
        if _SHOWN.value is not None:
            _SHOWN.value(whole)
        return whole

    def note_atomic(self, number: int, mask: Array) -> None:
        """Atomics have a mask even where the kernel gives none: only a partial one says more."""
        self.atomics = True
        self.written.add(number)
        whole = bool(mask.all())
        if not whole:
            self.masked = True
        if _SHOWN.value is not None:
            _SHOWN.value(whole)

    def note_loop(self, turns: int) -> None:
        """A loop over a range takes so many turns."""
        self.longest_loop = max(turns, self.longest_loop or 0)
