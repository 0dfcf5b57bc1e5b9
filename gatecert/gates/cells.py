"""Cells of a matrix run: what a candidate did on every case, for comparators yet to be asked."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import msgspec

from gatecert.gates.execution import Execution
from gatecert.gates.records import Reason, Verdict
from gatecert.lanes import interpreter
from gatecert.mutants.records import Candidate
from gatecert.oracle.expectation import Expected
from gatecert.oracle.observation import Observation, observe
from gatecert.oracle.tolerance import RoundingInterval


class Sight(msgspec.Struct, frozen=True, array_like=True):
    """One execution; `order` says in which order its programs ran where it was not the usual
    one. `guard` is what is wrong whatever a comparator says (it raised, broke the
    output contract, left its buffers, changed an input, did not repeat); `outputs` hold every
    output against the unrounded and against the rounded reference, and are empty where there
    was nothing to compare."""

    guard: Reason
    outputs: tuple[Observation, ...] = ()
    order: str = ""


class Cell(msgspec.Struct, frozen=True, array_like=True):
    """One candidate on one case. `again` are further runs in other orders of its programs, on
    the cases that have them; where one of them says nothing, `untold` says why."""

    case: str
    run: Sight
    again: tuple[Sight, ...] = ()
    untold: str = ""


@runtime_checkable
class ObservingGate(Protocol):
    """A prepared gate that can record every case beside its verdict."""

    def observe(self, candidate: Candidate) -> tuple[Verdict, tuple[Cell, ...]]:
        """The verdict over all cases, and a cell for each."""
        ...


def sight_of(
    run: Execution,
    expected: Expected,
    breaks_contract: bool,
    interval: RoundingInterval | None,
    order: str = "",
) -> Sight:
    """Record an execution; `interval` gives the law of the observations' interval scores."""
    if run.error is not None:
        stopped = interpreter.was_stopped(run.error)
        return Sight(Reason.BOUNDS if stopped else Reason.RAISED, order=order)
    if breaks_contract:
        return Sight(Reason.CONTRACT, order=order)
    guard = Reason.NONE
    if run.findings:
        guard = Reason.BOUNDS
    elif run.changed:
        guard = Reason.INPUT_CHANGED
    seen = (
        observe(wanted, output, rounded_reference=rounded, interval=interval)
        for wanted, output in zip(expected.outputs, run.outputs, strict=True)
        for rounded in ((False,) if wanted.counted else (False, True))
    )
    return Sight(guard, tuple(seen), order)


def pack_cells(cells: Iterable[Cell]) -> bytes:
    """One candidate's cells, compressed together: their field names repeat."""
    return zlib.compress(msgspec.msgpack.encode(tuple(cells)), 6)


def unpack_cells(body: bytes) -> tuple[Cell, ...]:
    """Cells back; a run without them gives none."""
    if not body:
        return ()
    return msgspec.msgpack.decode(zlib.decompress(body), type=tuple[Cell, ...])
