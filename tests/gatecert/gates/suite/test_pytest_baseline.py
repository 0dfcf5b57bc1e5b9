"""Claims about a suite on the original: what can be relied on, and what it launches."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from gatecert.errors import ExitCode
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome
from gatecert.gates.suite.records import Ending, KnownTest
from tests.gatecert.gates.asking import TESTDATA, WRONG, Judge, Refused

HEAD = """
import pathlib
import pytest
import torch
from kernels_softmax import softmax

def sums_to_one(rows):
    return bool((softmax(torch.zeros(rows, 4)).sum(dim=1) == 1.0).all())
"""
FLAKY = """
def test_sound():
    assert sums_to_one(2)

def test_every_other_run():
    times = len(COUNT.read_text())
    COUNT.write_text("x" * (times + 1))
    assert sums_to_one(1)
    assert times != 1, "not this time"
"""


def suite(folder: Path, text: str, *args: str, runs: int = 3, head: str = HEAD) -> GateConfig:
    """A gate of one test file; `COUNT` is an empty file outside of the project."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    (folder / "count").write_text("")
    count = f"COUNT = pathlib.Path({str(folder / 'count')!r})\n"
    text = textwrap.dedent(head) + count + textwrap.dedent(text)
    (project / "test_softmax.py").write_text(text)
    return GateConfig("pytest", args, rootdir=str(project), baseline_runs=runs)


def known(judge: Judge, gate: GateConfig, module: str = "kernels_softmax") -> dict[str, KnownTest]:
    """What is known of the tests of a suite, by their names."""
    verdict = judge("tests", gate, module=module)
    assert verdict.baseline is not None
    return {test.nodeid.rpartition("::")[2]: test for test in verdict.baseline.tests}


def test_a_flaky_test_is_named_and_set_aside_and_kills_nothing(
    judge: Judge, tmp_path: Path
) -> None:
    verdict = judge("tests", suite(tmp_path, FLAKY))
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.baseline is not None
    assert verdict.baseline.notes() == (
        "test_softmax.py::test_every_other_run set aside: passed 2 of 3 runs on the original "
        "(1 failed)",
    )
    wrong = judge("tests", suite(tmp_path, FLAKY), files=WRONG, stop_at_first=False)
    assert (wrong.case, wrong.cases) == ("test_softmax.py::test_sound", 1)


def test_a_single_run_finds_no_flake_and_is_allowed(judge: Judge, tmp_path: Path) -> None:
    tests = known(judge, suite(tmp_path, FLAKY, runs=1))
    assert {test.endings for test in tests.values()} == {(Ending.PASSED,)}


def test_a_suite_that_is_flaky_throughout_is_refused(judge: Judge, tmp_path: Path) -> None:
    text = FLAKY.replace("def test_sound():\n    assert sums_to_one(2)", "def test_none(): pass")
    with pytest.raises(Refused, match="no test that launches a kernel can be relied on") as said:
        judge("tests", suite(tmp_path, text))
    assert said.value.exit_code is ExitCode.ENVIRONMENT_FAILED


def test_a_test_whose_name_changes_from_run_to_run_is_set_aside(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
        COUNT.write_text(COUNT.read_text() + "x")

        @pytest.mark.parametrize("seed", [len(COUNT.read_text())])
        def test_seeded(seed):
            assert sums_to_one(1)

        def test_sound():
            assert sums_to_one(2)
        """
    tests = known(judge, suite(tmp_path, text))
    assert tests["test_seeded[1]"].reason == ("passed 1 of 3 runs on the original (2 absent)")
    assert tests["test_sound"].reason == ""


def test_a_test_that_needs_another_before_it_is_set_aside(judge: Judge, tmp_path: Path) -> None:
    text = """
        STATE = []

        def test_dear_one_first():
            STATE.append(sums_to_one(5))

        def test_cheap_one_that_needs_it():
            assert sums_to_one(1) and STATE
        """
    tests = known(judge, suite(tmp_path, text))
    reason = tests["test_cheap_one_that_needs_it"].reason
    assert reason.startswith("passed 1 of 3 runs on the original (2 failed)")
    assert reason.endswith("it may depend on the tests that run before it, or on chance")
    assert tests["test_dear_one_first"].reason == ""


TWO_KERNELS = """
import triton
import triton.language as tl

@triton.jit
def one_kernel(y_ptr):
    tl.store(y_ptr, 1.0)

@triton.jit
def two_kernel(y_ptr):
    tl.store(y_ptr, 2.0)

def softmax(x, kernel=one_kernel):
    y = x.new_empty(1)
    kernel[(1,)](y)
    return y
"""


@pytest.fixture
def two_kernels(tmp_path: Path) -> str:
    """A project with two kernels, for tests that come after `from two import *`."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "two.py").write_text(TWO_KERNELS)
    return "import pathlib\nimport pytest\nimport torch\nfrom two import *\n\n"


def test_a_test_that_needs_one_of_another_kernel_is_set_aside(
    judge: Judge, tmp_path: Path, two_kernels: str
) -> None:
    text = """
        STATE = []

        def test_one():
            STATE.append(float(softmax(torch.zeros(1))))

        def test_two():
            assert float(softmax(torch.zeros(1), two_kernel)) == 2.0 and STATE
        """
    tests = known(judge, suite(tmp_path, text, head=two_kernels))
    assert tests["test_one"].reason == ""
    assert tests["test_two"].endings == (Ending.PASSED,) * 3 + (Ending.FAILED,)
    assert tests["test_two"].reason == "passed 3 of 4 runs on the original (1 failed)"


def test_what_a_test_shares_with_one_that_launches_judges_too(judge: Judge, tmp_path: Path) -> None:
    text = """
        import functools
        SUM = []

        @functools.lru_cache
        def result():
            return softmax(torch.zeros(2, 4))

        def test_shape():
            assert result().shape == (2, 4)
            SUM.append(float(result().sum()))

        def test_values():
            assert float(result().sum()) == 2.0

        def test_sum():
            assert SUM == [2.0]
        """
    gate = suite(tmp_path, text)
    tests = known(judge, gate)
    launches = ("kernels_softmax:softmax_kernel",)
    assert {name: (test.kernels, test.leans, test.reason) for name, test in tests.items()} == {
        "test_shape": (launches, False, ""),
        "test_values": (launches, False, ""),
        "test_sum": ((), True, ""),
    }
    wrong = judge("tests", gate, files=WRONG, kernels=launches, stop_at_first=False)
    assert (wrong.outcome, wrong.cases) == (GateOutcome.REJECTED, 3)


def test_a_choice_that_does_not_hold_on_the_original_judges_nobody(
    judge: Judge, tmp_path: Path, two_kernels: str
) -> None:
    text = """
        def test_one_leaves_its_type():
            torch.set_default_dtype(torch.float64)
            assert float(softmax(torch.zeros(1), one_kernel)) == 1.0

        def test_type_is_reset():
            torch.set_default_dtype(torch.float32)
            assert float(softmax(torch.zeros(1), three_kernel)) == 3.0

        def test_two_wants_the_usual_type():
            assert softmax(torch.zeros(1), two_kernel).dtype == torch.float32
        """
    third = TWO_KERNELS[TWO_KERNELS.index("@triton") : TWO_KERNELS.index("@triton.jit\ndef two")]
    third = third.replace("one", "three").replace("1.0", "3.0")
    (tmp_path / "project" / "three.py").write_text(
        "import triton\nimport triton.language as tl\n\n" + third
    )
    gate = suite(
        tmp_path,
        text,
        head=two_kernels + "import kernels_softmax\nfrom three import three_kernel\n",
    )
    both = ("two:one_kernel", "two:two_kernel")
    # What runs is the original: any kill is false.
    same = {"kernels_softmax.py": (TESTDATA / "kernels_softmax.py").read_text()}
    verdict = judge("tests", gate, files=same, kernels=both, stop_at_first=False)
    assert verdict.outcome is not GateOutcome.REJECTED, verdict.detail
    assert verdict.detail == "3 passed"


CHANCE = """
import random
import numpy

def test_always():
    assert sums_to_one(1)

def test_seldom():
    numbers = random.random(), float(numpy.random.rand()), float(torch.rand(()))
    with COUNT.open("a") as file:
        file.write(f"{numbers}\\n")
    assert sums_to_one(1)
"""


def test_every_run_on_the_original_has_other_chances_and_every_candidate_the_same(
    judge: Judge, tmp_path: Path
) -> None:
    gate = suite(tmp_path, CHANCE)
    judge("tests", gate)
    drawn = (tmp_path / "count").read_text().splitlines()
    # Three whole runs, and the original as a candidate.
    assert len(drawn) == 4
    assert len(set(drawn)) == 3
    assert drawn[3] == drawn[2]
    judge("tests", gate)
    assert (tmp_path / "count").read_text().splitlines()[4:] == drawn


def test_hypothesis_draws_the_same_examples_for_every_candidate(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
        from hypothesis import given, settings, strategies

        @settings(max_examples=3, deadline=None)
        @given(strategies.floats())
        def test_property(number):
            with COUNT.open("a") as file:
                file.write(f"{number} ")
            assert sums_to_one(1)
        """
    gate = suite(tmp_path, text, runs=1)
    for _ in range(2):
        with (tmp_path / "count").open("a") as file:
            file.write("\n")
        judge("tests", gate)
    first, second = (tmp_path / "count").read_text().splitlines()[1:]
    assert first == second
    drawn = first.split()
    assert drawn[: len(drawn) // 2] == drawn[len(drawn) // 2 :]


def test_kernels_programs_and_launches_are_known_of_every_test(
    judge: Judge, tmp_path: Path, two_kernels: str
) -> None:
    text = """
        @pytest.fixture(scope="module")
        def reference():
            return softmax(torch.zeros(1), two_kernel)

        @pytest.mark.parametrize("times", [1, 2])
        def test_one(reference, times):
            for _ in range(times):
                assert float(softmax(torch.zeros(1))) == 1.0

        def test_both():
            assert float(softmax(torch.zeros(1)) + softmax(torch.zeros(1), two_kernel)) == 3.0

        def test_none():
            assert torch.ones(1).sum() == 1.0
        """
    tests = known(judge, suite(tmp_path, text, head=two_kernels))
    kernels = {name: test.kernels for name, test in tests.items()}
    both = ("two:one_kernel", "two:two_kernel")
    assert kernels == {"test_one[1]": both, "test_one[2]": both, "test_both": both, "test_none": ()}
    figures = {name: (test.programs, test.launches) for name, test in tests.items()}
    assert figures["test_one[1]"] == (1, 1)
    assert figures["test_one[2]"] == (2, 1)
    assert figures["test_both"] == (2, 2)


def test_a_fixture_of_the_module_is_set_up_once_in_the_order_of_judging(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
        @pytest.fixture(scope="module")
        def reference():
            COUNT.write_text(COUNT.read_text() + "x")
            return 1.0

        def test_dear(reference):
            assert sums_to_one(5)

        def test_cheap(reference):
            assert sums_to_one(1)

        def test_last(reference):
            assert COUNT.read_text().count("x") <= 4
        """
    gate = suite(tmp_path, text)
    (tmp_path / "project" / "test_other.py").write_text(
        HEAD + "\n\ndef test_between():\n    assert sums_to_one(2)\n"
    )
    assert judge("tests", gate).outcome is GateOutcome.ACCEPTED
    # Three whole runs, one of the test that launches nothing, one of those that launch, and the
    # original as a candidate.
    assert (tmp_path / "count").read_text() == "x" * 6


def test_the_message_of_a_failing_suite_is_short_and_says_what_to_do(
    judge: Judge, tmp_path: Path
) -> None:
    text = """
        @pytest.mark.parametrize("number", range(60))
        def test_wrong(number):
            print("a line of output\\n" * 20)
            assert number == 3, f"number {number} is wrong"
        """
    with pytest.raises(Refused) as said:
        judge("tests", suite(tmp_path, text))
    first, *log = said.value.message.splitlines()
    assert first == (
        "gate 'tests' does not pass on the original: call of test_softmax.py::test_wrong[0] "
        "failed in all 3 runs: AssertionError: number 0 is wrong; mend it, or add "
        '"--deselect=test_softmax.py::test_wrong[0]" to args in gatecert.toml '
        "(58 more tests fail as well)"
    )
    assert len(log) <= 15
    assert max(map(len, log)) <= 200


def test_a_suite_that_stops_at_its_first_failure_still_shows_all_its_tests(
    judge: Judge, tmp_path: Path
) -> None:
    tests = known(judge, suite(tmp_path, FLAKY, "-x"))
    assert tests["test_every_other_run"].endings.count(Ending.PASSED) == 2
    assert tests["test_sound"].reason == ""
