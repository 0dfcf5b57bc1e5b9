"""Claims about a run's record: a verdict survives, and what may be stale is never taken."""

from __future__ import annotations

import signal
from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.records import Run
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import CodeComparison, CodeVerdict
from gatecert.store import RunRecord, Scope, open_runs, recording
from gatecert.store.records import PlannedTask, Tasks
from tests.gatecert.store.records import (
    ALL,
    KILLED,
    ORIGINAL,
    OTHER,
    PARTS,
    SCOPE,
    TASKS,
    VERDICT,
    planned,
)

FRESH = msgspec.structs.replace(SCOPE, fresh=True)


def begin(record: RunRecord, tasks: Tasks = ALL) -> None:
    record.plan(planned(), PARTS, "f")
    record.expect(tasks)


def rows(folder: Path) -> tuple[int, int]:
    """Verdicts in the file, and links of runs to them."""
    with recording(folder, Scope("count")) as record:
        database = record._database
        return (
            database.rows("SELECT count(*) FROM verdict")[0][0],
            database.rows("SELECT count(*) FROM run_verdict")[0][0],
        )


def test_an_interrupted_run_goes_on_and_keeps_its_id_and_every_bit(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep("key-1", VERDICT)
        assert record.resumed == 0
    with recording(tmp_path, SCOPE) as record:
        assert (record.id, record.resumed) == ("r1", 1)
        assert record.known(["key-1", "key-2"]) == {"key-1": VERDICT}
        assert record.known(["key-1"]) == {"key-1": VERDICT}
        assert record.taken == 1  # Asked for twice, it is one verdict all the same.


def test_another_scope_is_another_run_that_takes_the_same_verdicts(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep("key-1", VERDICT)
    with recording(tmp_path, msgspec.structs.replace(SCOPE, subjects=("softmax",))) as record:
        assert (record.id, record.resumed) == ("r2", 0)
        assert record.known(["key-1"]) == {"key-1": VERDICT}
    assert rows(tmp_path) == (1, 2)


def test_after_a_finished_run_the_same_command_is_a_new_run(tmp_path: Path) -> None:
    for expected in ("r1", "r2"):
        with recording(tmp_path, SCOPE) as record:
            assert record.id == expected
            record.finish()


def test_fresh_takes_only_what_it_judged_itself_and_leaves_the_old_verdict(tmp_path: Path) -> None:
    other = msgspec.structs.replace(VERDICT, detail="wrong in another way")
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep("key-1", VERDICT)
        record.finish()
    with recording(tmp_path, FRESH) as record:
        begin(record)
        assert record.known(["key-1"]) == {}
        record.keep("key-1", other)
    with recording(tmp_path, FRESH) as record:
        assert record.known(["key-1"]) == {"key-1": other}
        assert record.codes != record.folder / "codes"
    with open_runs(tmp_path) as runs:
        assert [s.verdict for s in runs.load("r1").verdicts] == [VERDICT]
        assert [s.verdict for s in runs.load("r2").verdicts] == [other]


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict(KILLED, "oracle", GateOutcome.ERROR),
        Verdict(KILLED, "oracle", GateOutcome.TIMEOUT),
        *(
            Verdict(KILLED, "oracle", GateOutcome.CRASHED, signal=number)
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        ),
    ],
)
def test_what_a_clock_or_the_machine_decided_is_the_runs_own_and_runs_again(
    tmp_path: Path, verdict: Verdict
) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep("key-1", verdict)
        (part,) = record.run().subjects
        assert part.verdicts == (verdict,)
        assert record.known(["key-1"]) == {}
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        assert record.stored().verdicts == ()
        record.keep("key-1", VERDICT)
        (part,) = record.run().subjects
        assert part.verdicts == (VERDICT,)


def test_a_segfault_of_the_candidate_is_a_lasting_verdict(tmp_path: Path) -> None:
    crash = Verdict(KILLED, "oracle", GateOutcome.CRASHED, signal=signal.SIGSEGV)
    with recording(tmp_path, SCOPE) as record:
        record.keep("key-1", crash)
        assert record.known(["key-1"]) == {"key-1": crash}


def test_after_an_edit_a_resumed_run_drops_what_it_had_under_old_keys(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        for task in TASKS:
            record.keep(task.key, msgspec.structs.replace(VERDICT, candidate=task.candidate))
    edited = PlannedTask("softmax", KILLED, "oracle", "key-1-edited")
    with recording(tmp_path, SCOPE) as record:
        begin(record, Tasks((TASKS[0], edited, TASKS[2])))
        (part,) = record.run().subjects
        assert [v.candidate for v in part.verdicts] == ["softmax/original", OTHER]
        assert record.known(["key-1-edited"]) == {}


def test_verdicts_come_in_the_order_of_the_plan_however_they_were_judged(tmp_path: Path) -> None:
    said = {t.key: msgspec.structs.replace(VERDICT, candidate=t.candidate) for t in TASKS}
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        for key in ("key-2", "key-0", "key-1"):
            record.keep(key, said[key])
        (part,) = record.run().subjects
    assert [v.candidate for v in part.verdicts] == ["softmax/original", KILLED, OTHER]


def test_a_verdict_and_its_cells_are_written_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep("key-0", ORIGINAL, b"cells")

        def fails(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(RunRecord, "_link", fails)
            record.keep("key-1", VERDICT, b"cells")
    assert rows(tmp_path) == (1, 1)
    with open_runs(tmp_path) as runs:
        (kept,) = runs.load("r1").verdicts
        assert (kept.verdict, kept.observed) == (ORIGINAL, b"cells")


def test_what_a_killed_compiler_left_is_removed_and_known_codes_stay(tmp_path: Path) -> None:
    codes = tmp_path / "codes" / "ab"
    codes.mkdir(parents=True)
    (codes / "abcd").write_text("hash")
    (codes / "abce.4711").write_text("ha")
    with recording(tmp_path, SCOPE):
        assert [path.name for path in codes.iterdir()] == ["abcd"]


def test_comparisons_are_taken_unless_the_compiler_failed(tmp_path: Path) -> None:
    sure = (CodeComparison(KILLED, CodeVerdict.VIABLE, seconds=0.5),)
    unsure = (CodeComparison(KILLED, CodeVerdict.UNKNOWN, "compiling did not end within 60 s"),)
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.keep_comparisons("softmax", "sure", sure)
        record.keep_comparisons("softmax", "unsure", unsure)
        assert record.known_comparisons("sure") == sure
        assert record.known_comparisons("unsure") is None
        (part,) = record.run().subjects
        assert part.comparisons == unsure


def test_a_record_read_back_is_the_run_that_was_planned(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        begin(record)
        record.note_timings({"judge": 1.5})
        record.finish()
        found = record.run()
    assert found == Run(
        **{
            **{name: getattr(planned(), name) for name in Run.__struct_fields__},
            "timings_s": {"judge": 1.5},
            "interrupted": False,
        }
    )
