"""Cut a plan into shards: the unit that one server works on at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gatecert.campaign.code import Comparisons
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.plant import overlay_of
from gatecert.mutants.records import (
    Candidate,
    CandidateKind,
    CodeComparison,
    CodeVerdict,
    Mutant,
    original,
)
from gatecert.sandbox.protocol import GateRef, Limits, ShardRequest, Task

_NOT_RUN = frozenset({CodeVerdict.UNVIABLE, CodeVerdict.DUPLICATE})
_SHARDS_PER_JOB = 3
_ALONE = Limits(factor=20.0, minimum_s=60.0)


def make_shards(
    plan: Plan,
    planned: Sequence[PlannedSubject],
    comparisons: Comparisons,
) -> list[ShardRequest]:
    """Shards of all subjects, dearest first, so that the last ones to end are small.

    A proven equivalent is run like any mutant: a gate that kills it has found our error.
    """
    work = [
        (subject, tasks)
        for subject in planned
        if not subject.run.failed
        and (tasks := _tasks(plan, subject, comparisons[subject.run.subject.name]))
    ]
    costs = [subject.probe_s * len(tasks) for subject, tasks in work]
    fair_share = sum(costs) / (plan.jobs * _SHARDS_PER_JOB) or 1.0
    shards: list[tuple[float, ShardRequest]] = []
    for (subject, tasks), cost in zip(work, costs, strict=True):
        pieces = 1 if plan.jobs == 1 else max(1, min(plan.jobs, round(cost / fair_share)))
        for piece in _cut(tasks, pieces):
            shards.append((cost / pieces, _shard(plan, subject, piece)))
    shards.sort(key=lambda pair: -pair[0])
    return [shard for _, shard in shards]


def candidate_of(mutant: Mutant, texts: dict[str, str]) -> Candidate:
    """The mutant as a gate sees it."""
    return Candidate(
        id=mutant.id,
        kind=CandidateKind.MUTANT,
        subject=mutant.subject,
        files=overlay_of(mutant, texts),
        detail=mutant.detail,
    )


def timeouts_alone(
    shards: Iterable[ShardRequest], verdicts: Mapping[str, Mapping[tuple[str, str], Verdict]]
) -> Iterator[ShardRequest]:
    """Shards that run every timeout again, one at a time and with more time."""
    late = {
        place
        for said in verdicts.values()
        for place, verdict in said.items()
        if verdict.outcome is GateOutcome.TIMEOUT
    }
    for shard in shards:
        tasks = tuple(t for t in shard.tasks if (t.candidate.id, t.gate) in late)
        if tasks:
            yield msgspec.structs.replace(shard, tasks=tasks, limits=_ALONE)


def _tasks(
    plan: Plan, subject: PlannedSubject, comparisons: Mapping[str, CodeComparison]
) -> list[Task]:
    run = subject.run
    not_run = {c.mutant for c in comparisons.values() if c.verdict in _NOT_RUN}
    mutants = [candidate_of(m, subject.texts) for m in run.mutants if m.id not in not_run]
    tasks = []
    for ref in plan.gates:
        if not applies(ref, subject):
            continue
        controls = () if plan.only else run.controls
        for control in (original(run.subject.name), *controls):
            tasks.append(Task(control, ref.name, stop_at_first=False))
        for candidate in (*(() if plan.only else run.adversaries), *mutants):
            tasks.append(Task(candidate, ref.name))
    return tasks


def applies(ref: GateRef, subject: PlannedSubject) -> bool:
    """Can the gate judge the subject?"""
    from gatecert.gates.registry import make_gate

    gate = make_gate(ref.name, ref.config, ref.root)
    return gate.applies_to(subject.run.subject) is None


def _cut(tasks: Sequence[Task], pieces: int) -> Iterator[tuple[Task, ...]]:
    size = -(-len(tasks) // pieces)
    for start in range(0, len(tasks), size):
        yield tuple(tasks[start : start + size])


def _shard(plan: Plan, subject: PlannedSubject, tasks: tuple[Task, ...]) -> ShardRequest:
    used = {task.gate for task in tasks}
    return ShardRequest(
        subject=subject.run.subject,
        gates=tuple(ref for ref in plan.gates if ref.name in used),
        tasks=tasks,
        seed=plan.seed,
        quick=plan.quick,
        overlay=plan.overlay,
        signatures=frozenset(signature.key for signature in subject.signatures),
        preload=subject.preload,
    )
