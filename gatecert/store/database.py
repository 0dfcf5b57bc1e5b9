"""The SQLite file: its tables, its version, its transactions."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gatecert.errors import EnvironmentFailure, UsageError

DATABASE = "gatecert.sqlite"
SCHEMA_VERSION = 2
"""Version 1 was a file per run (`run.sqlite`), which this one neither reads nor touches."""

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    started TEXT NOT NULL,
    finished TEXT NOT NULL DEFAULT '',
    scope TEXT NOT NULL,
    fingerprint TEXT NOT NULL DEFAULT '',
    planned BLOB,
    tasks BLOB,
    task_count INTEGER NOT NULL DEFAULT 0,
    timings TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE IF NOT EXISTS verdict (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    candidate TEXT NOT NULL,
    gate TEXT NOT NULL,
    lasting INTEGER NOT NULL,
    body BLOB NOT NULL,
    observed BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS verdict_by_key ON verdict (key);
CREATE TABLE IF NOT EXISTS run_verdict (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    verdict INTEGER NOT NULL REFERENCES verdict (id),
    PRIMARY KEY (run, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS run_verdict_by_verdict ON run_verdict (verdict);
CREATE TABLE IF NOT EXISTS comparison (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    lasting INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS comparison_by_key ON comparison (key);
CREATE TABLE IF NOT EXISTS run_comparison (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    comparison INTEGER NOT NULL REFERENCES comparison (id),
    PRIMARY KEY (run, subject)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS explanation (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS run_explanation (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    explanation INTEGER NOT NULL REFERENCES explanation (id),
    PRIMARY KEY (run, explanation)
) WITHOUT ROWID;
COMMIT;
"""


class Database:
    """A connection that the threads of one process may share."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Open the file, or make it.

        Raises:
            UsageError: there is none.
            EnvironmentFailure: it is not ours, or of another schema version.
        """
        if not create and not path.exists():
            raise UsageError(
                f"{path}: no such file; `gatecert certify` writes one, --out names its folder"
            )
        self.path = path
        self._lock = threading.RLock()
        try:
            self._connection = _connect(path, create)
        except sqlite3.DatabaseError as error:
            raise EnvironmentFailure(
                f"{path}: {error}; remove it or choose another --out"
            ) from None

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    def do(self, statement: str, *values: Any) -> int:
        """One statement; gives the id of the row that it inserted."""
        with self._lock:
            return self._connection.execute(statement, values).lastrowid or 0

    def do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """One statement for many rows; give it a transaction."""
        with self._lock:
            self._connection.executemany(statement, rows)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or nothing of it, whenever the process ends."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file; what was written is in it, and in no other beside it."""
        with self._lock:
            self._connection.close()


def _connect(path: Path, create: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30.0)
    try:
        if create:
            connection.execute("PRAGMA journal_mode=WAL")
            _make_tables(connection)
        connection.execute("PRAGMA foreign_keys=ON")
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    """Nothing is added to a file that is not empty: its version is looked at first."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        marked = f"INSERT INTO meta VALUES ('schema', '{SCHEMA_VERSION}');\nCOMMIT;"
        connection.executescript(_SCHEMA.replace("COMMIT;", marked))


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    try:
        row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        raise EnvironmentFailure(
            f"{path}: not a store of gatecert; remove it or choose another --out"
        ) from None
    if row is None or row[0] != str(SCHEMA_VERSION):
        found = "none" if row is None else row[0]
        raise EnvironmentFailure(
            f"{path}: schema version {found}, this gatecert reads version {SCHEMA_VERSION}; "
            "read it with the gatecert that wrote it, remove it, or choose another --out"
        )
