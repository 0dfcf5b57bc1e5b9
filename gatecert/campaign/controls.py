"""Many seeds over all controls: what the oracle's zero false positives rest on."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from gatecert.campaign.judging import judge_requests, mark_of
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.shards import applies
from gatecert.campaign.supervise import server_pool
from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import ShardRequest, Task
from gatecert.store import RunRecord


class ControlRow(msgspec.Struct, frozen=True):
    """One control under one seed: every case of every dtype of the strategy."""

    subject: str
    control: str
    seed: int
    outcome: GateOutcome
    cases: int
    margin: float
    distinct: bool
    detail: str = ""
    case: str = ""
    compared: int = 0
    exactly: int = 0
    """Elements of outputs compared, and those of them that had to be equal."""


class ControlsRecord(msgspec.Struct, frozen=True):
    """All rows of a controls run, for one gate."""

    gate: str
    seeds: tuple[int, ...]
    rows: tuple[ControlRow, ...]
    sources_sha256: dict[str, str] = {}
    """By subject: hash of the sources that its verdicts rest on."""


def run_controls(
    plan: Plan,
    seeds: Sequence[int],
    record: RunRecord,
    progress: Progress,
    *,
    rewrite_seeds: int | None = None,
    observe: bool = False,
    optional: Collection[str] = (),
) -> ControlsRecord:
    """Judge the originals under every seed and all benign rewrites under the first
    `rewrite_seeds` (None: under all); goes on from `record`.

    With `observe` the record also keeps what every case showed. Subjects that are `optional` are
    left out where they cannot run.

    Raises:
        EnvironmentFailure: another subject cannot run.
    """
    gate = plan.gates[0]
    mark = mark_of(plan, record)
    with server_pool(plan.jobs, plan.libraries) as pool:
        planned = plan_campaign(plan, pool, progress)
        for subject in planned:
            if subject.run.failed and subject.run.subject.name not in optional:
                raise EnvironmentFailure(subject.run.failed)
            if subject.run.failed:
                progress.say(f"left out: {subject.run.failed}")
        planned = tuple(subject for subject in planned if not subject.run.failed)
        planned = tuple(subject for subject in planned if applies(gate, subject))
        with_rewrites = frozenset(seeds[:rewrite_seeds])
        shards = [
            ShardRequest(
                subject=subject.run.subject,
                gates=(gate,),
                tasks=_tasks(subject, gate.name, observe, rewrites=seed in with_rewrites),
                seed=seed,
                quick=plan.quick,
                preload=subject.preload,
            )
            for seed in seeds
            for subject in sorted(planned, key=lambda planned: -planned.probe_s)
        ]
        sources = {subject.run.subject.name: subject.sources_sha256 for subject in planned}
        marks = {name: mark + source for name, source in sources.items()}
        progress.stage("controls", sum(len(shard.tasks) for shard in shards))
        judged = judge_requests(pool, shards, marks, record, progress)
        rows = [row for shard, said in judged for row in _rows(shard, said)]
    rows.sort(key=lambda row: (row.subject, row.seed, row.control))
    return ControlsRecord(gate.name, tuple(seeds), tuple(rows), sources)


def _tasks(
    subject: PlannedSubject, gate: str, observe: bool, *, rewrites: bool
) -> tuple[Task, ...]:
    controls = (original(subject.run.subject.name), *(subject.run.controls if rewrites else ()))
    return tuple(Task(control, gate, stop_at_first=False, observe=observe) for control in controls)


def _rows(shard: ShardRequest, verdicts: Sequence[Verdict]) -> tuple[ControlRow, ...]:
    original_id = original(shard.subject.name).id
    reference = next(v.bits for v in verdicts if v.candidate == original_id)
    return tuple(
        ControlRow(
            subject=shard.subject.name,
            control=verdict.candidate,
            seed=shard.seed,
            outcome=verdict.outcome,
            cases=verdict.cases,
            margin=round(verdict.margin, 6),
            distinct=verdict.bits != reference,
            detail=verdict.detail,
            case=verdict.case,
            compared=verdict.compared,
            exactly=verdict.exactly,
        )
        for verdict in verdicts
    )
