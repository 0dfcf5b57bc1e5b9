"""Claims about merging: shards of one plan become the whole run; anything else is refused by
name."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.campaign.merge import gather, merge
from gatecert.campaign.progress import Silent
from gatecert.errors import UsageError
from gatecert.gates.records import GateOutcome, Spent, Verdict
from gatecert.mutants.records import CodeComparison, CodeVerdict
from gatecert.store import recording
from gatecert.store.records import PlannedPart, PlannedTask, Shard, Tasks
from tests.gatecert.store.records import (
    ALL,
    KILLED,
    ORIGINAL,
    OTHER,
    PARTS,
    SCOPE,
    VERDICT,
    planned,
)

SAID = {
    ORIGINAL.candidate: ORIGINAL,
    KILLED: VERDICT,
    OTHER: msgspec.structs.replace(VERDICT, candidate=OTHER),
}
SAME = (CodeComparison(KILLED, CodeVerdict.VIABLE), CodeComparison(OTHER, CodeVerdict.VIABLE))
SHARES = {1: {ORIGINAL.candidate, KILLED}, 2: {ORIGINAL.candidate, OTHER}}


def shard(folder: Path, number: int, count: int = 2, **changes: Any) -> Path:
    """The store of one shard of two; `changes` make it one of another plan, or a broken one."""
    fields: dict[str, Any] = {
        "run": planned(),
        "parts": PARTS,
        "fingerprint": "f",
        "planned": ALL.planned,
        "comparisons": SAME,
        "said": SAID,
        "finish": True,
        "scope": {},
        **changes,
    }
    scope = msgspec.structs.replace(SCOPE, shard=Shard(number, count), **fields["scope"])
    share = frozenset(SHARES.get(number, set()))
    with recording(folder / f"{number}of{count}", scope) as record:
        record.plan(fields["run"], fields["parts"], fields["fingerprint"])
        record.keep_comparisons("softmax", "k", fields["comparisons"])
        tasks = Tasks(fields["planned"], share)
        record.expect(tasks)
        for task in tasks.mine:
            if task.candidate in fields["said"]:
                record.keep(task.key, fields["said"][task.candidate], b"cells")
        record.note_timings({"judge": 2.0})
        if fields["finish"]:
            record.finish()
    return folder / f"{number}of{count}"


def refused(paths: Iterable[Path]) -> str:
    with pytest.raises(UsageError) as error:
        gather(list(paths))
    return str(error.value)


def test_two_shards_are_the_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gatecert.campaign.merge.read_source", lambda path: "text")
    merged = gather([shard(tmp_path, 2), shard(tmp_path, 1)])
    assert merged.scope == SCOPE
    with recording(tmp_path / "whole", merged.scope) as record:
        found = merge(merged, record, 1, Silent())
        (first, *_) = record.stored().verdicts
    (part,) = found.subjects
    assert part.verdicts == tuple(SAID.values())
    assert part.comparisons == SAME
    assert part.mutants == planned().subjects[0].mutants
    assert not found.interrupted
    assert found.timings_s == {"shards: judge": 4.0}
    assert first.observed == b"cells"


def test_what_was_merged_is_taken_by_a_later_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatecert.campaign.merge.read_source", lambda path: "text")
    merged = gather([shard(tmp_path, 1), shard(tmp_path, 2)])
    with recording(tmp_path / "whole", merged.scope) as record:
        merge(merged, record, 1, Silent())
        record.finish()
    with recording(tmp_path / "whole", SCOPE) as record:
        assert record.id == "r2"
        assert record.known(task.key for task in ALL.planned).keys() == {"key-0", "key-1", "key-2"}


def test_a_source_that_has_changed_since_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gatecert.campaign.merge.read_source", lambda path: "edited")
    merged = gather([shard(tmp_path, 1), shard(tmp_path, 2)])
    with (
        recording(tmp_path / "whole", merged.scope) as record,
        pytest.raises(UsageError, match=r"/x\.py is not what the shards saw"),
    ):
        merge(merged, record, 1, Silent())


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    assert "shard 2/3, 3/3 is in none of" in refused([shard(tmp_path, 1, 3)])


def test_an_unfinished_shard_is_named(tmp_path: Path) -> None:
    said = refused([shard(tmp_path, 1), shard(tmp_path, 2, finish=False)])
    assert "run r1 of shard 2/2 is unfinished; the same command goes on with it" in said


def test_a_missing_verdict_is_named(tmp_path: Path) -> None:
    said = refused([shard(tmp_path, 1), shard(tmp_path, 2, said={ORIGINAL.candidate: ORIGINAL})])
    assert f"no verdict of oracle on {OTHER}" in said
    assert "shard 2/2" in said


def test_originals_that_two_machines_compute_otherwise_are_named(tmp_path: Path) -> None:
    other = msgspec.structs.replace(ORIGINAL, bits="c", duration_s=3.0)
    said = refused(
        [shard(tmp_path, 1), shard(tmp_path, 2, said={**SAID, ORIGINAL.candidate: other})]
    )
    assert f"disagree on {ORIGINAL.candidate} under oracle" in said
    assert "accepted, bits b and accepted, bits c" in said


def test_the_same_shard_from_two_stores_may_not_contradict_itself(tmp_path: Path) -> None:
    first = shard(tmp_path, 1)
    other = Verdict(KILLED, "oracle", GateOutcome.ACCEPTED)
    again = shard(tmp_path / "again", 1, said={**SAID, KILLED: other})
    said = refused([first, again, shard(tmp_path, 2)])
    assert f"disagree on {KILLED} under oracle: rejected and accepted" in said


def test_what_a_clock_says_is_no_contradiction(tmp_path: Path) -> None:
    slower = {
        name: msgspec.structs.replace(v, duration_s=9.0, spent=Spent(1.0, 2.0))
        for name, v in SAID.items()
    }
    assert len(gather([shard(tmp_path, 1), shard(tmp_path, 2, said=slower)]).verdicts) == 3


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"scope": {"seed": 1}}, "differ in seed: 0 and 1"),
        ({"scope": {"quick": True}}, "differ in quick"),
        ({"scope": {"matrix": True}}, "differ in matrix"),
        ({"scope": {"gates": ("tests",)}}, "differ in gates"),
        ({"fingerprint": "g"}, "differ in gatecert's code or a library"),
        (
            {"parts": (PlannedPart("softmax", {}, (), 1.0, "edited", ()),)},
            "differ in the sources of softmax",
        ),
        (
            {
                "run": msgspec.structs.replace(
                    planned(),
                    environment=msgspec.structs.replace(planned().environment, torch="9"),
                )
            },
            "differ in environment.torch: 2.13.0 and 9",
        ),
        (
            {"comparisons": (SAME[0], CodeComparison(OTHER, CodeVerdict.UNKNOWN))},
            f"differ in the code of {OTHER}: viable and unknown",
        ),
        (
            {"planned": (*ALL.planned[:2], PlannedTask("softmax", OTHER, "oracle", "other"))},
            f"differ in what oracle is given of {OTHER}",
        ),
    ],
)
def test_shards_of_two_plans_are_refused_for_the_first_difference(
    tmp_path: Path, changes: dict[str, Any], named: str
) -> None:
    assert named in refused([shard(tmp_path, 1), shard(tmp_path, 2, **changes)])


def test_shards_of_another_split_are_refused(tmp_path: Path) -> None:
    said = refused([shard(tmp_path, 1, 2), shard(tmp_path, 2, 3)])
    assert "differ in the number of shards: 2 and 3" in said


def test_shards_that_ran_one_after_the_other_in_one_folder_are_merged_too(tmp_path: Path) -> None:
    for number in (1, 2):
        scope = msgspec.structs.replace(SCOPE, shard=Shard(number, 2))
        with recording(tmp_path, scope) as record:
            record.plan(planned(), PARTS, "f")
            record.keep_comparisons("softmax", "k", SAME)
            tasks = Tasks(ALL.planned, frozenset(SHARES[number]))
            record.expect(tasks)
            known = record.known(task.key for task in tasks.mine)
            for task in tasks.mine:
                if task.key not in known:
                    record.keep(task.key, SAID[task.candidate])
            record.finish()
    assert len(gather([tmp_path]).verdicts) == 3


def test_a_store_without_shards_is_refused(tmp_path: Path) -> None:
    with recording(tmp_path, SCOPE) as record:
        record.finish()
    assert "no run of a shard in it" in refused([tmp_path])
