"""Calls and cases run again in forked children, original and mutant apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.lines import changed_lines
from gatecert.diagnosis.replaying import Manner, Ran, run_call, target_of
from gatecert.diagnosis.tracing import LineTrace
from gatecert.errors import EnvironmentFailure
from gatecert.lanes import interpreter
from gatecert.mutants.overlay import install_overlay, overlay_proof
from gatecert.mutants.records import Candidate
from gatecert.sandbox.child import ChildEnd, ChildResult, run_in_child
from gatecert.subjects import Subject, load_entry

_UNPROVEN = "not imported as given: "
ORIGINAL_S = 300.0
_LEAST_S, _FACTOR, _PER_CALL_S = 30.0, 60.0, 10.0


class Traced(msgspec.Struct, frozen=True):
    """Calls run again, and what became of the lines followed meanwhile."""

    ran: tuple[Ran, ...]
    run: bool = False
    masked: bool | None = None


@dataclass(slots=True)
class Children:
    """Runs calls of one subject under one candidate."""

    subject: Subject
    candidate: Candidate
    memory_bytes: int
    lines: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """By path the lines to follow."""
    limit_s: float = ORIGINAL_S
    """A process is ended that takes longer, or longer than some seconds for each of its calls."""

    def traced(self, calls: Sequence[Kept]) -> Traced:
        """Plain runs of all calls, with the lines followed; a call that ends its process is an
        error, and those after it run in another."""
        trace = LineTrace(self.lines)

        def work() -> bytes:
            with trace.following():
                entry = self._entry()
                ran = tuple(run_call(target_of(c, entry), c, Manner.PLAIN) for c in calls)
            return msgspec.msgpack.encode(Traced(ran, trace.run, trace.masked))

        result = self._in_child(work, len(calls))
        if result.end is ChildEnd.ANSWERED:
            return msgspec.msgpack.decode(_body(result), type=Traced)
        self._check(result)
        if len(calls) == 1:
            return Traced((_unanswered(result),), run=True)
        parts = [self.traced([call]) for call in calls]
        masks = [part.masked for part in parts if part.masked is not None]
        return Traced(
            tuple(ran for part in parts for ran in part.ran),
            any(part.run for part in parts),
            any(masks) if masks else None,
        )

    def ran(self, jobs: Sequence[tuple[Kept, Manner, int]]) -> tuple[Ran, ...]:
        """Runs of calls, each in its manner and under the autotune configuration of that number."""

        def work() -> bytes:
            entry = self._entry()
            return msgspec.msgpack.encode(tuple(_runs(entry, jobs)))

        result = self._in_child(work, len(jobs))
        if result.end is ChildEnd.ANSWERED:
            return msgspec.msgpack.decode(_body(result), type=tuple[Ran, ...])
        self._check(result)
        if len(jobs) == 1:
            return (_unanswered(result),)
        return tuple(ran for job in jobs for ran in self.ran([job]))

    def answer_of(self, work: Callable[[], bytes]) -> bytes:
        """What other work in a child answers.

        Raises:
            EnvironmentFailure: it gives no answer.
        """
        result = self._in_child(work, 1)
        if result.end is not ChildEnd.ANSWERED:
            raise EnvironmentFailure(f"{self.candidate.id}: {result.last_words}")
        return _body(result)

    def _entry(self) -> Callable[..., object]:
        install_overlay(self.candidate.files)
        entry = load_entry(self.subject)
        missed = overlay_proof(self.candidate.files) if self.candidate.files else []
        if missed:
            raise EnvironmentFailure(f"{_UNPROVEN}{', '.join(missed)}")
        return entry

    def _in_child(self, work: Callable[[], bytes], runs: int) -> ChildResult:
        limit_s = max(self.limit_s, _PER_CALL_S * runs)
        return run_in_child(
            lambda: work().hex().encode(), timeout_s=limit_s, memory_bytes=self.memory_bytes
        )

    def _check(self, result: ChildResult) -> None:
        """Raise an `EnvironmentFailure` where the overlay is not what was imported."""
        if _UNPROVEN in result.log:
            raise EnvironmentFailure(f"{self.candidate.id}: {result.last_words}")


def limit_beside(original_s: float) -> float:
    """How long a mutant may take for what took the original so long: many times as long, since the
    machine may be busier by then."""
    return max(_LEAST_S, _FACTOR * original_s)


def _unanswered(result: ChildResult) -> Ran:
    return Ran(error=result.last_words, hung=result.end is ChildEnd.TIMEOUT)


def lines_to_follow(
    originals: Mapping[str, str], candidate: Candidate
) -> tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]]:
    """By path the lines that a mutant changes, as the original and as the mutant has them."""
    here: dict[str, frozenset[int]] = {}
    there: dict[str, frozenset[int]] = {}
    for path, text in candidate.files.items():
        here[path], there[path] = changed_lines(originals[path], text)
    return here, there


def _runs(entry: Callable[..., object], jobs: Sequence[tuple[Kept, Manner, int]]) -> Iterator[Ran]:
    for call, manner, config in jobs:
        with interpreter.tuned(config):
            yield run_call(target_of(call, entry), call, manner)


def _body(result: ChildResult) -> bytes:
    """A child's answer ends with a line end, which bytes may hold: hence in hexadecimal."""
    return bytes.fromhex(result.answer.decode())
