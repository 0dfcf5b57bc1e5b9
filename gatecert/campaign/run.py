"""The main job: probe, plant, compile, judge, and give the record of it all."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gatecert.campaign.baselines import with_baselines
from gatecert.campaign.clock import Clock
from gatecert.campaign.comparer import Comparer, part_of
from gatecert.campaign.diffs import with_paths
from gatecert.campaign.environment import describe_environment
from gatecert.campaign.explaining import explain_survivors
from gatecert.campaign.gate_files import gate_roots
from gatecert.campaign.ignoring import idle_rules_of, with_accepted, with_ignored
from gatecert.campaign.plan import (
    Plan,
    PlannedSubject,
    labels_sha256,
    plan_subject,
    without_others_kernels,
)
from gatecert.campaign.progress import Progress
from gatecert.campaign.provenance import Places, describe_provenance, places_of_plan
from gatecert.campaign.records import Run, Selection, SubjectRun
from gatecert.campaign.selection import Deadline, draw, one_by_one, places_of, rounds, select
from gatecert.campaign.shards import (
    Work,
    judges,
    originals_of,
    plan_tasks,
    request_of,
    settled,
    share_of,
    timeouts_alone,
    within,
)
from gatecert.campaign.spending import comparing_line, waiting_line
from gatecert.campaign.supervise import (
    ServerPool,
    ask_probe,
    ask_shard,
    server_pool,
    spread,
)
from gatecert.errors import EnvironmentFailure, ExitCode, GatecertError
from gatecert.gates.records import Verdict
from gatecert.mutants.records import Candidate, CandidateKind, Skip, original
from gatecert.provenance import Provenance
from gatecert.sandbox.protocol import GateRef, Prepared, ProbeRequest, ShardRequest, Task
from gatecert.store import RunRecord
from gatecert.store.keys import content_key, fingerprint, verdict_key
from gatecert.store.records import PlannedTask, Tasks
from gatecert.subjects import Subject


def plan_campaign(plan: Plan, pool: ServerPool, progress: Progress) -> tuple[PlannedSubject, ...]:
    """Probe every subject and plant its mutants; a subject that cannot run says why."""
    progress.stage("probe and plant", len(plan.subjects))
    places = places_of_plan(plan)

    def one(subject: Subject) -> PlannedSubject:
        started = time.monotonic()
        try:
            gate = probing_gate(plan, subject)
            probed = ask_probe(pool, ProbeRequest(subject, gate, plan.seed))
            planned = plan_subject(subject, probed, plan.operators, time.monotonic() - started)
            planned = with_ignored(with_paths(planned, places), plan.ignore)
            planned = with_accepted(planned, plan.accepted)
        except GatecertError as error:
            if error.exit_code is not ExitCode.ENVIRONMENT_FAILED:
                raise
            failed = SubjectRun(subject=subject, failed=str(error))
            planned = PlannedSubject(failed, {}, (), time.monotonic() - started)
        progress.step()
        return planned

    by_name = {planned.run.subject.name: planned for planned in spread(pool, one, plan.subjects)}
    planned = tuple(by_name[subject.name] for subject in plan.subjects)
    for line in idle_rules_of(plan, planned):
        progress.say(line)
    declared = len(plan.subjects) if plan.config is None else len(plan.config.subjects)
    return without_others_kernels(planned, all_are_here=len(plan.subjects) == declared)


def probing_gate(plan: Plan, subject: Subject) -> GateRef:
    """The gate that shows what a subject without an operation launches: the first that judges it.

    Raises:
        EnvironmentFailure: no gate of the plan can.
    """
    found = next((ref for ref in plan.gates if judges(ref, subject)), None)
    if found is None:
        raise EnvironmentFailure(
            f"subject {subject.name!r}: no gate of this run can judge it without an operation; "
            "give it one, or a [gate.NAME] of your own"
        )
    return found


def run_campaign(plan: Plan, record: RunRecord, progress: Progress) -> Run:
    """Run everything the plan asks for; what `record` holds at the end is what is reported.

    Raises:
        EnvironmentFailure: no subject could be run at all.
        NothingScored: no kernel was found, or `--only` left no mutant.
        UsageError: the configuration asks for what is not there.
    """
    clock = Clock()
    with clock.part("total"):
        with server_pool(plan.jobs, plan.libraries) as pool:
            with clock.part("probe and plant"):
                planned = plan_campaign(plan, pool, progress)
            if all(subject.run.failed for subject in planned):
                raise EnvironmentFailure("; ".join(s.run.failed for s in planned))
            planned, selection = select(plan, planned)
            mark = fingerprint()
            provenance = describe_provenance(plan, planned, record.folder)
            _write_plan(record, plan, planned, selection, provenance, mark)
            # Dear work comes after all that may refuse the run.
            marks = _gate_marks(plan, mark, record.folder)
            on_prepared = _noted(clock, progress)
            with clock.part("judge"):
                plan, ready = with_baselines(
                    plan,
                    originals_of(plan, planned),
                    marks,
                    pool,
                    record,
                    progress,
                    on_prepared,
                    clock.spending.add,
                )
            planned = _with_those(planned, ready)
            if plan.left_out or any(subject.reads for subject in planned):
                provenance = describe_provenance(plan, planned, record.folder)
                _write_plan(record, plan, planned, selection, provenance, mark)
            comparer = Comparer(record, mark, plan.jobs, progress)
            with clock.part("compile"):
                comparisons = comparer.compare(planned)
            progress.say(
                comparing_line(one for said in comparisons.values() for one in said.values())
            )
            asked = selection
            known = settled(plan, planned, comparisons)
            work, selection = draw(plan, plan_tasks(plan, planned, comparisons), asked, known)
            if selection != asked:
                _write_plan(record, plan, planned, selection, provenance, mark)
            with clock.part("judge"):
                verdicts, missed, interrupted = _judge(
                    plan, planned, work, known, pool, record, progress, clock, marks, on_prepared
                )
            if missed and not interrupted:
                selection = msgspec.structs.replace(selection, not_reached=missed)
                _write_plan(record, plan, planned, selection, provenance, mark)
            if clock.spending.candidates or not interrupted:
                progress.say(clock.spending.line(clock.seconds["judge"]))
        # Machine code tells which survivors are one: a shard does not have them all.
        if not interrupted and plan.shard is None:
            with clock.part("compile survivors"):
                comparer.compare_survivors(planned, comparisons, verdicts)
            if plan.explain is not None:
                with clock.part("explain survivors"):
                    keys = {task.place: task.key for task in _keyed(plan, work, marks)}
                    interrupted = explain_survivors(plan, planned, verdicts, keys, record, progress)
    record.note_timings(clock.seconds)
    return msgspec.structs.replace(record.run(), interrupted=interrupted)


def _with_those(planned: Iterable[PlannedSubject], ready: Work) -> tuple[PlannedSubject, ...]:
    """The subjects, those that are ready in place of what they were."""
    by_name = {subject.run.subject.name: subject for subject, _ in ready}
    return tuple(by_name.get(subject.run.subject.name, subject) for subject in planned)


def _write_plan(
    record: RunRecord,
    plan: Plan,
    planned: Sequence[PlannedSubject],
    selection: Selection,
    provenance: Provenance,
    mark: str,
) -> None:
    run = _before_verdicts(plan, planned, selection, provenance)
    record.plan(run, map(part_of, planned), mark)


def _before_verdicts(
    plan: Plan,
    planned: Sequence[PlannedSubject],
    selection: Selection,
    provenance: Provenance,
) -> Run:
    """The record of the run as it is planned. What overlays hold is not repeated in it."""
    mutants = [mutant for subject in planned for mutant in subject.run.mutants]
    places = places_of_plan(plan)
    return Run(
        gate=plan.gates[0].name,
        gates=tuple(ref.name for ref in plan.gates),
        seed=plan.seed,
        quick=plan.quick,
        lane=plan.lane,
        environment=describe_environment(labels_sha256(mutants), plan.lane, plan.gpu),
        subjects=tuple(
            msgspec.structs.replace(
                subject.run,
                skipped=tuple(_placed(skip, places) for skip in subject.run.skipped),
                controls=tuple(map(_without_files, subject.run.controls)),
                adversaries=tuple(map(_without_files, subject.run.adversaries)),
            )
            for subject in planned
        ),
        root=str(plan.root),
        selection=selection,
        provenance=provenance,
        left_out=dict(plan.left_out),
        lanes={ref.name: plan.lane_of(ref) for ref in plan.gates if ref.runs_compiled},
    )


def _placed(skip: Skip, places: Places) -> Skip:
    return msgspec.structs.replace(skip, path=places.name_of(skip.path) if skip.path else "")


def _without_files(candidate: Candidate) -> Candidate:
    return msgspec.structs.replace(candidate, files={})


def _judge(
    plan: Plan,
    planned: Sequence[PlannedSubject],
    work: Work,
    known: Collection[str],
    pool: ServerPool,
    record: RunRecord,
    progress: Progress,
    clock: Clock,
    marks: Mapping[str, str],
    on_prepared: Callable[[Prepared], None],
) -> tuple[dict[str, list[Verdict]], tuple[tuple[str, str], ...], bool]:
    """Every verdict by subject, what the time budget left no time for, and whether Ctrl-C cut
    the work short. What is `known` without a verdict is no loss.

    Verdicts are gathered as they come, so that an interrupted run still reports what it has.
    """
    deadline = Deadline.after(plan.time_budget_s)
    share = None if plan.shard is None else share_of(planned, work, plan.shard)
    tasks = Tasks(tuple(_keyed(plan, work, marks)), share)
    record.expect(tasks)
    keys = {task.place: task.key for task in tasks.mine}
    progress.stage("judge", len(tasks.mine))
    for line in _waiting_lines(plan, tasks, record):
        progress.say(line)
    verdicts: dict[str, dict[tuple[str, str], Verdict]] = {
        subject.run.subject.name: {} for subject in planned
    }

    asked: list[ShardRequest] = []
    unconfirmed: set[tuple[str, str]] = set()

    def one(shard: ShardRequest) -> None:
        if deadline.allows(shard):
            ask(deadline.bind(shard))

    def ask(shard: ShardRequest) -> None:
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
            on_prepared=on_prepared,
            on_judged=clock.spending.add,
        )

    interrupted = False
    try:
        for requests in rounds(plan, within(work, share), verdicts, known):
            asked += requests
            for _ in spread(pool, one, requests):
                pass
        late = timeouts_alone(asked, verdicts)
        for shard in one_by_one(late) if plan.time_budget_s else late:
            if deadline.allows(shard):
                ask(shard)
            else:
                unconfirmed |= places_of(shard)
    except KeyboardInterrupt:
        interrupted = True
    said = {name: list(by_place.values()) for name, by_place in verdicts.items()}
    judged = {place for by_place in verdicts.values() for place in by_place} - unconfirmed
    missed = tuple(
        task.place
        for task in tasks.mine
        if task.place not in judged and task.candidate not in known
    )
    return said, missed if plan.time_budget_s else (), interrupted


def _waiting_lines(plan: Plan, tasks: Tasks, record: RunRecord) -> Iterator[str]:
    """How long gates that start a process for each candidate will take."""
    tables = ((ref.name, ref.config) for ref in plan.gates if ref.config is not None)
    for gate in (name for name, table in tables if table.starts_processes):
        mine = [task for task in tasks.mine if task.gate == gate]
        first = {t.key: t.subject for t in mine if t.candidate == original(t.subject).id}
        known = {first[key]: verdict for key, verdict in record.known(first).items()}
        subjects = [task.subject for task in mine if task.key not in first]
        if line := waiting_line(gate, known, subjects, plan.jobs):
            yield line


def _noted(clock: Clock, progress: Progress) -> Callable[[Prepared], None]:
    """What to do when a gate is prepared: add up its time, and say once what it has to say."""
    told: set[str] = set()

    def note(event: Prepared) -> None:
        clock.add("inputs and references", event.seconds)
        if event.notes and event.gate not in told:
            told.add(event.gate)
            progress.say(f"gate {event.gate!r}: {'; '.join(event.notes)}")

    return note


def _keyed(plan: Plan, work: Work, marks: Mapping[str, str]) -> Iterator[PlannedTask]:
    for subject, tasks in work:
        request = request_of(plan, subject, tasks)
        for task in tasks:
            mark = marks[task.gate] + subject.sources_sha256 + _read_by(subject, task)
            key = verdict_key(request, task, mark)
            yield PlannedTask(request.subject.name, task.candidate.id, task.gate, key)


def _read_by(subject: PlannedSubject, task: Task) -> str:
    """Hash of what the gate read on the original, whose own verdict brings it."""
    reads = subject.reads.get(task.gate)
    if reads is None or task.candidate.kind is CandidateKind.ORIGINAL:
        return ""
    return content_key(reads)


def _gate_marks(plan: Plan, mark: str, out: Path) -> dict[str, str]:
    """A fingerprint by gate: an external one may read any file of the project, and a compiled one
    depends on the GPU."""
    tables = [ref.config for ref in plan.gates if ref.config is not None]
    with_files = mark
    if tables:
        with_files = fingerprint(gate_roots(plan.root, tables, plan.subjects), but=out)
    return {
        ref.name: (mark if ref.config is None else with_files)
        + (plan.gpu if ref.runs_compiled else "")
        for ref in plan.gates
    }
