"""Claims about suites that test where gatecert does not look: nothing false is said of mutants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.suite.deeds import Deed, deeds_noted
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.protocol import GateRef, Judged, ShardRequest, Task
from tests.gatecert.gates.asking import TESTDATA, WRONG, Judge
from tests.gatecert.gates.suites import KERNEL, TESTS, judge_project, write

CHECK = """
import torch

def check(softmax):
    x = torch.linspace(-3, 3, 10).reshape(2, 5) - 80.0
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=1))
"""
SMOKE = """
def test_smoke():
    assert softmax(torch.zeros(2, 3)).shape == (2, 3)
"""


def suite(folder: Path, text: str) -> GateConfig:
    """A suite on the softmax of the test data."""
    imports = "import torch\nfrom kernels_softmax import softmax\n"
    write(folder, {"test_it.py": imports + CHECK + text})
    return GateConfig("pytest", ("test_it.py",), rootdir=str(folder), baseline_runs=2)


@pytest.mark.parametrize(
    "text",
    [
        """
def test_in_a_fresh_context():
    import contextvars
    contextvars.Context().run(check, softmax)
""",
        """
def test_in_a_thread():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(2) as pool:
        pool.submit(check, softmax).result()
""",
    ],
)
def test_a_test_that_launches_in_a_context_or_thread_of_its_own_judges(
    judge: Judge, tmp_path: Path, text: str
) -> None:
    gate = suite(tmp_path, text + SMOKE)
    kernels = ("kernels_softmax:softmax_kernel",)
    original = judge("tests", gate)
    assert original.baseline is not None
    assert all(test.kernels == kernels for test in original.baseline.tests)
    verdict = judge("tests", gate, files=WRONG, kernels=kernels)
    assert verdict.outcome is GateOutcome.REJECTED


def test_what_a_test_does_out_of_sight_is_known_of_it(judge: Judge, tmp_path: Path) -> None:
    text = """
import inspect, multiprocessing, subprocess
import kernels_softmax

def test_forks():
    child = multiprocessing.get_context("fork").Process(target=check, args=(softmax,))
    child.start()
    child.join()
    assert child.exitcode == 0

def test_asks_git():
    subprocess.run(["git", "--version"], check=False)

def test_reads():
    assert "softmax" in inspect.getsource(kernels_softmax)
"""
    verdict = judge("tests", suite(tmp_path, text + SMOKE))
    assert verdict.baseline is not None
    tests = {test.nodeid.partition("::")[2]: test for test in verdict.baseline.tests}
    assert [name for name, test in tests.items() if test.starts] == ["test_forks"]
    sources = {name: test.sources for name, test in tests.items() if test.sources}
    assert sources == {"test_reads": (str(TESTDATA / "kernels_softmax.py"),)}


def mutants_of(judge: Judge, folder: Path, text: str) -> list[Verdict]:
    """Verdicts on the mutants of a kernel by a suite that also launches another one."""
    files = {
        "kernels.py": KERNEL,
        "others.py": KERNEL,
        "test_softmax.py": f"from others import softmax\n{TESTS}{CHECK}{text}",
    }
    outcome = judge_project(judge.server, write(folder, files), "kernels:softmax")
    return outcome.of(CandidateKind.MUTANT)


def test_a_mutant_whose_source_a_test_copies_and_runs_is_inconclusive(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
import types
from pathlib import Path

def test_specialised(tmp_path):
    import kernels
    copy = tmp_path / "made.py"
    copy.write_text(Path(kernels.__file__).read_text())
    made = types.ModuleType("made")
    made.__file__ = str(copy)
    exec(compile(copy.read_text(), str(copy), "exec"), made.__dict__)
    check(made.softmax)
"""
    mutants = mutants_of(judge, tmp_path, text)
    assert {verdict.outcome for verdict in mutants} == {GateOutcome.ERROR}
    assert {verdict.detail for verdict in mutants} == {
        "no test launches kernels:softmax_kernel in sight; test_softmax.py::test_specialised reads "
        "its source text and launches kernels that are not in that file, so that they may test a "
        "copy without the mutant"
    }


def test_a_mutant_that_only_other_processes_may_test_is_inconclusive(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
def test_in_a_process():
    import multiprocessing
    from kernels import softmax
    child = multiprocessing.get_context("fork").Process(target=check, args=(softmax,))
    child.start()
    child.join()
    assert child.exitcode == 0
"""
    mutants = mutants_of(judge, tmp_path, text)
    assert {verdict.outcome for verdict in mutants} == {GateOutcome.ERROR}
    assert {verdict.detail for verdict in mutants} == {
        "no test launches kernels:softmax_kernel in sight; test_softmax.py::test_in_a_process "
        "starts processes, whose launches are not seen"
    }


def test_a_module_that_a_test_wrote_and_left_behind_is_none_of_the_users(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
import importlib.util, inspect, sys
import kernels
from kernels import softmax

def test_generated(tmp_path):
    copy = tmp_path / "generated.py"
    copy.write_text(inspect.getsource(kernels))
    spec = importlib.util.spec_from_file_location("generated", copy)
    sys.modules["generated"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check(module.softmax)
"""
    files = {"kernels.py": KERNEL, "test_it.py": f"{CHECK}{text}{SMOKE}"}
    folder = write(tmp_path, files)
    outcome = judge_project(judge.server, folder, "kernels:softmax", operation=None)
    assert [kernel.name for kernel in outcome.planned.run.kernels] == ["kernels:softmax_kernel"]
    assert {Path(path).name for path in outcome.planned.sources} == {"kernels.py", "test_it.py"}


def test_without_an_operation_a_subject_has_the_kernels_of_its_entry_alone(
    judge: Judge, tmp_path: Path
) -> None:
    files = {
        "kernels.py": KERNEL,
        "others.py": KERNEL.replace("softmax_kernel", "other_kernel"),
        "test_it.py": "import kernels, others\n"
        f"{CHECK}\n"
        "def test_kernels():\n    check(kernels.softmax)\n\n"
        "def test_others():\n    check(others.softmax)\n",
    }
    folder = write(tmp_path, files)
    outcome = judge_project(judge.server, folder, "kernels:softmax", operation=None)
    run = outcome.planned.run
    assert [kernel.name for kernel in run.kernels] == ["kernels:softmax_kernel"]
    assert {launcher.module for launcher in run.launchers} == {"kernels"}
    assert [skip.reason for skip in run.skipped] == [
        "not launched by kernels:softmax under the gate"
    ]


def test_a_test_whose_parameter_is_a_path_of_the_project_judges(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
import pathlib, pytest
from kernels import softmax

CASE = pathlib.Path(__file__).parent / "case.txt"

@pytest.mark.parametrize("case", [CASE], ids=str)
def test_softmax(case):
    assert case.read_text() == "1"
    check(softmax)
"""
    files = {"kernels.py": KERNEL, "case.txt": "1", "test_it.py": CHECK + text}
    folder = write(tmp_path, files)
    outcome = judge_project(judge.server, folder, "kernels:softmax", operation=None)
    known = outcome.original.baseline
    assert known is not None
    assert [test.nodeid for test in known.tests] == [f"test_it.py::test_softmax[{folder}/case.txt]"]
    # The next request has another private copy of the project, and the same baseline.
    candidate = Candidate(
        *("wrong", CandidateKind.MUTANT, "softmax"),
        {str(folder / "kernels.py"): KERNEL.replace("x / tl.sum(x, axis=0)", "x * 0.0")},
        kernels=("kernels:softmax_kernel",),
    )
    request = ShardRequest(
        outcome.planned.run.subject,
        gates=(GateRef("tests", str(folder), GateConfig("pytest", ("test_it.py",))),),
        tasks=(Task(candidate, "tests"),),
        originals={"tests": outcome.original},
        baselines={"tests": known},
    )
    (said,) = [event.verdict for event in judge.server.ask(request) if isinstance(event, Judged)]
    assert said.outcome is GateOutcome.REJECTED, said.detail


def test_only_what_the_users_code_reads_or_starts_is_noted(tmp_path: Path) -> None:
    """An import reads a file, too, and so does a library that asks for its source."""
    path = tmp_path / "user.py"
    path.write_text(
        "import importlib.util, subprocess, sys\n"
        "def read():\n    open(__file__).close()\n"
        "def start():\n    subprocess.run([sys.executable, '-c', ''])\n"
        "def load():\n"
        "    spec = importlib.util.spec_from_file_location('user_again', __file__)\n"
        "    spec.loader.exec_module(importlib.util.module_from_spec(spec))\n"
    )
    module: dict[str, object] = {"__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), module)
    deeds: list[Deed] = []
    with deeds_noted(deeds.append):
        path.read_text()
        module["load"]()  # type: ignore[operator]
        assert deeds == [Deed(str(path))]  # by this test, which is no library
        deeds.clear()
        module["read"]()  # type: ignore[operator]
        module["start"]()  # type: ignore[operator]
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert deeds == [Deed(str(path)), Deed()]
