"""Claims about reading a store: runs are listed, loaded and removed, foreign files refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from gatecert.errors import EnvironmentFailure, NothingScored, UsageError
from gatecert.store import DATABASE, SCHEMA_VERSION, Scope, open_runs, owned, recording
from gatecert.store.records import RunState, Shard, Tasks
from tests.gatecert.store.records import ALL, KILLED, ORIGINAL, PARTS, SCOPE, VERDICT, planned


def fill(folder: Path, scope: Scope = SCOPE, *, finish: bool = True) -> None:
    """A run with two verdicts of its three."""
    with recording(folder, scope) as record:
        record.plan(planned(), PARTS, "f")
        record.expect(ALL)
        if "key-0" not in record.known(["key-0"]):
            record.keep("key-0", ORIGINAL)
        record.keep(f"key-1-{record.id}" if scope.fresh else "key-1", VERDICT, b"1234")
        if finish:
            record.finish()


def test_runs_are_listed_with_how_far_they_got(tmp_path: Path) -> None:
    fill(tmp_path)
    fill(tmp_path, msgspec.structs.replace(SCOPE, seed=3), finish=False)
    with open_runs(tmp_path) as runs:
        first, second = runs.all()
    assert (first.id, first.state) == ("r1", RunState.FINISHED)
    assert (first.verdicts, first.tasks, first.observed_bytes) == (2, 3, 4)
    assert (second.id, second.state) == ("r2", RunState.UNFINISHED)
    assert str(second.scope) == "certify --gate oracle --seed 3"


def test_a_run_in_progress_can_be_read_and_is_called_running(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        record.plan(planned(), PARTS, "f")
        record.expect(ALL)
        record.keep("key-1", VERDICT)
        with open_runs(tmp_path) as runs:
            (info,) = runs.all()
            assert info.state is RunState.RUNNING
            assert [s.verdict for s in runs.load("r1").verdicts] == [VERDICT]


def test_ids_are_never_given_twice(tmp_path: Path) -> None:
    fill(tmp_path)
    with owned(tmp_path, "runs rm"), open_runs(tmp_path) as runs:
        runs.remove(["r1"])
    fill(tmp_path)
    with open_runs(tmp_path) as runs:
        assert [info.id for info in runs.all()] == ["r2"]


def test_removing_a_run_keeps_what_another_shares(tmp_path: Path) -> None:
    fill(tmp_path)
    fill(tmp_path, msgspec.structs.replace(SCOPE, quick=True))
    with owned(tmp_path, "runs rm"), open_runs(tmp_path) as runs:
        before = runs.load("r2").verdicts
        runs.remove(["r1"])
        assert runs.load("r2").verdicts == before
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        [(kept,)] = database.execute("SELECT count(*) FROM verdict").fetchall()
    assert kept == len(before)


def test_an_unknown_run_removes_nothing_and_names_the_nearest(tmp_path: Path) -> None:
    fill(tmp_path)
    with owned(tmp_path, "runs rm"), open_runs(tmp_path) as runs:
        with pytest.raises(UsageError, match="did you mean 'r1'"):
            runs.remove(["r1", "r11"])
        assert [info.id for info in runs.all()] == ["r1"]


def test_a_run_that_planned_nothing_says_so(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE):
        pass
    with open_runs(tmp_path) as runs, pytest.raises(NothingScored, match="stopped before"):
        runs.load("r1")


def test_a_shards_record_holds_its_share_and_the_whole_plan(tmp_path: Path) -> None:
    shard = msgspec.structs.replace(SCOPE, shard=Shard(1, 2))
    with recording(tmp_path, shard) as record:
        record.plan(planned(), PARTS, "f")
        record.expect(Tasks(ALL.planned, frozenset({"softmax/original", KILLED})))
        (part,) = record.run().subjects
        assert [mutant.id for mutant in part.mutants] == [KILLED]
        assert record.stored().tasks.planned == ALL.planned
        assert record.stored().info.tasks == 2


@pytest.mark.parametrize("version", ["1", "99"])
@pytest.mark.parametrize("writes", [True, False])
def test_another_schema_version_is_refused_by_number_and_left_alone(
    tmp_path: Path, version: str, writes: bool
) -> None:
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        database.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (version,))
        database.commit()
    opened = recording(tmp_path, SCOPE) if writes else open_runs(tmp_path)
    said = f"schema version {version}, this gatecert reads version {SCHEMA_VERSION}"
    with pytest.raises(EnvironmentFailure, match=said), opened:
        pass
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        assert database.execute("SELECT count(*) FROM run").fetchone() == (1,)


def test_a_foreign_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"not a database at all, but long enough to be read")
    with (
        pytest.raises(EnvironmentFailure, match="remove it or choose another --out"),
        recording(tmp_path, SCOPE),
    ):
        pass


def test_a_database_of_someone_else_is_refused_and_gets_no_tables(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        database.execute("CREATE TABLE theirs (x)")
        database.commit()
    with (
        pytest.raises(EnvironmentFailure, match="not a store of gatecert"),
        recording(tmp_path, SCOPE),
    ):
        pass
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        assert database.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_folder_without_a_store_is_a_usage_error_and_stays_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"), open_runs(tmp_path):
        pass
    assert not any(tmp_path.iterdir())


def test_a_record_of_another_version_is_named_with_what_to_do(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / DATABASE)) as database:
        database.execute("UPDATE run SET planned = ?", (b"\x00",))
        database.commit()
    with open_runs(tmp_path) as runs, pytest.raises(EnvironmentFailure, match="runs rm r1"):
        runs.load("r1")


def test_a_closed_store_is_one_file_that_can_be_copied(tmp_path: Path) -> None:
    fill(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".gatecert.lock", DATABASE]
