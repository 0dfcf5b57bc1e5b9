"""The main job: probe, plant, compile, judge, and give the record of it all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from gatecert.campaign.code import Comparisons
from gatecert.campaign.comparer import Comparer, part_of
from gatecert.campaign.environment import describe_environment
from gatecert.campaign.plan import Plan, PlannedSubject, labels_sha256, plan_subject
from gatecert.campaign.progress import Progress
from gatecert.campaign.records import Run, SubjectRun
from gatecert.campaign.shards import (
    Work,
    make_shards,
    plan_tasks,
    request_of,
    share_of,
    timeouts_alone,
    within,
)
from gatecert.campaign.spending import Spending, comparing_line
from gatecert.campaign.supervise import (
    ServerPool,
    ask_probe,
    ask_shard,
    server_pool,
    spread,
)
from gatecert.errors import EnvironmentFailure, ExitCode, GatecertError, NothingScored, UsageError
from gatecert.gates.records import Verdict
from gatecert.mutants.records import Candidate
from gatecert.sandbox.protocol import ProbeRequest, ShardRequest
from gatecert.store import RunRecord
from gatecert.store.keys import fingerprint, verdict_key
from gatecert.store.records import PlannedTask, Tasks
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


def run_campaign(plan: Plan, record: RunRecord, progress: Progress) -> Run:
    """Run everything the plan asks for; what `record` holds at the end is what is reported.

    Raises:
        EnvironmentFailure: no subject could be run at all.
        NothingScored: no kernel was found, or `--only` left no mutant.
        UsageError: the configuration asks for what is not there.
    """
    clock = Clock()
    with clock.part("total"):
        with server_pool(plan.jobs) as pool:
            with clock.part("probe and plant"):
                planned = plan_campaign(plan, pool, progress)
            if all(subject.run.failed for subject in planned):
                raise EnvironmentFailure("; ".join(s.run.failed for s in planned))
            planned = _select(plan, planned)
            mark = fingerprint()
            record.plan(_before_verdicts(plan, planned), map(part_of, planned), mark)
            comparer = Comparer(record, mark, plan.jobs, progress)
            with clock.part("compile"):
                comparisons = comparer.compare(planned)
            progress.say(
                comparing_line(one for said in comparisons.values() for one in said.values())
            )
            with clock.part("judge"):
                verdicts, interrupted = _judge(
                    plan, planned, comparisons, pool, record, progress, clock, mark
                )
            progress.say(clock.spending.line(clock.seconds["judge"]))
        # Machine code tells which survivors are one: a shard does not have them all.
        if not interrupted and plan.shard is None:
            with clock.part("compile survivors"):
                comparer.compare_survivors(planned, comparisons, verdicts)
    record.note_timings(clock.seconds)
    return msgspec.structs.replace(record.run(), interrupted=interrupted)


def _before_verdicts(plan: Plan, planned: Sequence[PlannedSubject]) -> Run:
    """The record of the run as it is planned. What overlays hold is not repeated in it."""
    mutants = [mutant for subject in planned for mutant in subject.run.mutants]
    return Run(
        gate=plan.gates[0].name,
        gates=tuple(ref.name for ref in plan.gates),
        seed=plan.seed,
        quick=plan.quick,
        lane=plan.lane,
        environment=describe_environment(labels_sha256(mutants)),
        subjects=tuple(
            msgspec.structs.replace(
                subject.run,
                controls=tuple(map(_without_files, subject.run.controls)),
                adversaries=tuple(map(_without_files, subject.run.adversaries)),
            )
            for subject in planned
        ),
    )


def _without_files(candidate: Candidate) -> Candidate:
    return msgspec.structs.replace(candidate, files={})


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
    record: RunRecord,
    progress: Progress,
    clock: Clock,
    mark: str,
) -> tuple[dict[str, list[Verdict]], bool]:
    """Every verdict by subject, and whether Ctrl-C cut the work short.

    Verdicts are gathered as they come, so that an interrupted run still reports what it has.
    """
    work = plan_tasks(plan, planned, comparisons)
    share = None if plan.shard is None else share_of(planned, work, plan.shard)
    tasks = Tasks(tuple(_keyed(plan, work, _gate_marks(plan, mark, record.folder))), share)
    record.expect(tasks)
    keys = {task.place: task.key for task in tasks.mine}
    shards = make_shards(plan, within(work, share))
    progress.stage("judge", sum(len(shard.tasks) for shard in shards))
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
            record,
            keys,
            on_verdict=keep,
            on_prepared=lambda event: clock.add("inputs and references", event.seconds),
            on_judged=clock.spending.add,
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


def _keyed(plan: Plan, work: Work, marks: Mapping[str, str]) -> Iterator[PlannedTask]:
    for subject, tasks in work:
        request = request_of(plan, subject, tasks)
        for task in tasks:
            key = verdict_key(request, task, marks[task.gate] + subject.sources_sha256)
            yield PlannedTask(request.subject.name, task.candidate.id, task.gate, key)


def _gate_marks(plan: Plan, mark: str, out: Path) -> dict[str, str]:
    """A fingerprint by gate: an external one may read any file of the project."""
    external = any(ref.config is not None for ref in plan.gates)
    with_files = fingerprint((plan.root,), but=out) if external else mark
    return {ref.name: mark if ref.config is None else with_files for ref in plan.gates}


class Clock:
    """Adds up where the time goes."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self.spending = Spending()
        """What the processes of judged candidates spent, all jobs together."""

    @property
    def seconds(self) -> dict[str, float]:
        """By part, rounded to milliseconds."""
        parts = {name: round(seconds, 3) for name, seconds in self._seconds.items()}
        return parts | self.spending.seconds

    def add(self, name: str, seconds: float) -> None:
        """Time that was spent on a part."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The time of the block is the part's."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - started)
