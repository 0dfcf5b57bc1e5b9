"""Claims about content keys: whatever can change an answer changes its key, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import gatecert
from gatecert.gates.suite.records import Ending, KnownTest, PytestBaseline
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.protocol import GateRef, Limits, ShardRequest, Task
from gatecert.store.keys import _NEVER_IN_THE_SANDBOX, fingerprint, verdict_key
from gatecert.subjects import Subject

PACKAGE = Path(gatecert.__file__).parent
CANDIDATE = Candidate("s/k/op/0-abcdef", CandidateKind.MUTANT, "s", {"/x.py": "text"})
TASK = Task(CANDIDATE, "oracle")
REQUEST = ShardRequest(Subject("s", "m:f"), (GateRef("oracle", "."),), (TASK,))


@pytest.mark.parametrize(
    "request_",
    [
        msgspec.structs.replace(REQUEST, seed=1),
        msgspec.structs.replace(REQUEST, quick=True),
        msgspec.structs.replace(REQUEST, overlay=False),
        msgspec.structs.replace(REQUEST, subject=Subject("s", "m:f", dtypes=("float16",))),
        msgspec.structs.replace(REQUEST, gates=(GateRef("oracle", "elsewhere"),)),
        msgspec.structs.replace(REQUEST, signatures=frozenset({"0123"})),
        msgspec.structs.replace(REQUEST, limits=Limits(memory_bytes=1 << 30)),
    ],
)
def test_whatever_a_verdict_depends_on_is_in_its_key(request_: ShardRequest) -> None:
    assert verdict_key(request_, TASK, "f") != verdict_key(REQUEST, TASK, "f")


@pytest.mark.parametrize(
    "task",
    [
        Task(msgspec.structs.replace(CANDIDATE, files={"/x.py": "other"}), "oracle"),
        Task(msgspec.structs.replace(CANDIDATE, files={"/y.py": "text"}), "oracle"),
        Task(msgspec.structs.replace(CANDIDATE, kind=CandidateKind.BENIGN), "oracle"),
        Task(CANDIDATE, "oracle", stop_at_first=False),
        Task(CANDIDATE, "oracle", observe=True),
    ],
)
def test_whatever_a_gate_is_given_is_in_the_key(task: Task) -> None:
    assert verdict_key(REQUEST, task, "f") != verdict_key(REQUEST, TASK, "f")
    assert verdict_key(REQUEST, TASK, "g") != verdict_key(REQUEST, TASK, "f")


def test_time_limits_other_tasks_and_wording_are_not_in_the_key() -> None:
    slower = msgspec.structs.replace(REQUEST, limits=Limits(factor=99.0), tasks=())
    assert verdict_key(slower, TASK, "f") == verdict_key(REQUEST, TASK, "f")
    reworded = Task(msgspec.structs.replace(CANDIDATE, detail="x", diff="y"), "oracle")
    assert verdict_key(REQUEST, reworded, "f") == verdict_key(REQUEST, TASK, "f")


@pytest.mark.parametrize("part", ["operators", "mutants", "oracle", "gates", "lanes"])
def test_an_edit_of_gatecert_changes_the_fingerprint_in_a_checkout_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    for name in ("operators", "mutants", "oracle"):
        (tmp_path / name).mkdir()
    package = tmp_path / "gatecert"
    package.mkdir()
    for name in ("operators", "mutants", "oracle"):
        (package / name).symlink_to(Path("..") / name)
    for name in ("gates", "lanes"):
        (package / name).mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(gatecert, "__file__", str(package / "__init__.py"))
    before = fingerprint()
    (package / part / "rule.py").write_text("x = 1\n")
    added = fingerprint()
    (package / part / "rule.py").write_text("x = 2\n")
    assert len({before, added, fingerprint()}) == 3


def test_what_the_fingerprint_leaves_out_is_in_no_process_that_judges_or_compiles() -> None:
    code = (
        "import sys; from gatecert.sandbox import zygote; zygote._warm_up(()); "
        "import gatecert.mutants.compile_server; "
        "print(*(n for n in sys.modules if n.startswith('gatecert.')))"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[1] for name in done.stdout.split()}
    assert {"gates", "lanes", "mutants", "oracle", "sandbox"} <= loaded
    assert not loaded & _NEVER_IN_THE_SANDBOX


def test_every_module_of_the_corpus_holds_a_kernel_so_that_its_subject_hashes_it() -> None:
    for path in sorted((PACKAGE / "corpus").glob("*.py")):
        if path.name != "__init__.py":
            assert "@triton.jit" in path.read_text(encoding="utf-8"), path


def test_a_gates_files_count_and_its_results_logs_and_prose_do_not(tmp_path: Path) -> None:
    root, out = tmp_path / "project", tmp_path / "project" / "gatecert-out"
    (root / "tests").mkdir(parents=True)
    out.mkdir()
    test = root / "tests" / "test_kernel.py"
    test.write_text("assert True\n")
    before = fingerprint((root,), but=out)
    (out / "certificate.json").write_text("{}")
    (root / "run.log").write_text("ran\n")
    (root / "README.md").write_text("words\n")
    (root / ".cache").mkdir()
    (root / ".cache" / "x.py").write_text("x\n")
    assert fingerprint((root,), but=out) == before
    (root / "expected.csv").write_text("1,2\n")
    with_data = fingerprint((root,), but=out)
    test.write_text("assert 1\n")
    assert len({before, with_data, fingerprint((root,), but=out)}) == 3


def test_a_link_to_a_folder_above_is_not_walked_for_ever(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "x.py").write_text("x\n")
    assert fingerprint((tmp_path,)) == fingerprint((tmp_path,))


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        *(("TRITON_DEFAULT_FP_FUSION", True), ("TRITON_CACHE_DIR", False), ("EDITOR", False)),
        *(("PYTHONWARNINGS", True), ("PYTHONOPTIMIZE", True), ("PYTEST_ADDOPTS", True)),
        *(("PYTHONUNBUFFERED", False), ("PYTHONPYCACHEPREFIX", False)),
    ],
)
def test_switches_count_and_places_and_what_only_prints_do_not(
    monkeypatch: pytest.MonkeyPatch, name: str, counts: bool
) -> None:
    monkeypatch.delenv(name, raising=False)
    before = fingerprint()
    monkeypatch.setenv(name, "0")
    assert (fingerprint() != before) == counts


def test_the_tests_that_are_chosen_for_a_mutant_are_in_its_key_and_not_in_the_originals() -> None:
    def keys(kind: CandidateKind, *kernels: str, reason: str = "") -> tuple[str, str]:
        test = KnownTest("t.py::a", (Ending.PASSED,), kernels=("m:k",), reason=reason)
        request = msgspec.structs.replace(REQUEST, baselines={"oracle": PytestBaseline((test,))})
        task = Task(msgspec.structs.replace(CANDIDATE, kind=kind, kernels=kernels), "oracle")
        return verdict_key(REQUEST, task, "f"), verdict_key(request, task, "f")

    without, with_baseline = keys(CandidateKind.MUTANT)
    assert without != with_baseline
    assert with_baseline != keys(CandidateKind.MUTANT, "m:k")[1]
    assert with_baseline != keys(CandidateKind.MUTANT, reason="flaky")[1]
    first, second = keys(CandidateKind.ORIGINAL)
    assert first == second
