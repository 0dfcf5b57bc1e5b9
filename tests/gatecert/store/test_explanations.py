"""Claims about explanations in the store: kept one by one, taken again, never stale."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gatecert.diagnosis.records import Captured, Evidence, Reached
from gatecert.store import RunRecord, Scope, open_runs, recording
from gatecert.store.runs import as_run
from tests.gatecert.store.records import ALL, PARTS, SCOPE, VERDICT, planned

EVIDENCE = Evidence(VERDICT.candidate, "oracle", Captured(3, 0, 3), Reached(3, True))


def begin(record: RunRecord) -> None:
    record.plan(planned(), PARTS, "f")
    record.expect(ALL)


def held(folder: Path, run: str) -> tuple[Evidence, ...]:
    with open_runs(folder) as runs:
        return runs.load(run).explanations


def explanations(folder: Path) -> int:
    with recording(folder, Scope("count")) as record:
        return int(record._database.rows("SELECT count(*) FROM explanation")[0][0])


def test_what_an_interrupted_run_explained_is_there_when_it_goes_on(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("key", EVIDENCE)
    assert held(tmp_path, "r1") == (EVIDENCE,)
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        assert record.id == "r1"
        assert record.explained("key")
        assert not record.explained("another")
    assert held(tmp_path, "r1") == (EVIDENCE,)


def test_what_goes_on_under_other_keys_does_not_keep_what_was_said_before(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("key", EVIDENCE)
    with recording(tmp_path, SCOPE) as record:
        begin(record)
    assert held(tmp_path, "r1") == ()


def test_a_later_run_takes_it_and_one_that_is_to_be_fresh_does_not(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("key", EVIDENCE)
        record.finish()
    fresh = msgspec.structs.replace(SCOPE, fresh=True)
    for scope, taken in ((SCOPE, True), (fresh, False)):
        with recording(tmp_path, scope) as record:
            begin(record)
            assert record.explained("key") is taken
            record.finish()
    assert held(tmp_path, "r2") == (EVIDENCE,)
    assert held(tmp_path, "r3") == ()


def test_a_new_explanation_under_a_key_takes_the_place_of_the_old(tmp_path: Path) -> None:
    newer = msgspec.structs.replace(EVIDENCE, seconds=2.0)
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("key", EVIDENCE)
        record.keep_explanation("key", newer)
    assert held(tmp_path, "r1") == (newer,)
    assert explanations(tmp_path) == 1


def test_with_the_last_run_that_has_it_an_explanation_goes(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("key", EVIDENCE)
        record.finish()
    with recording(tmp_path, Scope("other")), open_runs(tmp_path) as runs:
        runs.remove(["r1"])
    assert explanations(tmp_path) == 0


def test_a_runs_record_has_those_of_its_own_mutants(tmp_path: Path) -> None:
    stranger = msgspec.structs.replace(EVIDENCE, mutant="softmax/k/gone/1-000000")
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_explanation("one", EVIDENCE)
        record.keep_explanation("two", stranger)
        record.finish()
    with open_runs(tmp_path) as runs:
        run = as_run(runs.load("r1"))
    found = [one for part in run.subjects for one in part.explanations]
    assert found == [EVIDENCE]
