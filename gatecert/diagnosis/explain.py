"""Measure why a gate accepted mutants: its own calls run again, then a search outside them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gatecert.diagnosis.axes import blind_axes
from gatecert.diagnosis.binding import KnownCall
from gatecert.diagnosis.children import Children, Traced, limit_beside, lines_to_follow
from gatecert.diagnosis.comparing import Comparison
from gatecert.diagnosis.guard_runs import GuardRuns
from gatecert.diagnosis.guards import MANNERS, guards_in
from gatecert.diagnosis.noise import Difference, difference
from gatecert.diagnosis.outputs import outputs_of, written_by
from gatecert.diagnosis.plain_runs import PlainRuns
from gatecert.diagnosis.records import (
    Captured,
    Evidence,
    Guard,
    GuardSeen,
    Infected,
    Propagated,
    Reached,
)
from gatecert.diagnosis.replaying import Ran
from gatecert.mutants.records import Candidate
from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.operations import Operation
from gatecert.subjects import Subject
from gatecert.witness.hunt import Hunting
from gatecert.witness.records import Hunt, HuntBudget, Witness
from gatecert.witness.search import Search
from gatecert.witness.space import space_of

_MOST_GUARDED = 24
"""Calls of the gate's that are run under guards, spread over all."""
_GUARD_SHARE = 4
"""A search for what only guards see tries so many times fewer cases: each is run six times."""


@dataclass(slots=True)
class Explainer:
    """One subject under one gate, whose `calls` of the entry are known; `own` are the cases that
    they are like."""

    subject: Subject
    gate: str
    operation: Operation | None
    captured: Captured
    calls: Sequence[KnownCall]
    own: Sequence[Case]
    first: Children
    comparison: Comparison | None
    budget: HuntBudget
    seed: int
    _originals: Traced | None = field(default=None)
    _original_s: float = 0.0

    def explain(self, candidate: Candidate) -> Evidence:
        """All that is measured of one mutant, as far as the answer depends on it."""
        began = time.monotonic()
        evidence = Evidence(candidate.id, self.gate, self.captured)
        if self.captured.why_none:
            return evidence
        evidence = self._on_own_calls(candidate, evidence)
        wrong = evidence.propagated is not None and evidence.propagated.beyond_noise > 0
        if self.operation is not None and self.own and not (wrong and self.comparison is None):
            evidence = self._outside(candidate, evidence, wrong=wrong)
        return msgspec.structs.replace(evidence, seconds=round(time.monotonic() - began, 3))

    def _on_own_calls(self, candidate: Candidate, evidence: Evidence) -> Evidence:
        originals = {path: Path(path).read_text(encoding="utf-8") for path in candidate.files}
        here, there = lines_to_follow(originals, candidate)
        mutant = self._children(candidate, there)
        plain = [one.call for one in self.calls]
        if self._originals is None:
            started = time.monotonic()
            self._originals = self.first.traced(plain)
            self._original_s = time.monotonic() - started
        mutant.limit_s = limit_beside(self._original_s)
        first, second = self._originals, mutant.traced(plain)
        followed = second
        if not any(there.values()):  # lines are only left out: did they run before?
            followed = self._children(self.first.candidate, here).traced(plain)
        launches = sum(len(ran.launches) for ran in second.ran)
        evidence = msgspec.structs.replace(
            evidence,
            reached=Reached(launches, followed.run, followed.masked),
            infected=_infected(first.ran, second.ran),
            propagated=self._propagated(first.ran, second.ran),
        )
        if evidence.propagated is not None and evidence.propagated.beyond_noise:
            return evidence
        return msgspec.structs.replace(evidence, guards=self._guards(mutant))

    def _propagated(self, first: Sequence[Ran], second: Sequence[Ran]) -> Propagated:
        found = [
            self._difference(known, one, other)
            for known, one, other in zip(self.calls, first, second, strict=True)
        ]
        worst = max(range(len(found)), key=lambda at: _rank(found[at]), default=0)
        largest = found[worst] if found else Difference()
        return Propagated(
            calls=len(found),
            differing=sum(one.other_bits for one in found),
            beyond_noise=sum(one.beyond_noise for one in found),
            call=worst,
            difference=largest.largest,
            error=largest.error,
            own_error=largest.own_error,
        )

    def _difference(self, known: KnownCall, one: Ran, other: Ran) -> Difference:
        if one.hung or other.hung:
            return Difference()
        if one.error or other.error:
            return Difference(one.error != other.error, one.error != other.error)
        written = written_by(known.call, one, self.operation)
        return difference(
            outputs_of(known.call, one, written),
            outputs_of(known.call, other, written),
            known.expected,
        )

    def _guards(self, mutant: Children) -> tuple[GuardSeen, ...]:
        """What guards see on the gate's own inputs of the mutant and not of the original."""
        step = max(1, -(-len(self.calls) // _MOST_GUARDED))
        calls = list(self.calls)[::step]
        found: dict[Guard, GuardSeen] = {}
        for known, seen in zip(calls, self._seen(mutant, calls), strict=True):
            news = {guard: said for guard, said in seen.items() if guard not in found}
            if news:
                (usual,) = self._seen(self.first, [known])
                case = known.case.id if known.case is not None else ""
                found |= {
                    guard: GuardSeen(guard, said, case)
                    for guard, said in news.items()
                    if guard not in usual
                }
        return tuple(found.values())

    def _seen(self, children: Children, calls: Sequence[KnownCall]) -> list[dict[Guard, str]]:
        jobs = [(known.call, manner, 0) for known in calls for manner in MANNERS]
        ran = children.ran(jobs)
        found = []
        for place, known in enumerate(calls):
            runs = dict(zip(MANNERS, ran[place * len(MANNERS) :], strict=False))
            written = written_by(known.call, runs[MANNERS[0]], self.operation)
            found.append(guards_in(known.call, runs, written, known.expected))
        return found

    def _outside(self, candidate: Candidate, evidence: Evidence, *, wrong: bool) -> Evidence:
        """Search for what results show, then for what only guards do."""
        assert self.operation is not None
        mutant = self._children(candidate, {})
        configs = max(1, self.subject.configs)
        reject = self.comparison if wrong else None
        plain = PlainRuns(self.operation, self.first, mutant, configs, reject)
        hunt = self._hunt(candidate, plain, self.budget)
        evidence = msgspec.structs.replace(evidence, hunt=hunt)
        if isinstance(hunt.found, Witness):
            blind = blind_axes(
                parse_case(hunt.found.case), hunt.found.changes, self.own, self.subject.blocks
            )
            evidence = msgspec.structs.replace(evidence, blind=blind)
            passes = False if wrong else self._passes(plain, hunt.found)
            return msgspec.structs.replace(evidence, witness_passes=passes)
        if evidence.guards or wrong:
            return evidence
        budget = HuntBudget(self.budget.seconds, max(1, self.budget.cases // _GUARD_SHARE))
        seen = self._hunt(candidate, GuardRuns(self.operation, self.first, mutant), budget).found
        if not isinstance(seen, Witness):
            return evidence
        name, _, said = seen.detail.partition(": ")
        outside = GuardSeen(Guard(name), said, seen.case)
        return msgspec.structs.replace(evidence, guards_outside=(outside,))

    def _passes(self, plain: PlainRuns, witness: Witness) -> bool | None:
        """Whether the gate's own comparison lets the mutant's results on the witness pass."""
        if self.comparison is None:
            return None
        return plain.passes(witness.case, self.comparison, self.subject)

    def _hunt(self, candidate: Candidate, runs: PlainRuns | GuardRuns, budget: HuntBudget) -> Hunt:
        assert self.operation is not None
        began = time.monotonic()
        space = space_of(self.operation, self.subject, self.own, self.seed)
        search = Search(space, self.own, candidate.reveal, self.seed)
        found = Hunting(self.operation, self.subject, self.own, search, runs, budget).run()
        seconds = round(time.monotonic() - began, 3)
        return Hunt(candidate.id, self.gate, self.seed, len(self.own), found, seconds)

    def _children(self, candidate: Candidate, lines: dict[str, frozenset[int]]) -> Children:
        return Children(self.subject, candidate, self.first.memory_bytes, lines)


def _infected(first: Sequence[Ran], second: Sequence[Ran]) -> Infected:
    """Launches are held against each other in order, as far as both were made."""
    pairs = [
        pair
        for one, other in zip(first, second, strict=True)
        for pair in zip(one.launches, other.launches, strict=False)
    ]
    differing = [one.kernel for one, other in pairs if one != other]
    return Infected(len(pairs), len(differing), differing[0] if differing else "")


def _rank(seen: Difference) -> tuple[bool, float]:
    return seen.beyond_noise, seen.largest or 0.0
