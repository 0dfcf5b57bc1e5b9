"""What runs leave on disk: one SQLite file per folder of results, a transaction per verdict."""

from gatecert.store.database import DATABASE, SCHEMA_VERSION
from gatecert.store.lock import owned
from gatecert.store.recorder import RunRecord, recording
from gatecert.store.records import Scope, Shard
from gatecert.store.runs import Runs, open_runs

__all__ = [
    "DATABASE",
    "SCHEMA_VERSION",
    "RunRecord",
    "Runs",
    "Scope",
    "Shard",
    "open_runs",
    "owned",
    "recording",
]
