"""Shards of one plan become the run that one machine would have made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatecert.campaign.comparer import Comparer
from gatecert.campaign.plan import PlannedSubject, read_source
from gatecert.campaign.progress import Progress
from gatecert.campaign.records import SHARDS, Run
from gatecert.errors import UsageError
from gatecert.gates.records import Spent, Verdict
from gatecert.store import RunRecord, Scope, open_runs
from gatecert.store.records import RunState, Shard, StoredRun, StoredVerdict, Tasks


@dataclass(frozen=True, slots=True)
class Source:
    """A shard's run and the file that holds it."""

    path: Path
    stored: StoredRun
    shard: Shard

    def __str__(self) -> str:
        return f"shard {self.shard} ({self.stored.info.id} of {self.path})"


@dataclass(frozen=True, slots=True)
class Merged:
    """Shards that were found to be one plan, complete and without a conflict."""

    scope: Scope
    first: Source
    verdicts: tuple[StoredVerdict, ...]
    timings_s: dict[str, float]


def gather(paths: Sequence[Path]) -> Merged:
    """Read the shards of a plan and hold them against each other.

    Raises:
        UsageError: they are not of one plan, one is missing or unfinished, a verdict is missing,
            or two of them say different things of one candidate; names what and where.
    """
    sources = [source for path in paths for source in _shards_in(path)]
    first = sources[0]
    for source in sources[1:]:
        _same_plan(first, source)
    by_number = {source.shard.number: source for source in sources}
    missing = sorted(set(range(1, first.shard.count + 1)) - set(by_number))
    if missing:
        named = ", ".join(f"{number}/{first.shard.count}" for number in missing)
        raise UsageError(f"shard {named} is in none of {', '.join(map(str, paths))}")
    verdicts = _united(sources)
    for task in first.stored.tasks.planned:
        if task.place not in verdicts:
            owner = next(
                s
                for s in sources
                if s.stored.tasks.share is None or task.candidate in s.stored.tasks.share
            )
            raise UsageError(
                f"{owner}: no verdict of {task.gate} on {task.candidate}; run that shard again"
            )
    timings: dict[str, float] = {}
    for source in by_number.values():
        for name, seconds in source.stored.timings_s.items():
            summed = SHARDS + name
            timings[summed] = round(timings.get(summed, 0.0) + seconds, 3)
    scope = msgspec.structs.replace(first.stored.info.scope, shard=None, fresh=False)
    order = (verdicts[task.place] for task in first.stored.tasks.planned)
    return Merged(scope, first, tuple(order), timings)


def merge(merged: Merged, record: RunRecord, jobs: int, progress: Progress) -> Run:
    """Write the whole run, and compare its survivors' machine code, which no shard could.

    Raises:
        UsageError: a source has changed since the shards ran.
    """
    stored = merged.first.stored
    planned = tuple(_planned(stored))
    verdicts: dict[str, list[Verdict]] = {part.run.subject.name: [] for part in planned}
    subjects = {task.place: task.subject for task in stored.tasks.planned}
    for one in merged.verdicts:
        verdicts[subjects[one.verdict.candidate, one.verdict.gate]].append(one.verdict)
    comparisons = {
        name: {one.mutant: one for one in said} for name, said in stored.comparisons.items()
    }
    _sources_are_as_they_were(planned)
    record.plan(stored.planned.run, stored.planned.parts, stored.info.fingerprint)
    record.expect(Tasks(stored.tasks.planned))
    record.adopt(merged.verdicts)
    comparer = Comparer(record, stored.info.fingerprint, jobs, progress)
    comparer.adopt(planned, comparisons)
    comparer.compare_survivors(planned, comparisons, verdicts)
    record.note_timings(merged.timings_s)
    return msgspec.structs.replace(record.run(), interrupted=False)


def _shards_in(path: Path) -> Iterator[Source]:
    """The latest run of each shard of the newest plan in a file; all must be finished."""
    with open_runs(path) as runs:
        shards = [info for info in runs.all() if info.scope.shard is not None]
        if not shards:
            raise UsageError(f"{runs.path}: no run of a shard in it (`certify --shard k/n`)")
        newest = shards[-1].scope
        latest = {
            info.scope.shard: info
            for info in shards
            if info.scope.shard is not None
            and msgspec.structs.replace(info.scope, shard=newest.shard) == newest
        }
        for shard, info in sorted(latest.items()):
            if info.state is not RunState.FINISHED:
                raise UsageError(
                    f"{runs.path}: run {info.id} of shard {shard} is {info.state.value}; the same "
                    "command goes on with it"
                )
            yield Source(runs.path, runs.load(info.id), shard)


def _same_plan(first: Source, other: Source) -> None:
    """Raise for the first thing in which two shards differ."""

    def hold(what: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            raise UsageError(f"{first} and {other} differ in {what}: {ours} and {theirs}")

    a, b = first.stored, other.stored
    hold("the number of shards", first.shard.count, other.shard.count)
    options = ("gates", "subjects", "operators", "only", "in_diff", "sample", "seed", "quick")
    for name in (*options, "matrix"):
        hold(name, getattr(a.info.scope, name), getattr(b.info.scope, name))
    hold("the gates left out", sorted(a.planned.run.left_out), sorted(b.planned.run.left_out))
    for name in a.planned.run.environment.__struct_fields__:
        ours, theirs = (getattr(s.planned.run.environment, name) for s in (a, b))
        hold(f"environment.{name}", ours, theirs)
    hold("gatecert's code or a library (fingerprint)", a.info.fingerprint, b.info.fingerprint)
    parts = {part.subject: part for part in b.planned.parts}
    hold("subjects", sorted(part.subject for part in a.planned.parts), sorted(parts))
    for part in a.planned.parts:
        theirs = parts[part.subject]
        hold(f"the sources of {part.subject}", part.sources_sha256, theirs.sources_sha256)
    for subject, said in a.comparisons.items():
        answers = {one.mutant: one.verdict.value for one in b.comparisons.get(subject, ())}
        for one in said:
            hold(f"the code of {one.mutant}", one.verdict.value, answers.get(one.mutant))
    keys = {task.place: task.key for task in b.tasks.planned}
    for task in a.tasks.planned:
        hold(f"what {task.gate} is given of {task.candidate}", task.key, keys.get(task.place))
    hold("the number of tasks", len(a.tasks.planned), len(keys))


def _united(sources: Iterable[Source]) -> Mapping[tuple[str, str], StoredVerdict]:
    found: dict[tuple[str, str], tuple[Source, StoredVerdict]] = {}
    for source in sources:
        for one in source.stored.verdicts:
            place = one.verdict.candidate, one.verdict.gate
            before, known = found.setdefault(place, (source, one))
            if _told(known.verdict) != _told(one.verdict):
                raise UsageError(
                    f"{before} and {source} disagree on {place[0]} under {place[1]}: "
                    f"{_in_words(known.verdict)} and {_in_words(one.verdict)}"
                )
    return {place: one for place, (_, one) in found.items()}


def _told(verdict: Verdict) -> Verdict:
    """A verdict without what a clock says, and without what a gate read and showed beside it: a
    gate that draws its inputs anew shows other numbers."""
    return msgspec.structs.replace(
        verdict, duration_s=0.0, spent=Spent(), evidence=None, reads=None
    )


def _in_words(verdict: Verdict) -> str:
    bits = f", bits {verdict.bits[:12]}" if verdict.bits else ""
    return f"{verdict.outcome.value} {verdict.reason.value}".rstrip() + bits


def _planned(stored: StoredRun) -> Iterator[PlannedSubject]:
    parts = {part.subject: part for part in stored.planned.parts}
    for run in stored.planned.run.subjects:
        part = parts[run.subject.name]
        yield PlannedSubject(
            run, part.texts, part.signatures, part.probe_s, part.sources_sha256, part.preload
        )


def _sources_are_as_they_were(planned: Iterable[PlannedSubject]) -> None:
    """Compiling the original reads it from disk."""
    for path, text in {item for subject in planned for item in subject.texts.items()}:
        try:
            same = read_source(path) == text
        except OSError:
            same = False
        if not same:
            raise UsageError(f"{path} is not what the shards saw; merge needs it as it was")
