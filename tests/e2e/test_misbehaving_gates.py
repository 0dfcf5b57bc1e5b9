"""Claims about gates that misbehave: the right status each, no process left, and the user's tree
bit for bit as it was, also after SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatecert.errors import ExitCode
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import plant
from gatecert.operators.registry import get_operator
from tests.e2e.commands import LIMIT_S, ROOT, environment
from tests.e2e.test_interrupt import MARK, _marked, _wait

TESTDATA = ROOT / "tests" / "testdata"
CALLABLES = (
    *("always_accepts", "warns_only", "segfaults", "runs_out_of_memory"),
    *("forks_children", "changes_directory", "writes_files", "seeds_from_time"),
)
COMMANDS = {
    "hangs_in_a_script": 'command = ["python", "run_gate.py", "gate_hangs"]\ntimeout_s = 20',
    "prints_nothing": 'command = ["python", "gate_prints_nothing.py"]\nverdict = "json"',
    "litters_in_a_script": 'command = ["python", "run_gate.py", "gate_writes_files"]',
    "forks_in_a_script": 'command = ["python", "run_gate.py", "gate_forks_children"]',
}
WRONG, HARMLESS = "wrong-pad-value.zero", "missing-max-subtraction"
"""A mutant that every honest gate here kills, and one that none does."""
DAEMONS_SLEEP_S = f"600.{os.getpid()}"
"""Tells this test's daemons from those of another."""


@dataclass(frozen=True)
class Project:
    """A team's folder, with its temporary files in another."""

    root: Path
    temporary: Path
    mark: str

    def command(self, *arguments: str) -> subprocess.Popen[str]:
        """`gatecert ARGUMENTS` in the folder, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "gatecert", *arguments, "--jobs", "1", "--out", "../out"],
            cwd=self.root,
            env={
                **environment(),
                MARK: self.mark,
                "TMPDIR": str(self.temporary),
                "GATE_FLAKY_COUNTER": str(self.root.parent / "counter"),
                "GATE_DAEMON_SECONDS": DAEMONS_SLEEP_S,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Its exit code and stderr."""
        process = self.command(*arguments)
        try:
            _, stderr = process.communicate(timeout=2 * LIMIT_S)
        finally:
            process.kill()  # else it holds the store's lock against the next one
        return process.returncode, stderr

    def state(self) -> dict[str, tuple[int, int, int, bytes]]:
        """Mode, times and content of every file, and of every folder mode and time of change."""
        found = {}
        for path in [self.root, *sorted(self.root.rglob("*"))]:
            info = path.lstat()
            times = (info.st_mode, info.st_mtime_ns, info.st_ctime_ns)
            found[str(path)] = (*times, path.read_bytes() if path.is_file() else b"")
        return found

    def copies(self) -> list[Path]:
        """Copies of the project that are left."""
        return list(self.temporary.rglob("run_gate.py"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The softmax of the test data with all gates beside it."""
    folder = tmp_path_factory.mktemp("misbehaving")
    root, temporary = folder / "team", folder / "tmp"
    root.mkdir()
    temporary.mkdir()
    for path in TESTDATA.glob("*.py"):
        if path.name.startswith(("gate_", "run_gate", "kernels_softmax")):
            shutil.copy2(path, root)
    tables = ['[subject.softmax]\noperation = "softmax"\nentry = "kernels_softmax:softmax"\n']
    for name in (*CALLABLES, "flaky", "always_rejects"):
        tables.append(
            f'[gate.{name}]\nkind = "callable"\ncallable = "gate_{name}:gate"\nbaseline_runs = 2\n'
        )
    tables += [
        f'[gate.{name}]\nkind = "command"\nbaseline_runs = 1\n{lines}\n'
        for name, lines in COMMANDS.items()
    ]
    (root / "gatecert.toml").write_text("\n".join(tables))
    return Project(root, temporary, f"{os.getpid()}-{time.monotonic_ns()}")


@pytest.fixture(scope="module")
def mutants() -> dict[str, str]:
    """Ids of the two mutants by operator."""
    path = TESTDATA / "kernels_softmax.py"
    text = path.read_text()
    (kernel,) = find_kernels("kernels_softmax", str(path), text)[0]
    operators = [get_operator(name.partition(".")[0]) for name in (WRONG, HARMLESS)]
    ids = [mutant.id for mutant in plant("softmax", kernel, text, operators)]
    return {name: next(id for id in ids if f"/{name}/" in id) for name in (WRONG, HARMLESS)}


@pytest.fixture(scope="module")
def results(project: Project, mutants: dict[str, str]) -> Iterator[dict[str, dict[str, Any]]]:
    """What one run of all gates on both mutants said, by gate and operator."""
    before = project.state()
    gates = [f"--gate={name}" for name in (*CALLABLES, *COMMANDS)]
    only = [f"--only={id}" for id in mutants.values()]
    code, stderr = project.run("certify", *gates, *only)
    assert code == ExitCode.MET, stderr
    assert project.state() == before
    assert _marked(project.mark) == []
    assert _sleepers() == []
    assert list(project.temporary.iterdir()) == []
    assert "gate 'writes_files': it changes files" in stderr
    assert "gate 'forks_in_a_script': a fresh process for each candidate" in stderr
    found = json.loads((project.root.parent / "out" / "certificate-r1.json").read_text())["results"]
    yield {
        gate: {name: found[id][gate] for name, id in mutants.items()}
        for gate in (*CALLABLES, *COMMANDS)
    }


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("gate", "on_the_wrong_one", "on_the_harmless_one"),
    [
        ("always_accepts", "survived", "survived"),
        ("warns_only", "survived", "survived"),
        ("segfaults", "crashed", "survived"),
        ("runs_out_of_memory", "inconclusive", "survived"),
        ("forks_children", "killed", "survived"),
        ("changes_directory", "killed", "survived"),
        ("writes_files", "killed", "survived"),
        ("seeds_from_time", "killed", "survived"),
        ("hangs_in_a_script", "timeout", "survived"),
        ("prints_nothing", "inconclusive", "survived"),
        ("litters_in_a_script", "killed", "survived"),
        ("forks_in_a_script", "killed", "survived"),
    ],
)
def test_a_misbehaving_gate_gets_the_right_status(
    results: dict[str, dict[str, Any]], gate: str, on_the_wrong_one: str, on_the_harmless_one: str
) -> None:
    said = results[gate]
    assert said[WRONG]["status"] == on_the_wrong_one, said
    assert said[HARMLESS]["status"] == on_the_harmless_one, said


@pytest.mark.parametrize(
    ("gate", "code", "says"),
    [
        ("flaky", ExitCode.ENVIRONMENT_FAILED, "gate 'flaky' is flaky: 2 runs on the original"),
        ("always_rejects", ExitCode.CONTROL_REJECTED, ""),
    ],
)
def test_a_gate_that_cannot_be_trusted_on_the_original_is_refused(
    project: Project, mutants: dict[str, str], gate: str, code: ExitCode, says: str
) -> None:
    before = project.state()
    found, stderr = project.run("certify", f"--gate={gate}", f"--only={mutants[WRONG]}")
    assert (found, says in stderr) == (code, True), stderr
    assert project.state() == before


def test_a_gate_that_cannot_be_trusted_is_left_out_where_it_stands_beside(
    project: Project, mutants: dict[str, str]
) -> None:
    gates = ("--gate=always_accepts", "--gate=flaky", "--no-oracle")
    found, stderr = project.run("certify", *gates, f"--only={mutants[WRONG]}")
    assert found == ExitCode.MET, stderr
    assert "gate 'flaky' is left out, which stands beside only: gate 'flaky' is flaky" in stderr


def test_a_kill_leaves_no_process_no_copy_and_the_tree_as_it_was(
    project: Project, mutants: dict[str, str]
) -> None:
    before = project.state()
    only = [f"--only={id}" for id in mutants.values()]
    gates = [f"--gate={name}" for name in ("forks_children", "litters_in_a_script")]
    run = project.command("certify", *gates, *only, "--fresh")
    _wait(lambda: run.poll() is not None or bool(_sleepers() and project.copies()))
    assert run.poll() is None, run.communicate()[1]
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    _wait(lambda: not _marked(project.mark) and not _sleepers())
    assert project.copies() == []
    assert project.state() == before


def _sleepers() -> list[int]:
    """Daemons of the gate that forks: one of them has no mark in its environment."""
    wanted, found = f"sleep\0{DAEMONS_SLEEP_S}\0".encode(), []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if (folder / "cmdline").read_bytes().endswith(wanted):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found
