"""Claims about the store: a verdict survives, a stale one is never found."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from gatecert.store import Store, open_for_run, verdict_key
from gatecert.subjects import Subject

CANDIDATE = Candidate("s/k/op/0-abcdef", CandidateKind.MUTANT, "s", {"/x.py": "text"})
TASK = Task(CANDIDATE, "oracle")
REQUEST = ShardRequest(Subject("s", "m:f"), (GateRef("oracle", "."),), (TASK,))
VERDICT = Verdict(CANDIDATE.id, "oracle", GateOutcome.REJECTED, detail="wrong")


def test_a_verdict_is_there_after_reopening(tmp_path: Path) -> None:
    with Store(tmp_path / "run.sqlite") as store:
        store.put("key", VERDICT)
    with Store(tmp_path / "run.sqlite") as store:
        assert store.get("key") == VERDICT
        assert len(store) == 1


@pytest.mark.parametrize("outcome", [GateOutcome.ERROR, GateOutcome.TIMEOUT])
def test_what_is_no_verdict_is_not_kept(tmp_path: Path, outcome: GateOutcome) -> None:
    with Store(tmp_path / "run.sqlite") as store:
        store.put("key", msgspec.structs.replace(VERDICT, outcome=outcome))
        assert store.get("key") is None


def test_an_interrupted_run_goes_on_and_a_finished_one_starts_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with open_for_run(path) as store:
        store.put("key", VERDICT)
    with open_for_run(path) as store:
        assert store.get("key") == VERDICT
        store.finish()
    with open_for_run(path) as store:
        assert store.get("key") is None


def test_a_foreign_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_bytes(b"not a database at all, but long enough to be read")
    with pytest.raises(EnvironmentFailure, match="remove it or choose another --out"):
        Store(tmp_path / "run.sqlite")


@pytest.mark.parametrize(
    "request_",
    [
        msgspec.structs.replace(REQUEST, seed=1),
        msgspec.structs.replace(REQUEST, quick=True),
        msgspec.structs.replace(REQUEST, overlay=False),
        msgspec.structs.replace(REQUEST, subject=Subject("s", "m:f", dtypes=("float16",))),
        msgspec.structs.replace(REQUEST, gates=(GateRef("oracle", "elsewhere"),)),
    ],
)
def test_whatever_a_verdict_depends_on_is_in_its_key(request_: ShardRequest) -> None:
    assert verdict_key(request_, TASK, "f") != verdict_key(REQUEST, TASK, "f")


def test_text_and_fingerprint_are_in_the_key() -> None:
    other = msgspec.structs.replace(CANDIDATE, files={"/x.py": "other text"})
    assert verdict_key(REQUEST, Task(other, "oracle"), "f") != verdict_key(REQUEST, TASK, "f")
    assert verdict_key(REQUEST, TASK, "g") != verdict_key(REQUEST, TASK, "f")
