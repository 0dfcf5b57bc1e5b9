"""In which order the programs of a launch run: one after another, or taking turns.

On a GPU every order and every interleaving can happen, so a right kernel is right in all of them.
"""

from __future__ import annotations

import contextvars
import enum
import itertools
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

Program = tuple[int, int, int]
_RESIDENT = 16
"""How many programs take turns at a time: a few neighbours, as on one multiprocessor."""


class ProgramOrder(str, enum.Enum):
    """How the programs of every launch follow one another."""

    FORWARD = "forward"
    """First to last, each to its end."""
    REVERSED = "reversed"
    """Last to first, each to its end."""
    SHUFFLED = "shuffled"
    """In an order drawn from the seed, each to its end."""
    INTERLEAVED = "interleaved"
    """Sixteen at a time, one memory access each in turn: what one program reads, another may
    write before the first writes back. Only atomics survive that."""
    INTERLEAVED_LATE = "interleaved with late writes"
    """The same, the last program first, and each misses some turns before it writes: what it
    read may be old by then, whichever program is the one that updates without an atomic."""


class Access(enum.Enum):
    """What a program is about to do when it lets the next one run."""

    LOAD = "load"
    """It reads."""
    STORE = "store"
    """It writes what it may have computed from an earlier load."""
    ATOMIC = "atomic"
    """It reads and writes at once."""


INTERLEAVED: Mapping[ProgramOrder, Mapping[Access, int]] = MappingProxyType(
    {
        ProgramOrder.INTERLEAVED: {},
        # An atomic waits for a load that comes a little later, and the store for the atomic.
        ProgramOrder.INTERLEAVED_LATE: {Access.ATOMIC: 8, Access.STORE: 16},
    }
)
"""The orders in which programs take turns, and how many of them they miss before an access."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order, and the seed that a shuffled one is drawn from."""

    order: ProgramOrder = ProgramOrder.FORWARD
    seed: int = 0


def in_order(schedule: Schedule, dims: Program) -> Sequence[Program]:
    """The programs of a grid, as they start."""
    x, y, z = map(range, dims)
    programs = list(itertools.product(x, y, z))
    if schedule.order in (ProgramOrder.REVERSED, ProgramOrder.INTERLEAVED_LATE):
        programs.reverse()
    elif schedule.order is ProgramOrder.SHUFFLED:
        random.Random(schedule.seed).shuffle(programs)
    return programs


def take_turns(
    programs: Sequence[Program],
    run: Callable[[Program], None],
    resume: Callable[[Program], None],
    announce: Callable[[Callable[[Access], None]], None],
    missed: Mapping[Access, int],
) -> None:
    """Run programs in threads of which one runs at a time, in strict rotation.

    `announce` is given the function that a program calls before each memory access: it lets
    the next one run, and leaves this one out of as many rounds as are `missed` before such an
    access. `resume(program)` is called whenever a program goes on. The first error ends them
    all and is raised.
    """
    rotation = _Rotation(resume, missed)
    announce(rotation.next_turn)
    waiting = iter(programs)
    with_context = contextvars.copy_context()
    while batch := tuple(itertools.islice(waiting, _RESIDENT)):
        rotation.run(batch, run, with_context)


class _Ended(BaseException):
    """Another program failed: this one is not run to its end. No kernel can catch it."""


@dataclass(slots=True)
class _Seat:
    """One program in the rotation, and the baton that it waits for."""

    program: Program
    missing: int = 0
    """How many turns it is still left out of."""
    baton: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class _Rotation:
    """The seats of the programs that have not ended; only the thread with the baton changes it."""

    def __init__(self, resume: Callable[[Program], None], missed: Mapping[Access, int]) -> None:
        self._resume = resume
        self._missed = missed
        self._seats: list[_Seat] = []
        self._turn = 0
        self._error: BaseException | None = None
        self._all_done = threading.Semaphore(0)

    def run(
        self,
        programs: Sequence[Program],
        work: Callable[[Program], None],
        context: contextvars.Context,
    ) -> None:
        self._seats = [_Seat(program) for program in programs]
        self._turn = 0
        threads = [
            threading.Thread(target=context.copy().run, args=(self._take_part, seat, work))
            for seat in self._seats
        ]
        for thread in threads:
            thread.start()
        self._seats[0].baton.release()
        self._all_done.acquire()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def next_turn(self, access: Access) -> None:
        """Let the next program run, and wait until it is this one's turn again."""
        seat = self._seats[self._turn]
        if len(self._seats) > 1:
            seat.missing = self._missed.get(access, 0)
            self._hand_on(self._turn + 1)
            self._wait(seat)

    def _hand_on(self, turn: int) -> None:
        """Give the baton to the first seat from there on that misses no turn."""
        while (seat := self._seats[turn % len(self._seats)]).missing:
            seat.missing -= 1
            turn += 1
        self._turn = turn % len(self._seats)
        seat.baton.release()

    def _wait(self, seat: _Seat) -> None:
        seat.baton.acquire()
        if self._error is not None:
            raise _Ended
        self._resume(seat.program)

    def _take_part(self, seat: _Seat, work: Callable[[Program], None]) -> None:
        try:
            self._wait(seat)
            work(seat.program)
        except _Ended:
            pass
        except BaseException as error:
            self._error = error
        self._leave(seat)

    def _leave(self, seat: _Seat) -> None:
        """Give the seat up; the next one gets the baton, the last one says that all are done."""
        at = self._seats.index(seat)
        self._seats.remove(seat)
        if not self._seats:
            self._all_done.release()
            return
        self._hand_on(at)


__all__ = ["INTERLEAVED", "Access", "ProgramOrder", "Schedule", "in_order", "take_turns"]
