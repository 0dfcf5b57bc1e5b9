"""Claims about the pytest gate: only a failed call is a kill, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.errors import ExitCode, UsageError
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason
from gatecert.gates.suite.gate import PytestGate
from gatecert.lanes.records import FindingKind
from tests.gatecert.gates.asking import (
    TESTDATA,
    UNRUNNABLE,
    WRONG,
    Judge,
    Refused,
    left_unwritten,
    mutated,
    pytest_gate,
)


def test_a_right_kernel_is_accepted(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_compares"))
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.detail == "3 passed"
    assert verdict.cases == 3


def test_a_failed_test_is_a_rejection_that_names_it(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_compares"), files=WRONG)
    assert (verdict.outcome, verdict.reason) == (GateOutcome.REJECTED, Reason.TEST_FAILED)
    assert verdict.case == "gate_compares.py::test_softmax[1]"
    assert verdict.detail == "AssertionError: not a softmax"
    assert verdict.loaded


@pytest.mark.parametrize(("stop", "cases"), [(True, 1), (False, 3)])
def test_the_first_failure_ends_the_session_only_where_asked(
    judge: Judge, stop: bool, cases: int
) -> None:
    verdict = judge("tests", pytest_gate("gate_compares"), files=WRONG, stop_at_first=stop)
    assert verdict.cases == cases


def test_an_error_of_the_interpreter_is_never_a_kill(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_compares"), files=UNRUNNABLE)
    assert verdict.outcome is GateOutcome.ERROR
    assert "no_such_function" in verdict.detail


def test_an_error_of_the_lane_does_not_hide_a_failure_that_comes_later(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_fails_at_the_lane_first"), files=WRONG)
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.case.endswith("::test_compares")


def test_a_failure_of_the_lane_that_the_launcher_caught_is_no_verdict(judge: Judge) -> None:
    files = {"kernels_softmax.py": (TESTDATA / "kernels_fall_back.py").read_text()}
    verdict = judge("tests", pytest_gate("gate_compares"), files=files)
    assert verdict.outcome is GateOutcome.ERROR
    assert verdict.detail.startswith("call of gate_compares.py::test_softmax[1]: ")
    assert "inline assembly cannot run" in verdict.detail


def test_a_suite_whose_launcher_falls_back_on_the_original_is_refused(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "test_softmax.py").write_text(
        "import kernels_fall_back, torch\n\n\n"
        "def test_rows_sum_to_one():\n"
        "    assert float(kernels_fall_back.softmax(torch.zeros(1, 4)).sum()) == 1.0\n"
    )
    with pytest.raises(Refused, match="inline assembly cannot run"):
        judge("tests", GateConfig("pytest", rootdir=str(tmp_path)), module="kernels_fall_back")


def test_a_test_that_fails_because_it_caught_a_failure_of_the_lane_is_no_kill(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "test_softmax.py").write_text(
        "import kernels_softmax, torch\n\n\n"
        "def test_runs():\n"
        "    try:\n        kernels_softmax.softmax(torch.zeros(1, 4))\n        ran = True\n"
        "    except Exception:\n        ran = False\n"
        "    assert ran\n"
    )
    gate = GateConfig("pytest", rootdir=str(tmp_path))
    assert judge("tests", gate, files=UNRUNNABLE).outcome is GateOutcome.ERROR


def test_a_mutant_that_does_not_import_is_no_kill(judge: Judge) -> None:
    files = mutated("@triton.jit", "raise ImportError('no such driver')\n\n\n@triton.jit")
    verdict = judge("tests", pytest_gate("gate_compares"), files=files)
    assert verdict.outcome is GateOutcome.ERROR
    assert verdict.detail.startswith("collection of gate_compares.py: ")


def test_warnings_do_not_decide_and_are_counted(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_warns_only"), files=WRONG)
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert verdict.detail == "1 passed, 2 warnings"


def test_a_suite_that_always_accepts_accepts_a_wrong_kernel(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_always_accepts"), files=WRONG)
    assert verdict.outcome is GateOutcome.ACCEPTED


def test_a_suite_that_hangs_on_a_mutant_is_a_timeout(judge: Judge) -> None:
    verdict = judge("tests", pytest_gate("gate_hangs"), files=WRONG, limit_s=4.0)
    assert verdict.outcome is GateOutcome.TIMEOUT


def test_guards_report_and_do_not_decide(judge: Judge) -> None:
    text = (TESTDATA / "kernels_out_of_bounds.py").read_text()
    verdict = judge("tests", pytest_gate("gate_compares"), files={"kernels_softmax.py": text})
    assert verdict.outcome is GateOutcome.ACCEPTED
    assert {finding.kind for finding in verdict.findings} == {FindingKind.STORE_OUT_OF_BOUNDS}


def test_workers_of_xdist_are_not_used_since_they_would_not_see_the_overlay(judge: Judge) -> None:
    pytest.importorskip("xdist")
    verdict = judge("tests", pytest_gate("gate_compares", "-n", "2"), files=WRONG)
    assert verdict.outcome is GateOutcome.REJECTED


@pytest.mark.parametrize(
    ("config", "code", "says"),
    [
        (pytest_gate("gate_always_rejects"), 4, "this gate never says yes"),
        (pytest_gate("gate_raises"), 4, "setup of gate_raises.py::test_needs_the_reference"),
        (pytest_gate("gate_dies"), 4, "the tests ended their process by signal 11"),
        (
            pytest_gate("gate_skips_everything"),
            5,
            "1 skipped, the first because 'needs eight GPUs'",
        ),
        (pytest_gate("gate_collects_nothing"), 1, "selects no test"),
        (pytest_gate("gate_compares", "-k", "absent"), 1, "selects no test"),
        (pytest_gate("gate_comparess"), 1, "did you mean gate_compares.py?"),
        (GateConfig("pytest", ("-q", "absent/test_x.py::test_it")), 1, "'absent/test_x.py'"),
        (pytest_gate("gate_compares", "--no-such-option"), 1, "unrecognized arguments"),
        (GateConfig("pytest", rootdir="absent"), 1, "is not a folder"),
    ],
)
def test_a_suite_that_does_not_pass_on_the_original_is_refused_and_says_why(
    judge: Judge, config: GateConfig, code: int, says: str
) -> None:
    with pytest.raises(Refused) as refused:
        judge("tests", config)
    assert refused.value.exit_code == ExitCode(code)
    assert says in refused.value.message


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "absent or other", "-m", "gpu", "-p", "no:warnings", "gate_compares.py"),
        ("-q", "gate_compares.py::test_softmax[1]", "--deselect", "absent.py::test_it"),
        ("--pyargs", "acme.tests"),
        ("-x", "-vv", "--durations", "5", "--rootdir=absent", "@arguments.txt"),
        (),
    ],
)
def test_what_follows_an_option_is_not_taken_for_a_path(args: tuple[str, ...]) -> None:
    assert PytestGate("tests", args, TESTDATA).args == args


@pytest.mark.parametrize("args", [("-q", "absent.py"), ("-xvs", "absent"), ("-n=2", "absent.py")])
def test_a_path_that_does_not_exist_is_refused_at_once(args: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="args name 'absent"):
        PytestGate("tests", args, TESTDATA)


def test_nothing_is_written_into_the_users_tree(judge: Judge) -> None:
    before = sorted(TESTDATA.rglob("*"))
    judge("tests", pytest_gate("gate_compares"), files=WRONG)
    assert sorted(TESTDATA.rglob("*")) == before


def test_hypothesis_passes_nothing_from_one_mutant_to_the_next(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "test_softmax.py").write_text(
        "import kernels_softmax, torch\n"
        "from hypothesis import given, settings, strategies as st\n\n\n"
        "@settings(max_examples=3, deadline=None)\n"
        "@given(st.integers(1, 9))\n"
        "def test_rows_sum_to_one(n):\n"
        "    assert float(kernels_softmax.softmax(torch.zeros(1, n)).sum()) > 0.99\n"
    )
    verdict = judge("tests", GateConfig("pytest", rootdir=str(tmp_path)), files=WRONG)
    assert verdict.outcome is GateOutcome.REJECTED
    assert [path.name for path in tmp_path.iterdir()] == ["test_softmax.py"]


def test_output_left_unwritten_gets_the_same_verdict_in_every_process(judge: Judge) -> None:
    """Freed memory that holds the process's own number would show in what the test prints."""
    files = left_unwritten()
    first, second = (
        judge("tests", pytest_gate("gate_tells_its_sum"), files=files) for _ in range(2)
    )
    assert first.outcome is GateOutcome.REJECTED
    assert first.detail == second.detail != ""
