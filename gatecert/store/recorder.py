"""The run that this process writes: a transaction per verdict, nothing kept that may be stale."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from gatecert.campaign.records import Run
from gatecert.diagnosis.records import Evidence
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import CodeComparison, CodeVerdict
from gatecert.store.database import DATABASE, Database
from gatecert.store.lock import owned
from gatecert.store.reads import Marks, hold
from gatecert.store.records import (
    Planned,
    PlannedPart,
    RunInfo,
    RunState,
    Scope,
    StoredRun,
    StoredVerdict,
    Tasks,
    pack,
    unpack,
)
from gatecert.store.runs import Runs, as_run

_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
"""Signals that come from a person, a scheduler or a machine short of memory."""


def lasting(verdict: Verdict) -> bool:
    """Would the verdict be the same on another day? Only then may another run have it."""
    if verdict.outcome in (GateOutcome.ERROR, GateOutcome.TIMEOUT):
        return False
    return verdict.signal not in _FROM_OUTSIDE


class RunRecord:
    """One run, as its process writes it. Safe to use from several threads."""

    def __init__(self, database: Database, number: int, scope: Scope) -> None:
        self._database = database
        self._number = number
        self._only_own = scope.fresh
        self.id = f"r{number}"
        self.resumed = self._count()
        """Verdicts that it had when this process took it up."""
        self._judged: set[str] = set()
        """Keys of verdicts that this process brought."""
        self._taken: set[str] = set()
        """Keys of verdicts that some run had already."""
        self.folder = database.path.parent
        """Where the file lies, and where results go."""
        self.codes = Path(tempfile.mkdtemp()) if scope.fresh else self.folder / "codes"
        """Folder where hashes of compiled code are kept, by content."""

    @property
    def taken(self) -> int:
        """Verdicts that were not judged, since some run had them already."""
        return len(self._taken)

    def known(self, keys: Iterable[str]) -> dict[str, Verdict]:
        """The verdicts to take for these keys, which become this run's too: the latest of any
        run, or with `--fresh` of this run alone. One whose gate read what has changed since is
        not taken."""
        own = "AND id IN (SELECT verdict FROM run_verdict WHERE run = ?)" if self._only_own else ""
        found: dict[str, Verdict] = {}
        marks = Marks()
        with self._database.transaction():
            for key in keys:
                rows = self._database.rows(
                    f"SELECT id, body FROM verdict WHERE key = ? AND lasting {own} "
                    "ORDER BY id DESC",
                    key,
                    *([self._number] if self._only_own else []),
                )
                stored = ((number, unpack(body, Verdict)) for number, body in rows)
                for number, verdict in stored:
                    if verdict.reads is None or hold(verdict.reads, marks):
                        found[key] = verdict
                        self._link(key, number)
                        break
            self._taken |= found.keys() - self._judged
        return found

    def keep(self, key: str, verdict: Verdict, observed: bytes = b"") -> None:
        """Keep a verdict in one transaction; one that is not lasting is this run's alone, and
        gives way to the next under its key."""
        with self._database.transaction():
            self._insert(StoredVerdict(key, verdict, observed))
            self._judged.add(key)

    def adopt(self, verdicts: Iterable[StoredVerdict]) -> None:
        """Take over verdicts of another store, all or none of them."""
        with self._database.transaction():
            for one in verdicts:
                self._insert(one)

    def plan(self, run: Run, parts: Iterable[PlannedPart], fingerprint: str) -> None:
        """Write down what is going to be run; `run` has no verdicts and comparisons yet."""
        self._database.do(
            "UPDATE run SET planned = ?, fingerprint = ? WHERE id = ?",
            pack(Planned(run, tuple(parts))),
            fingerprint,
            self._number,
        )

    def expect(self, tasks: Tasks) -> None:
        """Write down every task. What this run had under other keys, or will run again, is no
        longer its own: the sources have changed since, or it was no lasting verdict."""
        keys = {task.key for task in tasks.mine}
        with self._database.transaction():
            self._database.do(
                "UPDATE run SET tasks = ?, task_count = ? WHERE id = ?",
                pack(tasks),
                len(keys),
                self._number,
            )
            had = self._database.rows(
                "SELECT link.key, verdict.lasting FROM run_verdict AS link "
                "JOIN verdict ON verdict.id = link.verdict WHERE link.run = ?",
                self._number,
            )
            self._database.do("DELETE FROM run_explanation WHERE run = ?", self._number)
            self._database.do_many(
                "DELETE FROM run_verdict WHERE run = ? AND key = ?",
                [(self._number, key) for key, kept in had if not kept or key not in keys],
            )

    def explained(self, key: str) -> bool:
        """Is there an explanation under this key? It becomes this run's; with `--fresh` none is
        taken."""
        rows = self._database.rows("SELECT id FROM explanation WHERE key = ?", key)
        if not rows or self._only_own:
            return False
        self._link_explanation(int(rows[0][0]))
        return True

    def keep_explanation(self, key: str, evidence: Evidence) -> None:
        """Keep what was measured of a survivor, in one transaction."""
        with self._database.transaction():
            self._database.do(
                "INSERT INTO explanation (key, body) VALUES (?, ?) "
                "ON CONFLICT (key) DO UPDATE SET body = excluded.body",
                key,
                pack(evidence),
            )
            [(number,)] = self._database.rows("SELECT id FROM explanation WHERE key = ?", key)
            self._link_explanation(int(number))

    def _link_explanation(self, number: int) -> None:
        self._database.do(
            "INSERT OR IGNORE INTO run_explanation (run, explanation) VALUES (?, ?)",
            self._number,
            number,
        )

    def known_comparisons(self, key: str) -> tuple[CodeComparison, ...] | None:
        """Comparisons of a subject's mutants under this key, by the rule of `known`."""
        own = "AND id IN (SELECT comparison FROM run_comparison WHERE run = ?)"
        rows = self._database.rows(
            "SELECT body FROM comparison WHERE key = ? AND lasting "
            f"{own if self._only_own else ''} ORDER BY id DESC LIMIT 1",
            key,
            *([self._number] if self._only_own else []),
        )
        return unpack(rows[0][0], tuple[CodeComparison, ...]) if rows else None

    def keep_comparisons(
        self, subject: str, key: str, comparisons: Sequence[CodeComparison]
    ) -> None:
        """Make these the run's comparisons of the subject. A compiler that failed may not fail
        again, so those with an unknown answer are this run's alone."""
        sure = all(one.verdict is not CodeVerdict.UNKNOWN for one in comparisons)
        body = pack(tuple(comparisons))
        with self._database.transaction():
            same = self._database.rows(
                "SELECT id FROM comparison WHERE key = ? AND body = ?", key, body
            )
            new = (
                same[0][0]
                if same
                else self._database.do(
                    "INSERT INTO comparison (key, lasting, body) VALUES (?, ?, ?)", key, sure, body
                )
            )
            self._database.do(
                "INSERT OR REPLACE INTO run_comparison VALUES (?, ?, ?)",
                self._number,
                subject,
                new,
            )

    def observed(self) -> Iterator[tuple[Verdict, bytes]]:
        """The run's verdicts with what was seen of their cases, one at a time: they are large."""
        numbers = self._database.rows(
            "SELECT verdict FROM run_verdict WHERE run = ? ORDER BY verdict", self._number
        )
        for (number,) in numbers:
            for body, seen in self._database.rows(
                "SELECT body, observed FROM verdict WHERE id = ?", number
            ):
                yield unpack(body, Verdict), seen

    def note_timings(self, timings_s: Mapping[str, float]) -> None:
        """Note where the time went."""
        timings = msgspec.json.encode(timings_s).decode()
        self._database.do("UPDATE run SET timings = ? WHERE id = ?", timings, self._number)

    def finish(self) -> None:
        """Mark the run as ended; nothing of it will be run again."""
        self._database.do("UPDATE run SET finished = ? WHERE id = ?", _now(), self._number)

    def last_whole_run(self) -> RunInfo | None:
        """The latest finished run of certify that was of everything, if any."""
        whole = [
            info
            for info in Runs(self._database).all()
            if info.scope.whole
            and info.scope.command == "certify"
            and info.state is RunState.FINISHED
        ]
        return whole[-1] if whole else None

    def stored(self) -> StoredRun:
        """The run as the store holds it now."""
        return Runs(self._database).load(self.id)

    def run(self) -> Run:
        """The run as its certificate is made from: what is written is what is reported."""
        return as_run(self.stored())

    def _insert(self, one: StoredVerdict) -> None:
        new = self._database.do(
            "INSERT INTO verdict (key, candidate, gate, lasting, body, observed) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            one.key,
            one.verdict.candidate,
            one.verdict.gate,
            lasting(one.verdict),
            pack(one.verdict),
            one.observed,
        )
        self._link(one.key, new)

    def _link(self, key: str, verdict: int) -> None:
        self._database.do(
            "INSERT OR REPLACE INTO run_verdict VALUES (?, ?, ?)", self._number, key, verdict
        )

    def _count(self) -> int:
        [(count,)] = self._database.rows(
            "SELECT count(*) FROM run_verdict WHERE run = ?", self._number
        )
        return int(count)


@contextlib.contextmanager
def recording(folder: Path, scope: Scope) -> Iterator[RunRecord]:
    """The unfinished run of this scope, to go on with, or a new one; the folder is owned.

    Raises:
        EnvironmentFailure: another process writes there, or the file is of another version.
        UsageError: the folder cannot be written.
    """
    with owned(folder, str(scope)):
        database = Database(folder / DATABASE, create=True)
        # A killed compiler leaves part of a file, named after its process.
        for partial in (folder / "codes").glob("*/*.*"):
            partial.unlink(missing_ok=True)
        try:
            yield RunRecord(database, _begin(database, scope), scope)
        finally:
            database.close()


def _begin(database: Database, scope: Scope) -> int:
    body = msgspec.json.encode(scope).decode()
    rows = database.rows(
        "SELECT id FROM run WHERE finished = '' AND scope = ? ORDER BY id DESC LIMIT 1", body
    )
    if rows:
        return int(rows[0][0])
    return database.do("INSERT INTO run (started, scope) VALUES (?, ?)", _now(), body)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
