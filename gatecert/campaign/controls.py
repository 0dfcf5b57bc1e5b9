"""Many seeds over all controls: what the oracle's zero false positives rest on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from gatecert.campaign.gate_files import gate_roots
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.shards import applies
from gatecert.campaign.supervise import ask_shard, server_pool, spread
from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import ShardRequest, Task
from gatecert.store import RunRecord
from gatecert.store.keys import fingerprint, verdict_key
from gatecert.store.records import PlannedTask, Tasks


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
    tables = () if gate.config is None else (gate.config,)
    roots = gate_roots(plan.root, tables, plan.subjects) if tables else ()
    mark = fingerprint(roots, but=record.folder)
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
        keyed = [tuple(_keyed(shard, mark + sources[shard.subject.name])) for shard in shards]
        record.expect(Tasks(tuple(task for tasks in keyed for task in tasks)))
        progress.stage("controls", sum(len(shard.tasks) for shard in shards))
        keys = {
            (shard.subject.name, shard.seed): {task.place: task.key for task in tasks}
            for shard, tasks in zip(shards, keyed, strict=True)
        }

        def one(shard: ShardRequest) -> tuple[ControlRow, ...]:
            said = ask_shard(
                pool,
                shard,
                record,
                keys[shard.subject.name, shard.seed],
                on_verdict=progress.step,
                on_prepared=lambda _: None,
            )
            return _rows(shard, said)

        rows = [row for rows in spread(pool, one, shards) for row in rows]
    rows.sort(key=lambda row: (row.subject, row.seed, row.control))
    return ControlsRecord(gate.name, tuple(seeds), tuple(rows), sources)


def _tasks(
    subject: PlannedSubject, gate: str, observe: bool, *, rewrites: bool
) -> tuple[Task, ...]:
    controls = (original(subject.run.subject.name), *(subject.run.controls if rewrites else ()))
    return tuple(Task(control, gate, stop_at_first=False, observe=observe) for control in controls)


def _keyed(shard: ShardRequest, mark: str) -> Iterator[PlannedTask]:
    for task in shard.tasks:
        key = verdict_key(shard, task, mark)
        yield PlannedTask(shard.subject.name, task.candidate.id, task.gate, key)


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
