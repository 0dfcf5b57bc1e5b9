"""Claims about outcomes: each is told apart, and only a failed call is a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.evidence import TestTally
from gatecert.gates.records import GateOutcome
from tests.gatecert.gates.asking import WRONG, Judge
from tests.gatecert.gates.suite.test_pytest_baseline import suite

MIXED = """
def test_passes():
    assert sums_to_one(1)

@pytest.mark.skip(reason="not today")
def test_is_skipped():
    assert False

@pytest.mark.xfail(reason="known", strict=True)
def test_fails_as_expected():
    assert not sums_to_one(1)

@pytest.mark.xfail(reason="was known")
def test_passes_unexpectedly():
    assert sums_to_one(2)

def test_is_left_out():
    assert False
"""


def test_every_outcome_is_counted_by_itself(judge: Judge, tmp_path: Path) -> None:
    verdict = judge("tests", suite(tmp_path, MIXED, "--deselect=test_softmax.py::test_is_left_out"))
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.evidence is not None
    # The skipped one launches nothing, so it has nothing to say of the original either.
    assert verdict.evidence.tally == TestTally(passed=1, xfailed=1, xpassed=1, deselected=2)
    assert verdict.detail == "1 passed, 1 xfailed, 1 xpassed"


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("assert sums_to_one(1)", GateOutcome.REJECTED),
        ("if not sums_to_one(1): raise ValueError('no')", GateOutcome.REJECTED),
        ("if not sums_to_one(1): pytest.fail('no')", GateOutcome.REJECTED),
        ("if not sums_to_one(1): pytest.skip('no')", GateOutcome.ERROR),
        ("if not sums_to_one(1): pytest.xfail('no')", GateOutcome.ERROR),
        ("if not sums_to_one(1): raise ImportError('no')", GateOutcome.ERROR),
        ("if not sums_to_one(1): raise KeyboardInterrupt", GateOutcome.ERROR),
        ("if not sums_to_one(1): pytest.exit('no')", GateOutcome.ERROR),
        ("if not sums_to_one(1): import os; os._exit(1)", GateOutcome.CRASHED),
        ("if not sums_to_one(1): import os; os.abort()", GateOutcome.CRASHED),
        ("if not sums_to_one(1): import warnings; warnings.warn('no')", GateOutcome.ACCEPTED),
    ],
)
def test_only_a_failed_call_is_a_kill(
    judge: Judge, tmp_path: Path, body: str, outcome: GateOutcome
) -> None:
    gate = suite(tmp_path, f"def test_it():\n    {body}\n", runs=1)
    assert judge("tests", gate, files=WRONG).outcome is outcome


@pytest.mark.parametrize("where", ["set-up", "tear-down"])
def test_a_fixture_that_fails_is_no_kill(judge: Judge, tmp_path: Path, where: str) -> None:
    text = """
        @pytest.fixture
        def checked():
            assert WHERE != "set-up" or sums_to_one(1)
            yield
            assert WHERE != "tear-down" or sums_to_one(1)

        def test_it(checked):
            sums_to_one(1)
        """
    verdict = judge("tests", suite(tmp_path, text.replace("WHERE", repr(where))), files=WRONG)
    assert verdict.outcome is GateOutcome.ERROR
    assert verdict.detail.startswith(where.replace("-", ""))


@pytest.mark.parametrize(
    ("strict", "outcome"), [("True", GateOutcome.REJECTED), ("False", GateOutcome.ACCEPTED)]
)
def test_an_unexpected_pass_is_a_kill_where_pytest_says_failed(
    judge: Judge, tmp_path: Path, strict: str, outcome: GateOutcome
) -> None:
    text = f"""
        def test_launches():
            softmax(torch.zeros(1, 4))

        @pytest.mark.xfail(reason="known", strict={strict})
        def test_it():
            assert not sums_to_one(1)
        """
    assert judge("tests", suite(tmp_path, text), files=WRONG).outcome is outcome


def test_a_test_that_fails_as_its_mark_expects_is_no_kill(judge: Judge, tmp_path: Path) -> None:
    text = """
        def test_launches():
            softmax(torch.zeros(1, 4))

        @pytest.mark.xfail
        def test_it():
            assert sums_to_one(1) and False
        """
    assert judge("tests", suite(tmp_path, text), files=WRONG).outcome is GateOutcome.ACCEPTED


RETRYING = """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for attempt in range(3):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        failed = any(report.failed for report in reports)
        for report in reports:
            if report.failed and attempt < 2:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        if not failed:
            break
    return True
"""


def test_of_a_test_that_is_retried_the_last_run_counts(judge: Judge, tmp_path: Path) -> None:
    text = """
        TRIES = []

        def test_it():
            TRIES.append(sums_to_one(1))
            assert TRIES == [True, True]
        """
    gate = suite(tmp_path, text)
    (tmp_path / "project" / "conftest.py").write_text(RETRYING)
    verdict = judge("tests", gate)
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.baseline is not None
    assert verdict.baseline.notes() == ()
    assert verdict.evidence is not None
    assert verdict.evidence.tally == TestTally(passed=1, reruns=1)
    wrong = judge("tests", gate, files=WRONG)
    assert wrong.outcome is GateOutcome.REJECTED
    assert wrong.cases == 1


def test_a_failed_subtest_is_a_kill(judge: Judge, tmp_path: Path) -> None:
    if "subtests" not in pytest.__dict__ and not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    text = """
        def test_it(subtests):
            for rows in (1, 2):
                with subtests.test(rows=rows):
                    assert sums_to_one(rows)
        """
    verdict = judge("tests", suite(tmp_path, text))
    assert verdict.evidence is not None
    assert verdict.evidence.tally == TestTally(passed=1)
    assert judge("tests", suite(tmp_path, text), files=WRONG).outcome is GateOutcome.REJECTED


def test_a_skipped_subtest_is_no_skipped_test(judge: Judge, tmp_path: Path) -> None:
    if not hasattr(pytest, "Subtests"):
        pytest.skip("this pytest has no subtests")
    text = """
        import pytest

        def test_it(subtests):
            for device in ("cpu", "cuda"):
                with subtests.test(device=device):
                    if device == "cuda":
                        pytest.skip("no GPU")
                    assert sums_to_one(2)
        """
    verdict = judge("tests", suite(tmp_path, text))
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.evidence is not None
    assert verdict.evidence.tally == TestTally(passed=1)
    assert judge("tests", suite(tmp_path, text), files=WRONG).outcome is GateOutcome.REJECTED


COVERAGE = """
import pytest

class Coverage:
    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session):
        result = yield
        session.testsfailed += len(session.items) < 2
        return result

def pytest_configure(config):
    config.pluginmanager.register(Coverage(), "_cov")
"""


def test_coverage_of_a_part_of_the_tests_decides_nothing(judge: Judge, tmp_path: Path) -> None:
    text = """
        def test_launches():
            softmax(torch.zeros(1, 4))

        def test_none():
            pass
        """
    gate = suite(tmp_path, text)
    (tmp_path / "project" / "conftest.py").write_text(COVERAGE)
    assert judge("tests", gate, files=WRONG).outcome is GateOutcome.ACCEPTED


def test_a_test_that_is_slow_is_not_a_test_that_fails(judge: Judge, tmp_path: Path) -> None:
    pytest.importorskip("pytest_timeout")
    text = """
        import time

        @pytest.mark.timeout(0.1)
        def test_it():
            assert sums_to_one(1)
            time.sleep(0.3)
        """
    assert judge("tests", suite(tmp_path, text)).outcome is GateOutcome.ACCEPTED


def test_a_file_without_a_test_to_run_is_not_imported(judge: Judge, tmp_path: Path) -> None:
    gate = suite(tmp_path, "def test_it():\n    assert sums_to_one(1)\n")
    count = tmp_path / "count"
    (tmp_path / "project" / "test_other.py").write_text(
        f"with open({str(count)!r}, 'a') as file:\n    file.write('x')\n\n"
        "def test_none():\n    pass\n"
    )
    assert judge("tests", gate, files=WRONG).outcome is GateOutcome.REJECTED
    assert count.read_text() == "xxxx", "in three whole runs on the original and that of its own"


def test_a_mutant_that_no_test_launches_is_accepted_without_running(
    judge: Judge, tmp_path: Path
) -> None:
    gate = suite(tmp_path, "def test_it():\n    assert sums_to_one(1)\n")
    verdict = judge("tests", gate, files=WRONG, kernels=("kernels_softmax:other_kernel",))
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert (verdict.cases, verdict.launches, verdict.loaded) == (0, 0, True)
    assert verdict.detail == "no test launches kernels_softmax:other_kernel"


def test_hooks_of_the_team_still_decide_what_is_collected(judge: Judge, tmp_path: Path) -> None:
    text = """
        def test_kept():
            assert sums_to_one(1)

        def test_dropped():
            assert False
        """
    gate = suite(tmp_path, text)
    (tmp_path / "project" / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [item for item in items if item.name != 'test_dropped']\n"
    )
    assert judge("tests", gate).outcome is GateOutcome.ACCEPTED
