"""Claims about detection limits: what is planted, what counts as seen, what is said of the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gatecert.campaign import limits
from gatecert.campaign.limits import LimitRow, LimitsRecord, run_limits
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.progress import Silent
from gatecert.errors import EnvironmentFailure
from gatecert.gates.config import GateConfig
from gatecert.gates.records import Verdict
from gatecert.operators.scaled_result import ERRORS, OPERATOR
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from gatecert.store import Scope, recording
from gatecert.subjects import Subject
from tests.gatecert.campaign.answering import Answering, accepts, plan_of, planned, verdict

KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def moments(x_ptr, mean_ptr, var_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    mean = tl.sum(x) / n
    tl.store(mean_ptr, mean)
    tl.store(var_ptr, tl.sum(x * x) / n - mean * mean)
"""
MEAN, VARIANCE = "moments:9", "moments:10"
MOMENTS = Subject("moments", "kernels:moments", "row_moments")
TWO_STORES = planned(MOMENTS, KERNEL, (OPERATOR,))
Says = Callable[[ShardRequest, Task], Verdict]


def error_of(task: Task) -> float:
    """What was planted; 0 in the original."""
    factors = [f"* {1 + error:.10g})" for error in ERRORS]
    text = "".join(task.candidate.files.values())
    found = [error for error, factor in zip(ERRORS, factors, strict=True) if factor in text]
    assert len(found) == bool(text)
    return found[0] if found else 0.0


def beyond(tolerance: float, of_variance: float | None = None) -> Says:
    """A gate that rejects what is off by more than that, in the second store than that other."""

    def says(request: ShardRequest, task: Task) -> Verdict:
        in_variance = "mean * mean) *" in "".join(task.candidate.files.values())
        allowed = of_variance if in_variance and of_variance is not None else tolerance
        return verdict(task, "rejected" if error_of(task) > allowed else "accepted")

    return says


def found(
    patch: pytest.MonkeyPatch,
    folder: Path,
    says: Says,
    *subjects: PlannedSubject,
    gate: GateRef | None = None,
) -> LimitsRecord:
    Answering(says).stands_in(patch, limits, *subjects)
    with recording(folder, Scope("limits")) as stored:
        return run_limits(plan_of(*subjects, gate=gate), stored, Silent())


@pytest.mark.parametrize(
    ("tolerance", "limit"),
    [(0.0, 1e-5), (9e-6, 1e-5), (1.5e-5, 1e-4), (2e-3, 1e-2), (0.05, 0.1), (0.2, None)],
)
def test_the_limit_is_the_smallest_planted_error_beyond_the_tolerance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tolerance: float, limit: float | None
) -> None:
    record = found(monkeypatch, tmp_path, beyond(tolerance), TWO_STORES)
    (row,) = record.rows
    assert (row.subject, row.operation, row.dtype) == ("moments", "row_moments", "float32")
    assert (row.limit, row.why) == (limit, "")
    seen = tuple(error for error in ERRORS if error > tolerance)
    assert row.killed == {MEAN: seen, VARIANCE: seen}


def test_the_store_where_errors_are_seen_worst_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (row,) = found(monkeypatch, tmp_path / "a", beyond(0.0, 2e-4), TWO_STORES).rows
    assert (row.limit, row.store) == (1e-3, VARIANCE)
    (row,) = found(monkeypatch, tmp_path / "b", beyond(0.0, 1.0), TWO_STORES).rows
    assert (row.limit, row.store) == (None, VARIANCE)
    (row,) = found(monkeypatch, tmp_path / "c", beyond(1.0, 0.0), TWO_STORES).rows
    assert (row.limit, row.store) == (None, MEAN)


def test_an_error_is_no_limit_where_a_larger_one_is_not_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        return verdict(task, "rejected" if error_of(task) in (1e-5, 1e-3, 1e-1) else "accepted")

    (row,) = found(monkeypatch, tmp_path, says, TWO_STORES).rows
    assert row.limit == 1e-1
    assert row.killed[MEAN] == (1e-5, 1e-3, 1e-1)


@pytest.mark.parametrize("outcome", ["accepted", "error", "timeout", "crashed", "not loaded"])
def test_nothing_but_a_rejection_of_the_planted_text_counts_as_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outcome: str
) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        if error_of(task) <= 1e-3:
            return verdict(task)
        if error_of(task) == 1e-2:
            return verdict(task, "rejected")
        if outcome == "not loaded":
            return verdict(task, "rejected", loaded=False)
        return verdict(task, outcome)

    (row,) = found(monkeypatch, tmp_path, says, TWO_STORES).rows
    assert row.killed == {MEAN: (1e-2,), VARIANCE: (1e-2,)}
    assert row.limit is None


def test_every_dtype_has_a_limit_of_its_own_and_a_median(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tolerances = {("float32",): 0.0, ("float16",): 5e-3, ("bfloat16",): 0.5}

    def says(request: ShardRequest, task: Task) -> Verdict:
        return beyond(tolerances[request.subject.dtypes])(request, task)

    subjects = [
        planned(
            Subject(name, "kernels:moments", "row_moments", dtypes=dtypes, intermediate="input"),
            KERNEL,
            (OPERATOR,),
        )
        for name, dtypes in (("b", ("bfloat16", "float32", "float16")), ("a", ("float32",)))
    ]
    record = found(monkeypatch, tmp_path, says, *subjects)
    assert [(row.subject, row.dtype, row.limit) for row in record.rows] == [
        ("a", "float32", 1e-5),
        ("b", "float32", 1e-5),
        ("b", "float16", 1e-2),
        ("b", "bfloat16", None),
    ]
    assert {row.lower_precision for row in record.rows} == {"input"}
    assert [record.median(dtype) for dtype in ("float32", "float16")] == [1e-5, 1e-2]
    assert record.median("bfloat16") == float("inf")
    assert record.median("float8_e5m2") is None


def test_a_subject_without_a_limit_counts_as_infinite_in_the_median() -> None:
    rows = [
        LimitRow(name, "softmax", "float32", limit) for name, limit in [("a", 1e-5), ("b", 1e-3)]
    ]
    unseen, without = LimitRow("c", "softmax", "float32"), LimitRow("d", "argmax", "", why="moves")
    record = LimitsRecord("oracle", 0, ERRORS, (*rows, unseen, without))
    assert record.median("float32") == 1e-3


@pytest.mark.parametrize(
    ("subject", "text", "why"),
    [
        (Subject("s", "k:f", "argmax"), KERNEL, "its result has no floating-point numbers"),
        (Subject("s", "k:f", "transpose"), KERNEL, "it moves values and computes none"),
        (Subject("s", "k:f", "softmax"), "", "no kernel stores what it computes"),
    ],
)
def test_a_subject_that_no_constant_scales_is_listed_with_the_reason_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject: Subject, text: str, why: str
) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        raise AssertionError

    record = found(monkeypatch, tmp_path, says, planned(subject, text, (OPERATOR,)))
    assert record.rows == (LimitRow("s", subject.operation or "", "", why=why),)


def test_a_gate_that_does_not_accept_the_original_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        return verdict(task, "rejected", detail="3 elements are wrong")

    (row,) = found(monkeypatch, tmp_path, says, TWO_STORES).rows
    assert row.why == "the gate does not accept the original: 3 elements are wrong"
    assert row.limit is None and not row.killed


def test_a_gate_of_the_team_s_own_has_one_limit_over_the_dtypes_that_it_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_operation = Subject("mine", "kernels:moments", dtypes=("float32", "float16"))
    gate = GateRef("tests", str(tmp_path), GateConfig("callable", callable="acme:check"))
    subject = planned(no_operation, KERNEL, (OPERATOR,))
    record = found(monkeypatch, tmp_path / "out", beyond(2e-4), subject, gate=gate)
    assert [(row.dtype, row.limit) for row in record.rows] == [("", 1e-3)]
    assert record.median("") == 1e-3


def test_a_subject_that_cannot_run_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = planned(MOMENTS, failed="entry 'kernels:moments': no module named 'kernels'")
    with pytest.raises(EnvironmentFailure, match="no module named"):
        found(monkeypatch, tmp_path, accepts, broken)


def test_an_interrupted_run_asks_for_the_rest_alone_and_ends_as_an_unbroken_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(TWO_STORES)

    def run(server: Answering, folder: str) -> LimitsRecord:
        server.stands_in(monkeypatch, limits, TWO_STORES)
        with recording(tmp_path / folder, Scope("limits")) as stored:
            return run_limits(plan, stored, Silent())

    whole, dying, rest = (Answering(beyond(2e-4)) for _ in range(3))
    dying.lives = 4
    unbroken = run(whole, "whole")
    with pytest.raises(EnvironmentFailure, match="the server died"):
        run(dying, "broken")
    assert run(rest, "broken") == unbroken

    def asked(server: Answering) -> list[str]:
        return [task.candidate.id for _, task in server.asked]

    assert len(asked(whole)) == 1 + 2 * len(ERRORS)
    assert asked(dying) + asked(rest) == asked(whole)
