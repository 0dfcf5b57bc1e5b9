"""Claims about runs over many seeds: which controls are judged under which, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.campaign import controls
from gatecert.campaign.controls import ControlsRecord, run_controls
from gatecert.campaign.progress import Silent
from gatecert.errors import EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.sandbox.protocol import ShardRequest, Task
from gatecert.store import Scope, recording
from gatecert.subjects import Subject
from tests.gatecert.campaign.answering import Answering, accepts, plan_of, planned, verdict

SOFTMAX = planned(Subject("softmax", "kernels:softmax", "softmax"), rewrites=2)
GELU = planned(Subject("gelu", "kernels:gelu", "gelu_erf"), rewrites=1)
UNKNOWN = planned(Subject("unknown", "kernels:unknown"), rewrites=1)
BROKEN = planned(Subject("broken", "kernels:broken", "softmax"), failed="no module named 'kernels'")


def judged(server: Answering) -> list[tuple[int, str]]:
    return [(request.seed, task.candidate.id) for request, task in server.asked]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Judge controls in a folder of the test, with the server's answers."""

    def judge(
        server: Answering, subjects=(SOFTMAX, GELU), seeds=(3, 4, 5), **options
    ) -> ControlsRecord:
        server.stands_in(monkeypatch, controls, *subjects)
        with recording(
            tmp_path / "out", Scope("controls", fresh=options.pop("fresh", False))
        ) as kept:
            return run_controls(plan_of(*subjects), seeds, kept, Silent(), **options)

    return judge


@pytest.mark.parametrize(
    ("rewrite_seeds", "seeds_of_rewrites"),
    [(None, {3, 4, 5}), (0, set()), (1, {3}), (2, {3, 4}), (9, {3, 4, 5})],
)
def test_originals_are_judged_under_every_seed_and_rewrites_under_the_first_ones(
    run, rewrite_seeds: int | None, seeds_of_rewrites: set[int]
) -> None:
    server = Answering()
    record = run(server, rewrite_seeds=rewrite_seeds)
    rewrites = ("gelu/benign/0", "softmax/benign/0", "softmax/benign/1")
    expected = {(seed, f"{name}/original") for seed in (3, 4, 5) for name in ("softmax", "gelu")}
    expected |= {(seed, name) for seed in seeds_of_rewrites for name in rewrites}
    assert len(judged(server)) == len(expected)
    assert set(judged(server)) == expected == {(row.seed, row.control) for row in record.rows}
    assert record.seeds == (3, 4, 5)


def test_every_control_runs_every_case_of_every_dtype(run) -> None:
    server = Answering()
    run(server, rewrite_seeds=1, observe=True)
    assert not any(task.stop_at_first for _, task in server.asked)
    assert all(task.observe for _, task in server.asked)
    dtypes = {request.subject.name: request.subject.dtypes for request, _ in server.asked}
    assert dtypes == {one.run.subject.name: one.run.subject.dtypes for one in (SOFTMAX, GELU)}


def test_more_seeds_later_run_only_what_is_not_there(run) -> None:
    few, more = Answering(), Answering()
    first = run(few, seeds=(3,))
    record = run(more, rewrite_seeds=1)
    assert judged(more) == [
        (seed, f"{name}/original") for seed in (4, 5) for name in ("softmax", "gelu")
    ]
    assert [row for row in record.rows if row.seed == 3] == list(first.rows)


def test_an_interrupted_run_goes_on_where_it_stopped_and_ends_as_an_unbroken_one(run) -> None:
    dying, rest, again = Answering(lives=4), Answering(), Answering()
    with pytest.raises(EnvironmentFailure, match="the server died"):
        run(dying, rewrite_seeds=2)
    record = run(rest, rewrite_seeds=2)
    assert len(judged(dying)) == 4
    assert not set(judged(dying)) & set(judged(rest))
    assert run(again, rewrite_seeds=2, fresh=True) == record
    assert sorted(judged(again)) == sorted(judged(dying) + judged(rest))


def test_rewrites_with_other_bits_than_the_original_s_under_that_seed_are_distinct(run) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        same = task.candidate.id != "softmax/benign/1"
        return verdict(task, bits=f"{request.seed}" if same else "other", margin=0.12345678)

    record = run(Answering(says), subjects=(SOFTMAX,), rewrite_seeds=1)
    distinct = {(row.seed, row.control) for row in record.rows if row.distinct}
    assert distinct == {(3, "softmax/benign/1")}
    assert {row.margin for row in record.rows} == {0.123457}


def test_rows_say_what_each_verdict_said_in_an_order_of_their_own(run) -> None:
    def says(request: ShardRequest, task: Task) -> Verdict:
        if (request.seed, task.candidate.id) != (4, "softmax/original"):
            return accepts(request, task)
        said = {"detail": "1 of 6 elements is wrong", "case": "softmax/...", "cases": 2}
        return verdict(task, "rejected", compared=6, exactly=3, **said)

    record = run(Answering(says), rewrite_seeds=1)
    keys = [(row.subject, row.seed, row.control) for row in record.rows]
    assert keys == sorted(keys)
    (row,) = [row for row in record.rows if row.outcome is GateOutcome.REJECTED]
    assert (row.subject, row.seed, row.control) == ("softmax", 4, "softmax/original")
    assert (row.detail, row.case) == ("1 of 6 elements is wrong", "softmax/...")
    assert (row.cases, row.compared, row.exactly) == (2, 6, 3)


def test_subjects_that_the_gate_cannot_judge_are_left_out(run) -> None:
    server = Answering()
    record = run(server, subjects=(SOFTMAX, UNKNOWN))
    assert {row.subject for row in record.rows} == {"softmax"} == set(record.sources_sha256)


def test_a_subject_that_cannot_run_ends_it_unless_it_is_optional(run) -> None:
    with pytest.raises(EnvironmentFailure, match="no module named 'kernels'"):
        run(Answering(), subjects=(SOFTMAX, BROKEN))
    record = run(Answering(), subjects=(SOFTMAX, BROKEN), optional=("broken",))
    assert {row.subject for row in record.rows} == {"softmax"}
