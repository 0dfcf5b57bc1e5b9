"""A candidate's runs on one case: the first, one more of the same, and some in other orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gatecert.gates.execution import Execution, execute, no_verdict
from gatecert.gates.oracle.cases import PreparedCase
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy, Poison
from gatecert.mutants.records import Candidate
from gatecert.oracle.operations import Operation

_REPEAT_EVERY = 4
REPEATED, REORDERED = 0, 2
"""Which of every four cases run again, and which with their programs in another order: reversed
and shuffled in turn. Where programs meet in memory the others run interleaved, with and without
late writes in turn."""


class NoVerdict(Exception):
    """A run says nothing about the candidate; the message says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A candidate's entry point with a case to be called on."""

    entry: Callable[..., Any]
    candidate: Candidate
    prepared: PreparedCase
    operation: Operation
    further: dict[str, Execution] = field(default_factory=dict)
    """Further runs by their order, so that none is made twice."""

    def run(self) -> Execution:
        """Call it once, on fresh copies.

        Raises:
            NoVerdict: it failed in a way that is no evidence against the candidate.
        """
        # An autotuned kernel takes each of its configurations in some of the cases.
        with interpreter.tuned(self.prepared.tuning):
            run = execute(self.entry, self.prepared.inputs, GuardPolicy.STRICT, self.operation)
        trouble = no_verdict(run, self.candidate)
        if trouble is not None:
            raise NoVerdict(trouble)
        return run

    def run_again(self, poison: Poison) -> Execution:
        """A second run, with other values where nobody wrote any; raises as `run`."""
        if poison.value not in self.further:
            with interpreter.poisoned(poison):
                self.further[poison.value] = self.run()
        return self.further[poison.value]

    def run_in(self, order: interpreter.ProgramOrder, seed: int) -> Execution:
        """A run with its programs in that order; raises as `run`."""
        if order.value not in self.further:
            with interpreter.scheduled(order, seed=seed):
                self.further[order.value] = self.run()
        return self.further[order.value]


def turns(number: int, alone: bool) -> Sequence[int]:
    """Whose turn it is in the case at place `number`; a case that is alone has every check."""
    return range(_REPEAT_EVERY) if alone else (number % _REPEAT_EVERY,)


def poisons(number: int, alone: bool) -> Sequence[Poison]:
    """What nobody wrote reads as in further runs alike, in the case at place `number`."""
    if alone:
        return Poison.HIGH, Poison.LOW
    if REPEATED not in turns(number, alone):
        return ()
    return (Poison.LOW,) if number // _REPEAT_EVERY % 2 else (Poison.HIGH,)


def orders(run: Execution, number: int, alone: bool) -> Iterator[interpreter.ProgramOrder]:
    """The orders that programs run in once more, in the case at place `number`."""
    turn = turns(number, alone)
    if REORDERED in turn:
        second = number // _REPEAT_EVERY % 2 == 1
        if alone or not second:
            yield interpreter.ProgramOrder.REVERSED
        if alone or second:
            yield interpreter.ProgramOrder.SHUFFLED
    if run.shares_memory and (alone or turn[0] not in (REPEATED, REORDERED)):
        late = number // (_REPEAT_EVERY // 2) % 2 == 1
        if alone or not late:
            yield interpreter.ProgramOrder.INTERLEAVED
        if alone or late:
            yield interpreter.ProgramOrder.INTERLEAVED_LATE
