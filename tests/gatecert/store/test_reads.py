"""Claims about what a gate read: whatever of it changes is noticed, and nothing else counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gatecert.gates.reads import GateReads, unhashed
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.store import Scope, recording
from gatecert.store.reads import Marks, hashed, hold


def names(*files: Path, variables: tuple[str, ...] = ()) -> GateReads:
    return GateReads({str(file): "" for file in files}, dict.fromkeys(variables, ""))


@pytest.fixture
def helper(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "testing" / "helper.py"
    path.parent.mkdir(parents=True)
    path.write_text("ATOL = 1000.0\n")
    return path


@pytest.mark.parametrize(
    "change",
    [
        lambda helper, _: helper.write_text("ATOL = 1e-4\n"),
        lambda helper, _: helper.unlink(),
        lambda _, patch: patch.setenv("ACME_TOL", "1e-4"),
        lambda _, patch: patch.delenv("ACME_TOL"),
    ],
)
def test_a_file_or_a_variable_that_changed_is_noticed(
    helper: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], object],
) -> None:
    monkeypatch.setenv("ACME_TOL", "1000")
    reads = hashed(names(helper, variables=("ACME_TOL", "ACME_UNSET")), [str(helper.parents[1])])
    assert set(reads.files) == {str(helper)}
    assert set(reads.variables) == {"ACME_TOL", "ACME_UNSET"}
    assert hold(reads)
    change(helper, monkeypatch)
    assert not hold(reads)


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "cases" / "two.json").touch(),
        lambda top: (top / "cases" / "one.json").unlink(),
        lambda top: (top / "flag").touch(),
        lambda top: (top / "flag").mkdir(),
        lambda top: (top / "golden.json").write_text("1"),
    ],
)
def test_a_listing_and_a_path_that_is_looked_for_are_noticed(
    helper: Path, change: Callable[[Path], object]
) -> None:
    top = helper.parents[1]
    (top / "cases").mkdir()
    (top / "cases" / "one.json").touch()
    # What only the gate's copy held is a path that may come to be.
    read = unhashed([f"{top}/golden.json"], [], [f"{top}/cases"], [f"{top}/flag"])
    reads = hashed(read, [str(top)])
    assert set(reads.sought) == {f"{top}/flag", f"{top}/golden.json"}
    (top / "cases" / "__pycache__").mkdir()
    (top / "cases" / "one.json").write_text("2")
    assert hold(reads)
    change(top)
    assert not hold(reads)


def test_a_file_is_looked_at_once_for_all_verdicts(helper: Path) -> None:
    reads, marks = hashed(names(helper), [str(helper.parents[1])]), Marks()
    assert hold(reads, marks)
    helper.unlink()
    assert hold(reads, marks)
    assert not hold(reads)


def test_reads_beyond_others_are_those_of_other_names() -> None:
    first = GateReads({"a": "1"}, {"V": "1"}, {"f": "1"}, {"s": ""})
    second = GateReads({"a": "", "b": ""}, {"V": "", "W": ""}, {"f": ""}, {"s": "", "a": ""})
    assert second.beyond(first) == GateReads({"b": ""}, {"W": ""})
    assert not first.beyond(first)


def test_hidden_files_and_any_suffix_count_and_caches_and_temporary_files_do_not(
    helper: Path, tmp_path: Path
) -> None:
    top = helper.parents[1]
    counted = [top / "tests" / ".data" / "golden.json", top / "golden.xml", top / "README.md"]
    others = [top / "__pycache__" / "x.py", top / ".pytest_cache" / "y", tmp_path / "scratch.json"]
    for path in (*counted, *others):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    read = names(*counted, *others, top / "gone.json", Path("/proc/cpuinfo"))
    assert set(hashed(read, [str(top)]).files) == set(map(str, counted))


def test_what_differs_between_terminals_does_not_count() -> None:
    assert hashed(names(variables=("PWD", "HOME", "SHLVL")), []) == GateReads()


def test_a_stored_verdict_is_taken_only_while_what_its_gate_read_is_the_same(
    helper: Path, tmp_path: Path
) -> None:
    def verdict(detail: str) -> Verdict:
        reads = hashed(names(helper), [str(helper.parents[1])])
        return Verdict("original", "tests", GateOutcome.ACCEPTED, detail=detail, reads=reads)

    with recording(tmp_path / "out", Scope("certify")) as record:
        record.keep("key", verdict("wide"))
        assert record.known(["key"])["key"].detail == "wide"
        helper.write_text("ATOL = 1e-4\n")
        assert record.known(["key"]) == {}
        record.keep("key", verdict("narrow"))
        assert record.known(["key"])["key"].detail == "narrow"
        helper.write_text("ATOL = 1000.0\n")
        assert record.known(["key"])["key"].detail == "wide"
