"""Hunt for a witness: try cases in order until one tells the mutant from its original, then bring
it as near to the gate's own cases as it stays one."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gatecert.errors import GatecertError
from gatecert.gates.oracle import PreparedCase, prepare_case
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.oracle.case import Case
from gatecert.oracle.operations import Operation
from gatecert.subjects import Subject
from gatecert.witness.case_runs import CaseRuns
from gatecert.witness.records import (
    RUNS,
    Change,
    HuntBudget,
    HuntEnd,
    NoWitness,
    SetAside,
    SmallDomain,
    Stage,
    Tried,
    Witness,
)
from gatecert.witness.runs import fails
from gatecert.witness.search import SHARES, Attempt, Search, nearest
from gatecert.witness.small_domains import is_about_sizes, largest_bound, small_domain
from gatecert.witness.space import Value, changed, dim_axis

_BATCH = sum(share for _, share in SHARES)
"""Cases that share a child: a round of the search."""
_STEPS = 24
"""Cases that are tried to bring a witness nearer."""
_MOST_EXAMPLES = 5


@dataclass(slots=True)
class Tally:
    """What was tried so far."""

    by_stage: Counter[Stage] = field(default_factory=Counter)
    by_axis: Counter[str] = field(default_factory=Counter)
    other_bits: int = 0
    largest: float = 0.0
    largest_case: str = ""
    impossible: int = 0
    set_aside: list[SetAside] = field(default_factory=list)

    def count(self, attempt: Attempt) -> None:
        """One more case was tried."""
        self.by_stage[attempt.stage] += 1
        self.by_axis.update(attempt.axes)

    def passed(self, verdict: Verdict, bits: str) -> None:
        """The mutant passed a case on which the original gave these bits."""
        if verdict.bits == bits:
            return
        self.other_bits += 1
        if verdict.margin > self.largest:
            self.largest, self.largest_case = verdict.margin, verdict.case

    def tried(self, end: HuntEnd) -> Tried:
        """The record of it; the first examples stand for all cases that were set aside."""
        return Tried(
            cases=self.by_stage.total(),
            end=end,
            by_stage={stage: self.by_stage[stage] for stage in Stage if stage in self.by_stage},
            by_axis=dict(sorted(self.by_axis.items())),
            other_bits=self.other_bits,
            largest=self.largest,
            largest_case=self.largest_case,
            impossible=self.impossible,
            set_aside=tuple(self.set_aside[:_MOST_EXAMPLES]),
            set_asides=len(self.set_aside),
        )


@dataclass(slots=True)
class Hunting:
    """One hunt."""

    operation: Operation
    subject: Subject
    own: Sequence[Case]
    search: Search
    runs: CaseRuns
    budget: HuntBudget
    tally: Tally = field(default_factory=Tally)
    began: float = field(default_factory=time.monotonic)

    def run(self) -> Witness | NoWitness:
        """Try cases until there is a witness or the budget is spent."""
        left = self.budget.cases
        attempts = itertools.islice(self.search.attempts(), left)
        while batch := list(itertools.islice(attempts, _BATCH)):
            left -= len(batch)
            found = self._first_in(batch)
            if found is not None:
                return self._witness(*found)
            if self._time_is_up():
                return NoWitness(self.tally.tried(HuntEnd.SECONDS))
        return self._among_small(HuntEnd.SPACE if left else HuntEnd.CASES)

    def _among_small(self, end: HuntEnd) -> Witness | NoWitness:
        """Of masks, bounds and indices: everything up to a size."""
        space = self.search.space
        bound = largest_bound(space) if is_about_sizes(self.search.reveal) else 0
        if not bound:
            return NoWitness(self.tally.tried(end))
        axes = tuple(map(dim_axis, space.open_dims))
        attempts = (
            Attempt(case, Stage.SMALL, axes) for case in small_domain(space, self.own, bound)
        )
        count = 0
        while batch := list(itertools.islice(attempts, _BATCH)):
            count += len(batch)
            found = self._first_in(batch)
            if found is not None:
                return self._witness(*found)
            if self._time_is_up():
                return NoWitness(self.tally.tried(HuntEnd.SECONDS))
        return NoWitness(self.tally.tried(end), SmallDomain(space.open_dims, bound, count))

    def _time_is_up(self) -> bool:
        return time.monotonic() - self.began > self.budget.seconds

    def _first_in(self, batch: Sequence[Attempt]) -> tuple[Attempt, Verdict] | None:
        """The first attempt that is a witness."""
        by_case = {attempt.case: attempt for attempt in batch}
        prepared = list(self._prepared(batch))
        firsts = self.runs.originals(prepared) if prepared else []
        bits: dict[str, str] = {}
        for one, verdict in zip(prepared, firsts, strict=True):
            if verdict.outcome is GateOutcome.ACCEPTED:
                bits[one.case.id] = verdict.bits
            else:
                self._set_aside(one.case, verdict)
        left = [one for one in prepared if one.case.id in bits]
        while left:
            said = self.runs.mutants(left, bits)
            for one, verdict in zip(left, said, strict=False):
                self.tally.count(by_case[one.case])
                if verdict.outcome is GateOutcome.ACCEPTED:
                    self.tally.passed(verdict, bits[one.case.id])
                elif not fails(verdict):
                    self._set_aside(one.case, verdict)
                elif self._original_passes(one):
                    return by_case[one.case], verdict
            left = left[len(said) :]
        return None

    def _prepared(self, batch: Iterable[Attempt]) -> Iterator[PreparedCase]:
        for attempt in batch:
            try:
                yield prepare_case(self.operation, attempt.case, self.subject)
            except GatecertError:  # indices that the sizes leave no room for
                self.tally.impossible += 1

    def _original_passes(self, one: PreparedCase) -> bool:
        verdict = self.runs.confirmed(one)
        if verdict.outcome is not GateOutcome.ACCEPTED:
            self._set_aside(one.case, verdict)
        return verdict.outcome is GateOutcome.ACCEPTED

    def _set_aside(self, case: Case, verdict: Verdict) -> None:
        why = f"{verdict.candidate}: {verdict.outcome.value} {verdict.reason.value}".rstrip()
        self.tally.set_aside.append(SetAside(case.id, f"{why}: {verdict.detail}"))

    def _witness(self, attempt: Attempt, verdict: Verdict) -> Witness:
        """The record of a witness that was found, as near as it could be brought."""
        case, verdict = self._nearer(attempt.case, verdict)
        own, changes = nearest(case, self.own)
        said = [
            Change(axis, _text(mine), _text(others)) for axis, (mine, others) in changes.items()
        ]
        return Witness(
            case=case.id,
            nearest=own.id,
            changes=tuple(said) or (Change(RUNS, "in turn", "all"),),
            stage=attempt.stage,
            reason=verdict.reason,
            detail=verdict.detail,
            tried=self.tally.tried(HuntEnd.FOUND),
            worst=verdict.worst,
            findings=verdict.findings,
            inputs_sha256=verdict.inputs_sha256,
        )

    def _nearer(self, case: Case, verdict: Verdict) -> tuple[Case, Verdict]:
        """Take one axis after the other back to the nearest of the gate's cases, as long as what
        is left is a witness."""
        known = set(self.own)
        steps = 0
        improved = True
        while improved:
            improved = False
            _, changes = nearest(case, self.own)
            for axis, (mine, _) in changes.items() if len(changes) > 1 else ():
                nearer = changed(self.operation, case, {axis: mine})
                if nearer in known or not self.search.space.fits(nearer):
                    continue
                if steps == _STEPS:
                    return case, verdict
                known.add(nearer)
                steps += 1
                found = self._first_in([Attempt(nearer, Stage.NEARER, (axis,))])
                if found is not None:
                    case, verdict, improved = nearer, found[1], True
                    break
        return case, verdict


def _text(value: Value) -> str:
    """A value of an axis as a case has it."""
    if isinstance(value, tuple):
        return "+".join(value) or "none"
    return str(value)
