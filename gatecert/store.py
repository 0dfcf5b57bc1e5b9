"""The record of a run on disk: one SQLite file, one transaction per verdict.

A verdict is kept under a key that hashes all that it depends on: the candidate's text, the
subject, the gate and its configuration, the seed, and the fingerprint of gatecert and of the
libraries under it. So an interrupted run goes on where it stopped, and a stale verdict is
never taken for a fresh one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import sqlite3
import sys
import threading
from pathlib import Path
from types import TracebackType

import msgspec

from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.sandbox.protocol import ShardRequest, Task

SCHEMA_VERSION = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS verdict (key TEXT PRIMARY KEY, body BLOB NOT NULL);
"""


class Store:
    """Verdicts by key. Safe to use from several threads of one process."""

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            EnvironmentFailure: the file is of another schema version or not ours.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.codes = path.parent / "codes"
        """Folder beside the file where hashes of compiled code are kept, by content."""
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
            found = self._get_meta("schema")
        except sqlite3.DatabaseError as error:
            raise EnvironmentFailure(
                f"{path}: {error}; remove it or choose another --out"
            ) from None
        if found is None:
            self._set_meta("schema", str(SCHEMA_VERSION))
        elif found != str(SCHEMA_VERSION):
            raise EnvironmentFailure(
                f"{path}: written by another version (schema {found}); remove it or choose "
                "another --out"
            )

    def get(self, key: str) -> Verdict | None:
        """The verdict kept under the key, if any."""
        with self._lock:
            row = self._db.execute("SELECT body FROM verdict WHERE key = ?", (key,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Verdict)

    def put(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict; environment failures and timeouts are not kept: they run again."""
        if verdict.outcome in (GateOutcome.ERROR, GateOutcome.TIMEOUT):
            return
        body = msgspec.json.encode(verdict)
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO verdict VALUES (?, ?)", (key, body))

    def __len__(self) -> int:
        with self._lock:
            count = self._db.execute("SELECT count(*) FROM verdict").fetchone()[0]
        return int(count)

    @property
    def finished(self) -> bool:
        """True once the run that wrote the file has ended as it should."""
        return self._get_meta("finished") == "yes"

    def finish(self) -> None:
        """Mark the run as ended."""
        self._set_meta("finished", "yes")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def _get_meta(self, name: str) -> str | None:
        with self._lock:
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_for_run(path: Path) -> Store:
    """The store of an interrupted run, to go on with, or a new one over a finished run's."""
    if path.exists():
        store = Store(path)
        if not store.finished:
            return store
        store.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    return Store(path)


def verdict_key(request: ShardRequest, task: Task, fingerprint: str) -> str:
    """Hash of all that a task's verdict depends on."""
    gate = next(ref for ref in request.gates if ref.name == task.gate)
    parts = (
        fingerprint,
        request.subject,
        gate,
        request.seed,
        request.quick,
        request.overlay,
        task.stop_at_first,
        task.candidate.id,
        task.candidate.files,
    )
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def fingerprint(roots: tuple[Path, ...] = ()) -> str:
    """Hash of gatecert's own source, the libraries under it and the files below `roots`."""
    digest = hashlib.sha256(sys.version.encode())
    for name in ("torch", "triton", "numpy", "ml_dtypes"):
        digest.update(f"{name}={importlib.metadata.version(name)}".encode())
    for root in (Path(__file__).parent, *roots):
        for path in sorted(root.rglob("*")):
            if path.suffix in {".py", ".toml"} and not set(path.parts) & _IGNORED_FOLDERS:
                digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_IGNORED_FOLDERS = frozenset({"__pycache__", ".venv", ".git", "node_modules", "build", "dist"})
