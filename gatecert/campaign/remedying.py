"""The smallest set of cases that kills what a gate missed, proven under a seed of its own.

Every survivor's witness is tried on every other survivor of its subject, the cheapest cover of all
is chosen, and the chosen cases, with other values, judge survivors and controls once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gatecert.campaign.judging import judge_requests, mark_of
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.selection import select
from gatecert.campaign.shards import candidate_of, request_of
from gatecert.campaign.supervise import ServerPool, server_pool
from gatecert.errors import EnvironmentFailure
from gatecert.gates.config import OracleSettings
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import original
from gatecert.oracle.case import parse_case
from gatecert.remedies.cover import cheapest_cover
from gatecert.remedies.records import Added, HeldOut
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from gatecert.store import RunRecord

HELD_OUT_SEED = 1_000_003
"""Added to the seed of every case when the set is proven: values that no search has seen."""
_MOST_CASES = 24
"""Witnesses of a subject that take part, those that most survivors share first; but each
survivor's own."""
_TASKS_AT_ONCE = 40
_KILLS = (GateOutcome.REJECTED, GateOutcome.CRASHED, GateOutcome.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Treatment:
    """The chosen cases, and what they did under the held-out seed."""

    cases: tuple[Added, ...]
    held_out: HeldOut


def smallest_set(
    plan: Plan, witnesses: Mapping[str, str], record: RunRecord, progress: Progress
) -> Treatment:
    """The cheapest cases that kill every mutant in `witnesses` (a case by mutant) that some of
    these kill, and the proof of it. Goes on from `record`.

    Raises:
        EnvironmentFailure: a subject cannot run, or the original fails on a witness.
    """
    mark = mark_of(plan, record)
    with server_pool(plan.jobs) as pool:
        planned, _ = select(plan, plan_campaign(plan, pool, progress))
        for subject in planned:
            if subject.run.failed:
                raise EnvironmentFailure(subject.run.failed)
        run = _Run(plan, planned, witnesses, pool, record, progress, mark)
        kills, costs = run.matrix(), run.costs()
        chosen = {
            name: cheapest_cover(by_case, costs[name]) for name, by_case in sorted(kills.items())
        }
        added = tuple(
            Added(name, case, costs[name][case], tuple(sorted(kills[name][case])))
            for name, cases in chosen.items()
            for case in cases
        )
        return Treatment(added, run.held_out(chosen))


def with_other_values(case: str) -> str:
    """The same case under the held-out seed."""
    asked = parse_case(case)
    return msgspec.structs.replace(asked, seed=asked.seed + HELD_OUT_SEED, given=()).id


@dataclass(frozen=True, slots=True)
class _Run:
    plan: Plan
    planned: Sequence[PlannedSubject]
    witnesses: Mapping[str, str]
    pool: ServerPool
    record: RunRecord
    progress: Progress
    mark: str

    def matrix(self) -> dict[str, dict[str, frozenset[str]]]:
        """By subject and witness, the mutants that fail on it."""
        requests = []
        for subject in self.planned:
            gate = _gate("oracle-witnesses", self._cases_of(subject))
            tasks = [
                Task(candidate_of(mutant, subject.texts), gate.name, stop_at_first=False)
                for mutant in subject.run.mutants
            ]
            requests += list(self._requests(subject, gate, tasks))
        found: dict[str, dict[str, set[str]]] = {}
        for request, verdicts in self._judged("try witnesses", requests):
            assert request.gates[0].oracle is not None
            by_case = found.setdefault(
                request.subject.name, {case: set() for case in request.gates[0].oracle.cases}
            )
            for said in verdicts:
                for case in self._failed(said):
                    by_case[case].add(said.candidate)
        return {
            name: {case: frozenset(some) for case, some in by_case.items()}
            for name, by_case in found.items()
        }

    def _failed(self, said: Verdict) -> tuple[str, ...]:
        """The cases that a mutant failed; of one that took its process down its own is known."""
        if said.outcome is GateOutcome.REJECTED:
            return said.failed
        return (self.witnesses[said.candidate],) if said.outcome in _KILLS else ()

    def costs(self) -> dict[str, dict[str, float]]:
        """By subject and witness, the seconds that the original takes on it.

        Raises:
            EnvironmentFailure: it fails there.
        """
        requests = []
        for subject in self.planned:
            gates = [
                _gate(f"oracle-witness-{number}", [case])
                for number, case in enumerate(self._cases_of(subject))
            ]
            first = original(subject.run.subject.name)
            tasks = tuple(Task(first, gate.name, stop_at_first=False) for gate in gates)
            request = request_of(self.plan, subject, tasks)
            requests.append(msgspec.structs.replace(request, gates=tuple(gates)))
        found: dict[str, dict[str, float]] = {}
        for request, verdicts in self._judged("time witnesses", requests):
            case_of = {gate.name: gate.oracle.cases[0] for gate in request.gates if gate.oracle}
            for said in verdicts:
                if said.outcome is not GateOutcome.ACCEPTED:
                    raise EnvironmentFailure(
                        f"{request.subject.name}: the original fails on {case_of[said.gate]}: "
                        f"{said.detail}"
                    )
                found.setdefault(request.subject.name, {})[case_of[said.gate]] = said.spent.gate_s
        return found

    def held_out(self, chosen: Mapping[str, Sequence[str]]) -> HeldOut:
        """Judge survivors and controls by the chosen cases with other values."""
        requests: list[ShardRequest] = []
        for subject in self.planned:
            cases = [with_other_values(case) for case in chosen.get(subject.run.subject.name, ())]
            if not cases:
                continue
            gate = _gate("oracle-held-out", cases)
            mutants = [candidate_of(mutant, subject.texts) for mutant in subject.run.mutants]
            controls = [original(subject.run.subject.name), *subject.run.controls]
            tasks = [
                *(Task(one, gate.name, stop_at_first=False) for one in controls),
                *(Task(one, gate.name) for one in mutants),
            ]
            requests += list(self._requests(subject, gate, tasks))
        said = [
            verdict
            for _, verdicts in self._judged("prove the smallest set", requests)
            for verdict in verdicts
        ]
        on_controls = [one for one in said if one.candidate not in self.witnesses]
        killed = {
            one.candidate
            for one in said
            if one.candidate in self.witnesses and one.outcome in _KILLS
        }
        return HeldOut(
            seed=HELD_OUT_SEED,
            mutants=len(self.witnesses),
            killed=len(killed),
            survived=tuple(sorted(set(self.witnesses) - killed)),
            controls=len(on_controls),
            rejected=tuple(
                sorted(o.candidate for o in on_controls if o.outcome is not GateOutcome.ACCEPTED)
            ),
        )

    def _cases_of(self, subject: PlannedSubject) -> list[str]:
        """The witnesses of its mutants that are tried on all of them."""
        shared = Counter(self.witnesses[mutant.id] for mutant in subject.run.mutants)
        return [case for case, _ in sorted(shared.items(), key=_by_use)][:_MOST_CASES]

    def _requests(
        self, subject: PlannedSubject, gate: GateRef, tasks: Sequence[Task]
    ) -> Iterator[ShardRequest]:
        for start in range(0, len(tasks), _TASKS_AT_ONCE):
            request = request_of(self.plan, subject, tasks[start : start + _TASKS_AT_ONCE])
            yield msgspec.structs.replace(request, gates=(gate,))

    def _judged(
        self, stage: str, requests: Sequence[ShardRequest]
    ) -> Iterable[tuple[ShardRequest, tuple[Verdict, ...]]]:
        self.progress.stage(stage, sum(len(request.tasks) for request in requests))
        marks = {s.run.subject.name: self.mark + s.sources_sha256 for s in self.planned}
        return judge_requests(self.pool, requests, marks, self.record, self.progress)


def _by_use(shared: tuple[str, int]) -> tuple[int, str]:
    case, uses = shared
    return -uses, case


def _gate(name: str, cases: Sequence[str]) -> GateRef:
    return GateRef(name, "", oracle=OracleSettings(cases=tuple(cases)))
