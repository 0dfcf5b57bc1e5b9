"""Runs as a reader sees them: listed, loaded, removed."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gatecert.campaign.records import Run, SubjectRun
from gatecert.diagnosis.records import Evidence
from gatecert.errors import EnvironmentFailure, NothingScored, UsageError, did_you_mean
from gatecert.gates.reads import GateReads
from gatecert.gates.records import Verdict
from gatecert.mutants.records import CodeComparison, original
from gatecert.provenance import with_late
from gatecert.store.database import DATABASE, Database
from gatecert.store.lock import owner_of
from gatecert.store.records import (
    Planned,
    RunInfo,
    RunState,
    Scope,
    StoredRun,
    StoredVerdict,
    Tasks,
    unpack,
)

_INFO = """
SELECT id, started, finished, scope, fingerprint, task_count,
    (SELECT count(*) FROM run_verdict WHERE run = run.id),
    (SELECT coalesce(sum(length(observed)), 0) FROM verdict
     WHERE id IN (SELECT verdict FROM run_verdict WHERE run = run.id))
FROM run
"""


class Runs:
    """The runs of one file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def all(self) -> tuple[RunInfo, ...]:
        """Every run, oldest first."""
        owner = owner_of(self.path.parent)
        writing = None if owner is None else owner.command
        rows = self._database.rows(f"{_INFO} ORDER BY id")
        infos = [self._info(row) for row in rows]
        if writing is not None:
            # One process writes one run: the latest unfinished one of its command.
            for place in range(len(infos) - 1, -1, -1):
                info = infos[place]
                if info.state is RunState.UNFINISHED and str(info.scope) == writing:
                    infos[place] = msgspec.structs.replace(info, state=RunState.RUNNING)
                    break
        return tuple(infos)

    def get(self, run: str) -> RunInfo:
        """One run.

        Raises:
            UsageError: there is none of that id; names the nearest.
        """
        known = {info.id: info for info in self.all()}
        if run in known:
            return known[run]
        if not known:
            raise UsageError(f"{self.path}: it holds no runs")
        hint = did_you_mean(run, known)
        raise UsageError(f"no run {run!r} in {self.path}; {hint}")

    def load(self, run: str) -> StoredRun:
        """All that is stored of a run.

        Raises:
            UsageError: there is none of that id.
            NothingScored: it stopped before it had planned anything.
            EnvironmentFailure: another version of gatecert wrote it.
        """
        info = self.get(run)
        number = _number(run)
        [(planned, tasks, timings)] = self._database.rows(
            "SELECT planned, tasks, timings FROM run WHERE id = ?", number
        )
        if planned is None:
            raise NothingScored(
                f"run {run} (`gatecert {info.scope}`) stopped before anything was planted"
            )
        try:
            return StoredRun(
                info=info,
                planned=unpack(planned, Planned),
                tasks=unpack(tasks, Tasks) if tasks is not None else Tasks(()),
                comparisons=self._comparisons(number),
                verdicts=self._verdicts(number),
                timings_s=msgspec.json.decode(timings, type=dict[str, float]),
                explanations=self._explanations(number),
            )
        except (msgspec.MsgspecError, zlib.error) as error:
            raise EnvironmentFailure(
                f"run {run}: another version of gatecert wrote it ({error}); run it again, or "
                f"remove it with `gatecert runs rm {run}`"
            ) from None

    def remove(self, runs: Sequence[str]) -> None:
        """Remove runs, and the verdicts that no other run has; the caller owns the folder.

        Raises:
            UsageError: there is none of that id; nothing is removed then.
        """
        numbers = [_number(self.get(run).id) for run in runs]
        with self._database.transaction():
            for number in numbers:
                self._database.do("DELETE FROM run WHERE id = ?", number)
            for table in ("verdict", "comparison", "explanation"):
                self._database.do(
                    f"DELETE FROM {table} WHERE id NOT IN (SELECT {table} FROM run_{table})"
                )
        self._database.do("VACUUM")

    def _comparisons(self, number: int) -> dict[str, tuple[CodeComparison, ...]]:
        rows = self._database.rows(
            "SELECT subject, body FROM run_comparison JOIN comparison "
            "ON comparison.id = run_comparison.comparison WHERE run = ?",
            number,
        )
        return {name: unpack(body, tuple[CodeComparison, ...]) for name, body in rows}

    def _explanations(self, number: int) -> tuple[Evidence, ...]:
        rows = self._database.rows(
            "SELECT body FROM run_explanation JOIN explanation "
            "ON explanation.id = run_explanation.explanation WHERE run = ? ORDER BY key",
            number,
        )
        return tuple(unpack(body, Evidence) for (body,) in rows)

    def _verdicts(self, number: int) -> tuple[StoredVerdict, ...]:
        rows = self._database.rows(
            "SELECT verdict.key, body, observed FROM run_verdict JOIN verdict "
            "ON verdict.id = run_verdict.verdict WHERE run = ? ORDER BY verdict.id",
            number,
        )
        return tuple(StoredVerdict(key, unpack(body, Verdict), seen) for key, body, seen in rows)

    @staticmethod
    def _info(row: tuple[Any, ...]) -> RunInfo:
        number, started, finished, scope, fingerprint, tasks, verdicts, observed = row
        return RunInfo(
            id=f"r{number}",
            state=RunState.FINISHED if finished else RunState.UNFINISHED,
            started=started,
            finished=finished,
            scope=msgspec.json.decode(scope, type=Scope),
            fingerprint=fingerprint,
            tasks=tasks,
            verdicts=verdicts,
            observed_bytes=observed,
        )


def as_run(stored: StoredRun) -> Run:
    """The record that reports and certificates are made from, in an order that depends on the
    plan alone. A shard's record holds its own share and no more."""
    verdicts = {(one.verdict.candidate, one.verdict.gate): one.verdict for one in stored.verdicts}
    by_subject: dict[str, list[Verdict]] = {}
    for task in stored.tasks.mine:
        if task.place in verdicts:
            by_subject.setdefault(task.subject, []).append(verdicts[task.place])
    share = stored.tasks.share

    def part_of(part: SubjectRun) -> SubjectRun:
        name = part.subject.name
        mutants = tuple(m for m in part.mutants if share is None or m.id in share)
        ids = {mutant.id for mutant in mutants}
        return msgspec.structs.replace(
            part,
            mutants=mutants,
            comparisons=tuple(c for c in stored.comparisons.get(name, ()) if c.mutant in ids),
            controls=tuple(c for c in part.controls if share is None or c.id in share),
            adversaries=tuple(c for c in part.adversaries if share is None or c.id in share),
            verdicts=tuple(by_subject.get(name, ())),
            explanations=tuple(one for one in stored.explanations if one.mutant in ids),
        )

    run = stored.planned.run
    return msgspec.structs.replace(
        run,
        subjects=tuple(part_of(part) for part in run.subjects),
        provenance=run.provenance and with_late(run.provenance, _late_reads(stored), run.root),
        timings_s=stored.timings_s,
        interrupted=stored.info.state is not RunState.FINISHED,
    )


def _late_reads(stored: StoredRun) -> dict[str, GateReads]:
    """By gate what it read on candidates."""
    originals = {original(part.subject.name).id for part in stored.planned.run.subjects}
    found: dict[str, GateReads] = {}
    for verdict in (one.verdict for one in stored.verdicts):
        if verdict.reads is not None and verdict.candidate not in originals:
            found[verdict.gate] = found.get(verdict.gate, GateReads()) | verdict.reads
    return found


@contextlib.contextmanager
def open_runs(path: Path) -> Iterator[Runs]:
    """The runs of a file, or of the store in a folder, to read; a run may be writing them.

    Raises:
        UsageError: there is no such file.
        EnvironmentFailure: it is not ours, or of another schema version.
    """
    database = Database(path / DATABASE if path.is_dir() else path)
    try:
        yield Runs(database)
    finally:
        database.close()


def _number(run: str) -> int:
    return int(run.removeprefix("r"))
