"""The main job: probe, plant, compile, judge, and give the record of it all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from gatecert.campaign.code import Comparisons, compare_all, compare_survivors
from gatecert.campaign.environment import describe_environment
from gatecert.campaign.plan import Plan, PlannedSubject, labels_sha256, plan_subject
from gatecert.campaign.progress import Progress
from gatecert.campaign.records import Run, SubjectRun
from gatecert.campaign.shards import make_shards, timeouts_alone
from gatecert.campaign.supervise import (
    ServerPool,
    ask_probe,
    ask_shard,
    server_pool,
    spread,
)
from gatecert.errors import EnvironmentFailure, ExitCode, GatecertError, NothingScored, UsageError
from gatecert.gates.records import Verdict
from gatecert.sandbox.protocol import ProbeRequest, ShardRequest
from gatecert.store import Store, fingerprint
from gatecert.subjects import Subject


def plan_campaign(plan: Plan, pool: ServerPool, progress: Progress) -> tuple[PlannedSubject, ...]:
    """Probe every subject and plant its mutants; a subject that cannot run says why."""
    progress.stage("probe and plant", len(plan.subjects))

    def one(subject: Subject) -> PlannedSubject:
        started = time.monotonic()
        try:
            probed = ask_probe(pool, ProbeRequest(subject, plan.gates[0], plan.seed))
            planned = plan_subject(subject, probed, plan.operators, time.monotonic() - started)
        except GatecertError as error:
            if error.exit_code is not ExitCode.ENVIRONMENT_FAILED:
                raise
            failed = SubjectRun(subject=subject, failed=str(error))
            planned = PlannedSubject(failed, {}, (), time.monotonic() - started)
        progress.step()
        return planned

    by_name = {planned.run.subject.name: planned for planned in spread(pool, one, plan.subjects)}
    return tuple(by_name[subject.name] for subject in plan.subjects)


def run_campaign(plan: Plan, store: Store, progress: Progress) -> Run:
    """Run everything the plan asks for.

    Raises:
        EnvironmentFailure: no subject could be run at all.
        NothingScored: no kernel was found, or `--only` left no mutant.
        UsageError: the configuration asks for what is not there.
    """
    timings: dict[str, float] = {}
    clock = _Clock(timings)
    with server_pool(plan.jobs) as pool:
        with clock.part("probe and plant"):
            planned = plan_campaign(plan, pool, progress)
        if all(subject.run.failed for subject in planned):
            raise EnvironmentFailure("; ".join(s.run.failed for s in planned))
        planned = _select(plan, planned)
        with clock.part("compile"):
            comparisons = compare_all(planned, jobs=plan.jobs, codes=store.codes, progress=progress)
        with clock.part("judge"):
            verdicts, interrupted = _judge(plan, planned, comparisons, pool, store, progress, clock)
    if not interrupted:
        with clock.part("compile survivors"):
            comparisons = compare_survivors(
                planned, comparisons, verdicts, jobs=plan.jobs, codes=store.codes, progress=progress
            )
    runs = tuple(
        msgspec.structs.replace(
            subject.run,
            comparisons=tuple(comparisons[subject.run.subject.name].values()),
            verdicts=tuple(verdicts[subject.run.subject.name]),
        )
        for subject in planned
    )
    mutants = [mutant for run in runs for mutant in run.mutants]
    return Run(
        gate=plan.gates[0].name,
        gates=tuple(ref.name for ref in plan.gates),
        seed=plan.seed,
        quick=plan.quick,
        lane="interpreter",
        environment=describe_environment(labels_sha256(mutants)),
        subjects=runs,
        timings_s={name: round(seconds, 3) for name, seconds in timings.items()},
        interrupted=interrupted,
    )


def _select(plan: Plan, planned: Sequence[PlannedSubject]) -> tuple[PlannedSubject, ...]:
    """Keep what `--only` names; an id that names nothing is an error."""
    if not plan.only:
        if not any(subject.run.mutants for subject in planned):
            raise NothingScored(
                "no mutant could be planted: "
                + "; ".join(
                    s.run.failed or f"{s.run.subject.name}: no operator applies" for s in planned
                )
            )
        return tuple(planned)
    ids = {mutant.id for subject in planned for mutant in subject.run.mutants}
    unknown = [wanted for wanted in plan.only if wanted not in ids]
    if unknown:
        raise UsageError(f"no mutant {unknown[0]!r}; `gatecert mutants list` prints the ids")
    kept = []
    for subject in planned:
        mutants = tuple(m for m in subject.run.mutants if m.id in plan.only)
        if mutants:
            run = msgspec.structs.replace(subject.run, mutants=mutants)
            kept.append(replace(subject, run=run))
    return tuple(kept)


def _judge(
    plan: Plan,
    planned: Sequence[PlannedSubject],
    comparisons: Comparisons,
    pool: ServerPool,
    store: Store,
    progress: Progress,
    clock: _Clock,
) -> tuple[dict[str, list[Verdict]], bool]:
    """Every verdict by subject, and whether Ctrl-C cut the work short.

    Verdicts are gathered as they come, so that an interrupted run still reports what it has.
    """
    shards = make_shards(plan, planned, comparisons)
    progress.stage("judge", sum(len(shard.tasks) for shard in shards))
    mark = fingerprint(_gate_roots(plan))
    sources = {subject.run.subject.name: subject.sources_sha256 for subject in planned}
    verdicts: dict[str, dict[tuple[str, str], Verdict]] = {
        subject.run.subject.name: {} for subject in planned
    }

    def one(shard: ShardRequest) -> None:
        mine = verdicts[shard.subject.name]

        def keep(verdict: Verdict) -> None:
            mine[verdict.candidate, verdict.gate] = verdict
            progress.step(verdict)

        ask_shard(
            pool,
            shard,
            store,
            mark + sources[shard.subject.name],
            on_verdict=keep,
            on_prepared=lambda event: clock.add("inputs and references", event.seconds),
        )

    interrupted = False
    try:
        for _ in spread(pool, one, shards):
            pass
        for shard in timeouts_alone(shards, verdicts):
            one(shard)
    except KeyboardInterrupt:
        interrupted = True
    return {name: list(said.values()) for name, said in verdicts.items()}, interrupted


def _gate_roots(plan: Plan) -> tuple[Path, ...]:
    """Folders whose files an external gate's verdicts depend on."""
    return (plan.root,) if any(ref.config is not None for ref in plan.gates) else ()


class _Clock:
    """Adds up where the time goes."""

    def __init__(self, timings: dict[str, float]) -> None:
        self._timings = timings

    def add(self, name: str, seconds: float) -> None:
        self._timings[name] = self._timings.get(name, 0.0) + seconds

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - started)
