"""Which of the planted mutants are run, and in which order: a diff, a sample, a time budget.

A sample is the first N of one seeded order, and a time budget reaches a beginning of the same
order. In it every bug class is spread evenly and shuffled, so that any beginning holds each class
in its share of all mutants.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import msgspec

from gatecert.campaign.changes import beyond_git, changed_lines, deleted_files
from gatecert.campaign.gate_files import gate_files, is_test
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.records import Selection
from gatecert.campaign.shards import Said, Work, make_shards, request_of
from gatecert.errors import NothingScored, UsageError
from gatecert.mutants.lines import touched_lines
from gatecert.mutants.records import CandidateKind, Mutant, original
from gatecert.mutants.suppression import names_mutant
from gatecert.sandbox.protocol import ShardRequest, Task

_MUTANTS_PER_ROUND = 8
"""Per subject: so many at most can one subject be ahead of another when the time is over."""


def select(
    plan: Plan, planned: Sequence[PlannedSubject]
) -> tuple[tuple[PlannedSubject, ...], Selection]:
    """Keep what `--only` names and what lies in the diff of `--in-diff`.

    Raises:
        UsageError: an id names nothing, or there is no such diff.
        NothingScored: no mutant was planted at all.
    """
    # A profile may plant none.
    asked = not plan.only and any(subject.run.subject.profile.plants for subject in planned)
    if asked and not any(subject.run.mutants for subject in planned):
        raise NothingScored(
            "no mutant could be planted: "
            + "; ".join(
                s.run.failed or f"{s.run.subject.name}: no operator applies" for s in planned
            )
        )
    selection = Selection(time_budget_s=plan.time_budget_s)
    if plan.only:
        planned = _named(plan.only, planned)
        found = sum(len(subject.run.mutants) for subject in planned)
        selection = msgspec.structs.replace(selection, only=found)
    if plan.since:
        planned, note = _in_diff(plan.since, plan.root, planned)
        tests = _tests_changed(plan)
        selection = msgspec.structs.replace(
            selection, since=plan.since, note=note, tests_changed=tests
        )
    return tuple(planned), selection


def draw(
    plan: Plan, work: Work, selection: Selection, settled: Collection[str] = ()
) -> tuple[Work, Selection]:
    """The tasks of `--sample N` mutants and of everything that is no mutant, and who was drawn.

    Drawn from are the mutants that would be run, but those whose status is `settled` already; the
    detection ladder is in no sample.
    """
    if not plan.sample:
        return work, selection
    mutants = _running(work)
    order = fair_order((m for m in mutants if m.scored and m.id not in settled), plan.seed)
    drawn = {mutant.id for mutant in order[: plan.sample]}
    left_out = {mutant.id for mutant in mutants} - drawn
    kept = [
        (subject, tuple(task for task in tasks if task.candidate.id not in left_out))
        for subject, tasks in work
    ]
    selection = msgspec.structs.replace(
        selection,
        sample=len(drawn),
        sample_of=len(order),
        not_sampled=tuple(m.id for m in mutants if m.id in left_out and m.id not in settled),
    )
    return kept, selection


def fair_order(mutants: Iterable[Mutant], seed: int) -> list[Mutant]:
    """Every bug class spread evenly over the whole, each in an order of its own.

    The order follows from seed and ids: a mutant that comes or goes leaves the others in theirs.
    """
    classes: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        classes.setdefault(mutant.bug_class, []).append(mutant)
    placed: list[tuple[float, float, Mutant]] = []
    for name, members in classes.items():
        members.sort(key=lambda mutant: _chance(seed, mutant.id))
        start = _chance(seed, name)
        placed += (
            ((place + start) / len(members), _chance(seed, mutant.id), mutant)
            for place, mutant in enumerate(members)
        )
    placed.sort(key=lambda entry: entry[:2])
    return [mutant for *_, mutant in placed]


@dataclass(frozen=True, slots=True)
class Deadline:
    """When no further task may start, in seconds of `time.monotonic`; None: never."""

    at: float | None = None

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """So many seconds from now; 0 means never."""
        return cls(time.monotonic() + seconds if seconds else None)

    def allows(self, shard: ShardRequest) -> bool:
        """May it start now? What is no mutant runs whatever the time."""
        return not self._binds(shard) or self.left_s > 0.0

    def bind(self, shard: ShardRequest) -> ShardRequest:
        """The request, which starts no further task by itself when the time is over."""
        if not self._binds(shard):
            return shard
        return msgspec.structs.replace(shard, stop_after_s=max(0.0, self.left_s))

    @property
    def left_s(self) -> float:
        """Seconds left; infinite without a deadline."""
        return float("inf") if self.at is None else self.at - time.monotonic()

    def _binds(self, shard: ShardRequest) -> bool:
        kinds = {task.candidate.kind for task in shard.tasks}
        return self.at is not None and kinds == {CandidateKind.MUTANT}


def rounds(
    plan: Plan, work: Work, said: Said, settled: Collection[str] = ()
) -> Iterator[list[ShardRequest]]:
    """Requests to be sent one list after the other. `said` is what the ones before gave, by
    subject.

    The originals come first: what they took says what the others may take, and how to share them
    out. All others are one list without a time budget. With one, controls and adversaries come
    next, then the mutants in their fair order, some of every subject at a time; the ladder comes
    after them, and what is `settled` last.
    """
    originals = _tasks_of(work, {CandidateKind.ORIGINAL})
    if originals:
        yield make_shards(plan, originals)
    work = [(_with_originals(subject, said), tasks) for subject, tasks in work]
    if not plan.time_budget_s:
        yield make_shards(plan, _tasks_of(work, set(CandidateKind) - {CandidateKind.ORIGINAL}))
        return
    yield make_shards(plan, _tasks_of(work, {CandidateKind.BENIGN, CandidateKind.ADVERSARY}))
    subjects = {subject.run.subject.name: subject for subject, _ in work}
    by_mutant: dict[str, list[Task]] = {}
    for _, tasks in _tasks_of(work, {CandidateKind.MUTANT}):
        for task in tasks:
            by_mutant.setdefault(task.candidate.id, []).append(task)
    running = _running(work)
    mutants = [mutant for mutant in running if mutant.id not in settled]
    order = fair_order((m for m in mutants if m.scored), plan.seed)
    order += fair_order((m for m in mutants if not m.scored), plan.seed)
    order += (mutant for mutant in running if mutant.id in settled)
    # One subject has nobody to wait for: its order alone is fair.
    size = len(order) if len(subjects) == 1 else _MUTANTS_PER_ROUND * len(subjects)
    for start in range(0, len(order), size or 1):
        members: dict[str, list[str]] = {}
        for mutant in order[start : start + size]:
            members.setdefault(mutant.subject, []).append(mutant.id)
        pieces = -(-plan.jobs // len(members))
        yield [
            request_of(plan, subjects[name], [task for one in piece for task in by_mutant[one]])
            for name, ids in members.items()
            for piece in (ids[k::pieces] for k in range(pieces))
            if piece
        ]


def one_by_one(shards: Iterable[ShardRequest]) -> Iterator[ShardRequest]:
    """The same tasks, each in a request of its own."""
    for shard in shards:
        for task in shard.tasks:
            yield msgspec.structs.replace(shard, tasks=(task,))


def places_of(shard: ShardRequest) -> set[tuple[str, str]]:
    """The pairs of candidate and gate of a request."""
    return {(task.candidate.id, task.gate) for task in shard.tasks}


def _named(only: Sequence[str], planned: Sequence[PlannedSubject]) -> list[PlannedSubject]:
    ids = {mutant.id for subject in planned for mutant in subject.run.mutants}
    named = {wanted: {one for one in ids if names_mutant(wanted, one)} for wanted in only}
    unknown = [wanted for wanted, found in named.items() if not found]
    if unknown:
        raise UsageError(f"no mutant {unknown[0]!r}; `gatecert mutants list` prints the ids")
    kept = (_keep(subject, set().union(*named.values())) for subject in planned)
    return [subject for subject in kept if subject.run.mutants]


def _in_diff(
    revision: str, root: Path, planned: Sequence[PlannedSubject]
) -> tuple[list[PlannedSubject], str]:
    """Subjects with a mutant in the diff or that could not be run, and why there is no mutant."""
    files = {k.path: None for s in planned for k in s.run.kernels}
    files |= {m.path: None for s in planned for m in s.run.mutants}
    changed = changed_lines(revision, root, files)
    kept = []
    for subject in planned:
        inside = [
            mutant.id
            for mutant in subject.run.mutants
            if any(
                line in lines
                for line in touched_lines(mutant, subject.texts[mutant.path])
                for lines in changed.get(mutant.path, ())
            )
        ]
        if inside or subject.run.failed:
            kept.append(_keep(subject, inside))
    unknown = beyond_git(root, files)
    said = f"git keeps no {_names(unknown)}, so none of their mutants is judged" if unknown else ""
    if any(subject.run.mutants for subject in kept):
        return kept, said
    why = f"no file with a kernel has changed since {revision}: nothing to judge"
    if changed:
        why = f"{_names(changed)} changed since {revision}, but no operator plants on those lines"
    return kept, "; ".join(filter(None, (why, said)))


def _names(paths: Iterable[str]) -> str:
    return ", ".join(sorted({PurePath(path).name for path in paths}))


def _tests_changed(plan: Plan) -> tuple[str, ...]:
    """Files of gates that have changed: what a weaker gate lets through shows in a whole run."""
    tables = [ref.config for ref in plan.gates if ref.config is not None]
    files = {str(file) for table in tables for file in gate_files(table, plan.root)}
    changed = [Path(path) for path in changed_lines(plan.since, plan.root, sorted(files))]
    folders = [(plan.root / table.rootdir).resolve() for table in tables]
    gone = [
        path
        for path in deleted_files(plan.since, plan.root)
        if is_test(path) and any(path.is_relative_to(folder) for folder in folders)
    ]
    return tuple(os.path.relpath(path, plan.root.resolve()) for path in (*changed, *gone))


def _keep(subject: PlannedSubject, ids: Collection[str]) -> PlannedSubject:
    mutants = tuple(mutant for mutant in subject.run.mutants if mutant.id in ids)
    return replace(subject, run=msgspec.structs.replace(subject.run, mutants=mutants))


def _running(work: Work) -> list[Mutant]:
    """The mutants that have a task, in the order of the certificate."""
    return [
        mutant
        for subject, tasks in work
        for running in [{task.candidate.id for task in tasks}]
        for mutant in subject.run.mutants
        if mutant.id in running
    ]


def _tasks_of(work: Work, kinds: Collection[CandidateKind]) -> Work:
    return [
        (subject, mine)
        for subject, tasks in work
        if (mine := tuple(task for task in tasks if task.candidate.kind in kinds))
    ]


def _with_originals(subject: PlannedSubject, said: Said) -> PlannedSubject:
    name = subject.run.subject.name
    verdicts = said.get(name, {}).items()
    first = original(name).id
    return replace(subject, originals={gate: one for (id, gate), one in verdicts if id == first})


def _chance(seed: int, name: str) -> float:
    """A number in [0, 1) that seed and name decide."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2.0**48
