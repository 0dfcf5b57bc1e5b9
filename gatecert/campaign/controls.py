"""Many seeds over all controls: what the oracle's zero false positives rest on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Progress
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.supervise import ask_shard, server_pool, spread
from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import ShardRequest, Task
from gatecert.store import Store, fingerprint


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


class ControlsRecord(msgspec.Struct, frozen=True):
    """All rows of a controls run, for one gate."""

    gate: str
    seeds: tuple[int, ...]
    rows: tuple[ControlRow, ...]


def run_controls(
    plan: Plan, seeds: Sequence[int], store: Store, progress: Progress
) -> ControlsRecord:
    """Judge the originals and all benign rewrites under every seed; resumes from the store."""
    gate = plan.gates[0]
    mark = fingerprint()
    with server_pool(plan.jobs) as pool:
        planned = plan_campaign(plan, pool, progress)
        for subject in planned:
            if subject.run.failed:
                raise EnvironmentFailure(subject.run.failed)
        shards = [
            ShardRequest(
                subject=subject.run.subject,
                gates=(gate,),
                tasks=_tasks(subject, gate.name),
                seed=seed,
                quick=plan.quick,
                preload=subject.preload,
            )
            for seed in seeds
            for subject in sorted(planned, key=lambda planned: -planned.probe_s)
        ]
        progress.stage("controls", sum(len(shard.tasks) for shard in shards))

        sources = {subject.run.subject.name: subject.sources_sha256 for subject in planned}

        def one(shard: ShardRequest) -> tuple[ControlRow, ...]:
            said = ask_shard(
                pool,
                shard,
                store,
                mark + sources[shard.subject.name],
                on_verdict=progress.step,
                on_prepared=lambda _: None,
            )
            return _rows(shard, said)

        rows = [row for rows in spread(pool, one, shards) for row in rows]
    rows.sort(key=lambda row: (row.subject, row.seed, row.control))
    return ControlsRecord(gate.name, tuple(seeds), tuple(rows))


def _tasks(subject: PlannedSubject, gate: str) -> tuple[Task, ...]:
    controls = (original(subject.run.subject.name), *subject.run.controls)
    return tuple(Task(control, gate, stop_at_first=False) for control in controls)


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
        )
        for verdict in verdicts
    )
