"""Original and mutant on single cases, each in forked children that may die."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gatecert.encoding import decode, encode
from gatecert.errors import EnvironmentFailure
from gatecert.gates.oracle import PreparedCase, PreparedOracle, under_every_config
from gatecert.gates.records import ORACLE, GateOutcome, Verdict
from gatecert.mutants.overlay import install_overlay, overlay_proof
from gatecert.mutants.records import Candidate
from gatecert.oracle.operations import Operation
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.sandbox.child import ChildEnd, ChildResult, run_in_child
from gatecert.subjects import Subject, load_entry

_COMPARATOR = RoundingInterval()
_UNPROVEN = "not imported as given: "
_ORIGINAL_S = 300.0
_LEAST_S, _FACTOR = 20.0, 60.0
"""A mutant hangs when it takes so many times as long as the original did in one run per case, and
this long at least: what it is suspected of is run in every order."""


@dataclass(slots=True)
class Runs:
    """Runs cases of one subject under one mutant, and under the original.

    A quick look runs a case once, in every autotune configuration; a whole look, as a replay does,
    a second time and in other orders of programs too.
    """

    subject: Subject
    operation: Operation
    first: Candidate
    mutant: Candidate
    memory_bytes: int
    whole: bool = False
    """Give every case of the mutant a whole look: what no single run shows is looked for."""
    _limit_s: float = field(default=_ORIGINAL_S)

    def originals(self, cases: Sequence[PreparedCase]) -> list[Verdict]:
        """A quick look at each case of the original."""
        started = time.monotonic()
        verdicts = self._all(self.first, cases, None, _ORIGINAL_S)
        self._limit_s = max(_LEAST_S, _FACTOR * (time.monotonic() - started))
        return verdicts

    def mutants(self, cases: Sequence[PreparedCase], bits: Mapping[str, str]) -> list[Verdict]:
        """Cases of the mutant, up to the first that fails: a quick look, and a whole one where
        that fails or gives other `bits` than the original's, which are by case."""
        return self._all(self.mutant, cases, bits, self._limit_s)

    def confirmed(self, case: PreparedCase) -> Verdict:
        """A whole look at the original."""
        (verdict,) = self._all(self.first, [case], {}, _ORIGINAL_S)
        return verdict

    def _all(
        self,
        candidate: Candidate,
        cases: Sequence[PreparedCase],
        bits: Mapping[str, str] | None,
        limit_s: float,
    ) -> list[Verdict]:
        """All together in one child; where it gives no answer, one by one.

        Raises:
            EnvironmentFailure: the overlay is not what was imported.
        """
        result = self._in_child(candidate, cases, bits, limit_s)
        if result.end is ChildEnd.ANSWERED:
            return list(decode(result.answer, tuple[Verdict, ...]))
        if _UNPROVEN in result.log:
            raise EnvironmentFailure(f"{candidate.id}: {result.last_words}")
        if len(cases) == 1:
            return [_without_answer(candidate, cases[0], result)]
        found: list[Verdict] = []
        for case in cases:
            found += self._all(candidate, [case], bits, max(_LEAST_S, limit_s / len(cases)))
            if bits is not None and fails(found[-1]):
                break
        return found

    def _in_child(
        self,
        candidate: Candidate,
        cases: Sequence[PreparedCase],
        bits: Mapping[str, str] | None,
        limit_s: float,
    ) -> ChildResult:
        def work() -> bytes:
            install_overlay(candidate.files)
            return encode(tuple(self._verdicts(candidate, cases, bits)))

        return run_in_child(work, timeout_s=limit_s, memory_bytes=self.memory_bytes)

    def _verdicts(
        self,
        candidate: Candidate,
        cases: Sequence[PreparedCase],
        bits: Mapping[str, str] | None,
    ) -> list[Verdict]:
        with contextlib.suppress(Exception):  # the oracle will say so
            load_entry(self.subject)
        missed = overlay_proof(candidate.files) if candidate.files else []
        if missed:
            raise EnvironmentFailure(f"{_UNPROVEN}{', '.join(missed)}")
        found = []
        for case in cases:
            found.append(self._look(candidate, case, bits))
            if bits is not None and fails(found[-1]):
                break
        return found

    def _look(
        self, candidate: Candidate, case: PreparedCase, bits: Mapping[str, str] | None
    ) -> Verdict:
        if bits is None or not self.whole:
            verdict = self._oracle(case, once=True).judge(candidate, stop_at_first=True)
            if bits is None or (verdict.bits == bits.get(case.case.id) and not fails(verdict)):
                return verdict
        return self._oracle(case, once=False).judge(candidate, stop_at_first=True)

    def _oracle(self, case: PreparedCase, *, once: bool) -> PreparedOracle:
        cases = tuple(under_every_config([case], self.subject.configs))
        return PreparedOracle(ORACLE, self.subject, self.operation, _COMPARATOR, cases, once=once)


def fails(verdict: Verdict) -> bool:
    """Is it evidence against the candidate? That nothing could be run is none."""
    return verdict.outcome not in (GateOutcome.ACCEPTED, GateOutcome.ERROR)


def _without_answer(candidate: Candidate, case: PreparedCase, result: ChildResult) -> Verdict:
    outcome = GateOutcome.CRASHED
    if result.end is ChildEnd.TIMEOUT:
        outcome = GateOutcome.TIMEOUT
    elif result.raised:
        outcome = GateOutcome.ERROR
    return Verdict(
        candidate.id,
        ORACLE,
        outcome,
        detail=result.last_words,
        case=case.case.id,
        inputs_sha256=case.inputs.sha256,
        signal=result.signal,
    )
