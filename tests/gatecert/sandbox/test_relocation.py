"""Claims about requests in a private copy: all that names the project names the copy, and answers
name the project."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.errors import UsageError
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.sandbox.protocol import GateRef, Judged, ProbeRequest, ShardRequest, Task
from gatecert.sandbox.relocation import as_users, external_gates, moved
from gatecert.subjects import Subject


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a kernel file, tests in one folder and a script in another."""
    for name in ("acme/kernels.py", "tests/test_x.py", "scripts/check.sh"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("")
    return tmp_path


def request_for(project: Path) -> ShardRequest:
    """Gates of every kind on one mutant."""
    root = str(project)
    script = GateConfig("command", rootdir="scripts", command=(f"{root}/scripts/check.sh", "-x"))
    gates = (
        GateRef("oracle", root),
        GateRef("tests", root, GateConfig("pytest", (f"{root}/tests/test_x.py::test_y",))),
        GateRef("function", root, GateConfig("callable", callable="acme.checks:check")),
        GateRef("script", root, script),
        GateRef("memory", root, GateConfig("sanitizer", around="script"), script),
    )
    files = {f"{root}/acme/kernels.py": "mutated", "/elsewhere/thing.py": "mutated"}
    candidate = Candidate("candidate", CandidateKind.MUTANT, "softmax", files)
    subject = Subject("softmax", "acme.kernels:softmax", import_paths=(root, "/elsewhere"))
    return ShardRequest(subject, gates, (Task(candidate, "tests"),))


def in_the_copy(request: ShardRequest) -> dict[str, Any]:
    """What the request and the process are like there, with the copy's name as TREE."""

    def work() -> bytes:
        sys.path.insert(0, str(request.gates[0].root))
        os.environ["ACME_DATA"] = f"{request.gates[0].root}/acme"
        with moved(request) as (here, tree):
            assert tree is not None and isinstance(here, ShardRequest)
            seen = {
                "subject": here.subject,
                "gates": here.gates,
                "files": here.tasks[0].candidate.files,
                "cwd": str(Path.cwd()),
                "path": sys.path[0],
                "data": os.environ["ACME_DATA"],
            }
            return msgspec.json.encode(seen).replace(tree.placing.tree.encode(), b"TREE")

    result = run_in_child(work, timeout_s=20)
    assert result.end is ChildEnd.ANSWERED, result.log
    found: dict[str, Any] = msgspec.json.decode(result.answer)
    return found


def test_all_that_names_the_project_names_the_copy(project: Path) -> None:
    found = in_the_copy(request_for(project))
    copy = f"TREE{project}"
    assert found["subject"]["import_paths"] == [copy, "/elsewhere"]
    assert found["files"] == {
        f"{copy}/acme/kernels.py": "mutated",
        "/elsewhere/thing.py": "mutated",
    }
    assert (found["cwd"], found["path"], found["data"]) == (copy, copy, f"{copy}/acme")
    oracle, tests, function, script, memory = found["gates"]
    unplaced = {"config": None, "around": None, "oracle": None}
    assert oracle == {"name": "oracle", "root": str(project), **unplaced}
    assert tests["config"]["args"] == [f"{copy}/tests/test_x.py::test_y"]
    assert function["config"]["rootdir"] == copy
    assert script["config"]["command"] == [f"{copy}/scripts/check.sh", "-x"]
    assert script["config"]["rootdir"] == memory["around"]["rootdir"] == f"{copy}/scripts"
    assert memory["config"]["around"] == "script"


def test_answers_and_errors_name_the_project(project: Path) -> None:
    def work() -> bytes:
        try:
            with moved(request_for(project)) as (_, tree):
                assert tree is not None
                copy = f"{tree.placing.tree}{project}"
                detail = f"{copy}/tests/test_x.py:3: AssertionError"
                verdict = Verdict("candidate", "tests", GateOutcome.REJECTED, detail=detail)
                said = as_users(Judged(verdict), tree)
                assert isinstance(said, Judged)
                raise UsageError(f"{said.verdict.detail} and {copy}/absent")
        except UsageError as error:
            return str(error).encode()

    said = run_in_child(work, timeout_s=20).answer.decode().strip()
    assert said == f"{project}/tests/test_x.py:3: AssertionError and {project}/absent"


def test_without_a_gate_of_the_users_nothing_is_copied(project: Path) -> None:
    request = msgspec.structs.replace(request_for(project), gates=(GateRef("oracle", "."),))
    with moved(request) as (here, tree):
        assert here is request
        assert tree is None


def test_a_probe_runs_the_users_gate_only_where_there_is_no_operation(project: Path) -> None:
    ref = GateRef("tests", str(project), GateConfig("pytest"))
    subject = Subject("softmax", "acme.kernels:softmax", "softmax")
    assert external_gates(ProbeRequest(subject, ref)) == []
    without = msgspec.structs.replace(subject, operation=None)
    assert external_gates(ProbeRequest(without, ref)) == [ref]
