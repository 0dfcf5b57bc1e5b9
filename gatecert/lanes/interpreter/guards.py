"""Guard policies: what a bad or masked-off lane reads, and the log of what was seen.

Imports no Triton, so that it can be used before the interpreter is switched on.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from gatecert.in_force import InForce
from gatecert.lanes.interpreter.fresh_memory import repeatable_memory
from gatecert.lanes.interpreter.order import ProgramOrder, Schedule
from gatecert.lanes.records import Finding, FindingKind, GuardPolicy, Poison

_FORWARD = Schedule()
_BYTES = {Poison.NAN: 0x55, Poison.HIGH: 0x2B, Poison.LOW: 0xD5}
"""Repeated, each is a large odd integer of every width; the last is negative."""
_LARGE = 30_000.0
_LARGE_IN_A_BYTE = 240.0


class FindingLog:
    """What one guarded stretch saw: findings, one per kind, kernel and argument, and failures."""

    def __init__(self) -> None:
        self._findings: dict[tuple[FindingKind, str, str], Finding] = {}
        self._failures: list[str] = []
        self.shares_memory = False
        """Some launch of several programs had atomics, or read what it also wrote."""

    def add(self, finding: Finding) -> None:
        """Count a finding; the first offset at a place is kept."""
        place = (finding.kind, finding.kernel, finding.argument)
        earlier = self._findings.get(place)
        if earlier is not None:
            finding = Finding(*place, earlier.lanes + finding.lanes, earlier.first_offset)
        self._findings[place] = finding

    def findings(self) -> tuple[Finding, ...]:
        """What was seen so far, in the order of first occurrence."""
        return tuple(self._findings.values())

    def note_sharing(self) -> None:
        """Note that programs of a launch may have worked on the same memory."""
        self.shares_memory = True

    def add_failure(self, said: str) -> None:
        """Note that a launch failed inside the lane, and what was said."""
        self._failures.append(said)

    def failures(self) -> tuple[str, ...]:
        """Launches that failed inside the lane, also those whose error was caught outside."""
        return tuple(self._failures)


@dataclass(frozen=True, slots=True)
class Guard:
    """A policy in force, where its findings go, and the order programs run in."""

    policy: GuardPolicy = GuardPolicy.LENIENT
    log: FindingLog = field(default_factory=FindingLog)
    schedule: Schedule = _FORWARD
    poison: Poison = Poison.NAN

    def bad_load(self, dtype: np.dtype[Any]) -> Any:
        """What a lane outside its buffer reads."""
        if self.policy is GuardPolicy.STRICT:
            return poison(dtype, self.poison)
        return dtype.type(1) if dtype.kind in "iub" else dtype.type(0.5)

    def masked_off(self, dtype: np.dtype[Any]) -> Any:
        """What a masked-off lane of a load without `other` reads."""
        return poison(dtype, self.poison) if self.policy is GuardPolicy.STRICT else dtype.type(0)


def poison(dtype: np.dtype[Any], kind: Poison = Poison.NAN) -> Any:
    """What nobody wrote, of this dtype."""
    if dtype.kind == "b":
        return np.bool_(kind is Poison.NAN)
    if dtype.kind in "iu":
        return np.full(dtype.itemsize, _BYTES[kind], np.uint8).view(dtype)[0]
    if kind is Poison.NAN:
        return dtype.type(np.nan)
    large = _LARGE_IN_A_BYTE if dtype.itemsize == 1 else _LARGE
    return dtype.type(large if kind is Poison.HIGH else -large)


_IN_FORCE: InForce[Guard | None] = InForce(None)


def guard_in_force() -> Guard:
    """The guard that a launch obeys now; lenient, its findings unread, outside `guarded`."""
    return _IN_FORCE.value or Guard()


@contextlib.contextmanager
def guarded(policy: GuardPolicy) -> Iterator[FindingLog]:
    """Check every lane of every load, store and atomic; under STRICT also poison memory.

    Under STRICT, tensors that torch makes without initialising them (`torch.empty`, ...) hold
    NaN or the largest integer, or what `poisoned` says.
    """
    guard = replace(guard_in_force(), policy=policy, log=FindingLog())
    with _IN_FORCE.set(guard), _fresh_memory(guard):
        yield guard.log


@contextlib.contextmanager
def scheduled(order: ProgramOrder, seed: int = 0) -> Iterator[None]:
    """Run the programs of every launch in another order: a right kernel cannot tell."""
    with _IN_FORCE.set(replace(guard_in_force(), schedule=Schedule(order, seed))):
        yield


@contextlib.contextmanager
def poisoned(kind: Poison) -> Iterator[None]:
    """Let what nobody wrote read as this under the strict policy: a right kernel cannot tell."""
    with _IN_FORCE.set(replace(guard_in_force(), poison=kind)):
        yield


def _fresh_memory(guard: Guard) -> contextlib.AbstractContextManager[None]:
    if guard.policy is not GuardPolicy.STRICT:
        return contextlib.nullcontext()
    return _nan_memory() if guard.poison is Poison.NAN else repeatable_memory(_LARGE)


@contextlib.contextmanager
def _nan_memory() -> Iterator[None]:
    # Its type is made at run time, out of the checker's sight.
    deterministic: Any = torch.utils.deterministic
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        deterministic.fill_uninitialized_memory,
    )
    # Torch fills fresh memory only in its deterministic mode; operations that have no
    # deterministic form would warn, which is not what this mode is used for here.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deterministic.*", category=UserWarning)
        _deterministic(True, warn_only=True)
        deterministic.fill_uninitialized_memory = True
        try:
            yield
        finally:
            _deterministic(before[0], warn_only=before[1])
            deterministic.fill_uninitialized_memory = before[2]


def _deterministic(mode: bool, *, warn_only: bool) -> None:
    # The public function also configures the compiler, whose import costs a second per child.
    torch._C._set_deterministic_algorithms(mode, warn_only=warn_only)
