"""Cut a plan into requests, the unit that one server works on at a time, and into the shards
of several machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

from gatecert.campaign.code import Comparisons
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.records import LANE_SHOWS
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
from gatecert.store.keys import text_sha256
from gatecert.store.records import Shard
from gatecert.subjects import Subject

_NOT_RUN = frozenset({CodeVerdict.UNVIABLE, CodeVerdict.DUPLICATE})
_SHARDS_PER_JOB = 6
_ALONE = Limits(factor=20.0, minimum_s=60.0)

Work: TypeAlias = Sequence[tuple[PlannedSubject, Sequence[Task]]]
Said: TypeAlias = Mapping[str, Mapping[tuple[str, str], Verdict]]
"""Verdicts by subject, candidate and gate."""


def plan_tasks(plan: Plan, planned: Iterable[PlannedSubject], comparisons: Comparisons) -> Work:
    """Every task of every subject, in the order of the certificate.

    A proven equivalent is run like any mutant: a gate that kills it has found our error.
    """
    return [
        (subject, tasks)
        for subject in planned
        if not subject.run.failed
        and (tasks := _tasks(plan, subject, comparisons[subject.run.subject.name]))
    ]


def settled(plan: Plan, planned: Iterable[PlannedSubject], comparisons: Comparisons) -> set[str]:
    """Ids of the mutants whose status no verdict decides: proven equivalents, which are run to
    check our proof alone, and what no gate's lane can show. No sample is drawn from them, and none
    is a loss where the time was too short for it."""
    found: set[str] = set()
    for subject in planned:
        found |= _equivalent(comparisons.get(subject.run.subject.name, {}))
        unseen = [_unseen(plan.lane_of(ref), subject) for ref in plan.gates]
        found |= set.intersection(*unseen) if unseen else set()
    return found


def originals_of(plan: Plan, planned: Iterable[PlannedSubject]) -> Work:
    """The tasks on every subject's original, which depend on no other candidate."""
    return [
        (
            subject,
            [
                Task(original(subject.run.subject.name), ref.name, False, observe=plan.matrix)
                for ref in plan.gates
                if applies(ref, subject)
            ],
        )
        for subject in planned
        if not subject.run.failed
    ]


def share_of(planned: Iterable[PlannedSubject], work: Work, shard: Shard) -> frozenset[str]:
    """Ids of the candidates that a shard judges; every original is in every shard.

    Candidates are dealt out one by one, sorted by what they cost alike (subject, kind, whether
    they run at all) and then by a hash of their ids: shares differ by one at most in all of
    these, and follow from the plan alone.
    """
    running = {task.candidate.id for _, tasks in work for task in tasks}
    originals = {original(subject.run.subject.name).id for subject in planned}
    ids: list[tuple[str, str, bool, str, str]] = []
    for subject in planned:
        name, run = subject.run.subject.name, subject.run
        kinds = [
            *((one.kind.value, one.id) for one in (*run.controls, *run.adversaries)),
            *((CandidateKind.MUTANT.value, mutant.id) for mutant in run.mutants),
        ]
        ids += [(name, kind, one not in running, text_sha256(one), one) for kind, one in kinds]
    dealt = sorted(ids)[shard.number - 1 :: shard.count]
    return frozenset(originals | {name for *_, name in dealt})


def within(work: Work, share: frozenset[str] | None) -> Work:
    """The tasks of some candidates; None means of all."""
    if share is None:
        return work
    return [
        (subject, mine)
        for subject, tasks in work
        if (mine := [task for task in tasks if task.candidate.id in share])
    ]


def make_shards(plan: Plan, work: Work) -> list[ShardRequest]:
    """Requests of all subjects, dearest first, so that the last ones to end are small."""
    costs = [_cost_s(subject, tasks) for subject, tasks in work]
    fair_share = sum(costs) / (plan.jobs * _SHARDS_PER_JOB) or 1.0
    shards: list[tuple[float, ShardRequest]] = []
    for (subject, tasks), cost in zip(work, costs, strict=True):
        pieces = 1 if plan.jobs == 1 else max(1, min(len(tasks), round(cost / fair_share)))
        for piece in _cut(tasks, pieces):
            shards.append((cost / pieces, request_of(plan, subject, piece)))
    shards.sort(key=lambda pair: -pair[0])
    return [shard for _, shard in shards]


def _cost_s(subject: PlannedSubject, tasks: Iterable[Task]) -> float:
    """Seconds, at most: as long as the gates took on the original, or its probe if none did."""
    known = subject.originals
    return sum(
        known[task.gate].duration_s if task.gate in known else subject.probe_s for task in tasks
    )


def candidate_of(mutant: Mutant, texts: dict[str, str]) -> Candidate:
    """The mutant as a gate sees it."""
    return Candidate(
        id=mutant.id,
        kind=CandidateKind.MUTANT,
        subject=mutant.subject,
        files=overlay_of(mutant, texts),
        detail=mutant.detail,
        reveal=mutant.reveal,
    )


def timeouts_alone(shards: Iterable[ShardRequest], verdicts: Said) -> Iterator[ShardRequest]:
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
    not_run |= {one.mutant for one in run.ignored}
    # All they give must be the original's, bit for bit, or our proof is wrong.
    equivalent = _equivalent(comparisons)
    mutants = [
        msgspec.structs.replace(candidate_of(m, subject.texts), kernels=_shown_by(m, subject))
        for m in run.mutants
        if m.id not in not_run
    ]
    tasks = []
    for ref in plan.gates:
        if not applies(ref, subject):
            continue
        controls = () if plan.only else _controls(subject)
        for control in (original(run.subject.name), *controls):
            tasks.append(Task(control, ref.name, stop_at_first=False, observe=plan.matrix))
        # Whatever a gate said of them, its lane cannot show them: running them proves nothing.
        unseen = set() if plan.matrix else _unseen(plan.lane_of(ref), subject) - equivalent
        shown = (mutant for mutant in mutants if mutant.id not in unseen)
        for candidate in (*(() if plan.only else run.adversaries), *shown):
            whole = plan.matrix or candidate.id in equivalent
            tasks.append(Task(candidate, ref.name, not whole, observe=plan.matrix))
    return tasks


def _equivalent(comparisons: Mapping[str, CodeComparison]) -> set[str]:
    return {c.mutant for c in comparisons.values() if c.verdict is CodeVerdict.EQUIVALENT}


def _unseen(lane: str, subject: PlannedSubject) -> set[str]:
    shown = LANE_SHOWS[lane]
    return {m.id for m in subject.run.mutants if shown.isdisjoint(m.observable_by)}


def _controls(subject: PlannedSubject) -> Iterator[Candidate]:
    """Benign rewrites, which any launch of the subject's kernels can show."""
    launched = {signature.kernel for signature in subject.signatures}
    kernels = tuple(sorted(launched & {kernel.name for kernel in subject.run.kernels}))
    return (msgspec.structs.replace(one, kernels=kernels) for one in subject.run.controls)


def _shown_by(mutant: Mutant, subject: PlannedSubject) -> tuple[str, ...]:
    """The kernels whose launch can show the mutant; () where that is not known, since a function
    of the device may be called by kernels that the subject leaves out."""
    reach = subject.run.reach(mutant)
    launched = {signature.kernel for signature in subject.signatures}
    return tuple(sorted(reach)) if reach & launched else ()


def applies(ref: GateRef, subject: PlannedSubject) -> bool:
    """Can the gate judge the subject?"""
    return judges(ref, subject.run.subject)


def judges(ref: GateRef, subject: Subject) -> bool:
    """Can the gate judge the subject, before anything was planted?"""
    from gatecert.gates.registry import make_gate

    gate = make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
    return gate.applies_to(subject) is None


def _cut(tasks: Sequence[Task], pieces: int) -> Iterator[tuple[Task, ...]]:
    size = -(-len(tasks) // pieces)
    for start in range(0, len(tasks), size):
        yield tuple(tasks[start : start + size])


def request_of(plan: Plan, subject: PlannedSubject, tasks: Sequence[Task]) -> ShardRequest:
    """A request for some tasks of one subject."""
    used = {task.gate for task in tasks}
    judged = subject.run.subject
    return ShardRequest(
        subject=msgspec.structs.replace(judged, profile=judged.profile.for_gates),
        gates=tuple(ref for ref in plan.gates if ref.name in used),
        tasks=tuple(tasks),
        seed=plan.seed,
        quick=plan.quick or judged.profile.quick,
        overlay=plan.overlay,
        signatures=frozenset(signature.key for signature in subject.signatures),
        preload=subject.preload,
        originals={name: subject.originals[name] for name in sorted(used & set(subject.originals))},
        baselines={name: subject.baselines[name] for name in sorted(used & set(subject.baselines))},
        modules={kernel.module: kernel.path for kernel in subject.run.kernels},
        kernels=tuple(kernel.name for kernel in subject.run.kernels),
    )
