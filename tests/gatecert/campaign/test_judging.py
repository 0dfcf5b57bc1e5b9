"""Claims about judging beside a campaign: when a stored verdict is taken, and when not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gatecert.campaign.judging import judge_requests, mark_of
from gatecert.campaign.progress import Silent
from gatecert.campaign.supervise import ServerPool
from gatecert.gates.config import GateConfig
from gatecert.gates.records import Verdict
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from gatecert.store import Scope, open_runs, recording
from gatecert.subjects import Subject
from tests.gatecert.campaign.answering import Answering, plan_of, planned, verdict

SUBJECT = Subject("softmax", "kernels:softmax", "softmax", dtypes=("float32", "float16"))
REQUEST = ShardRequest(
    SUBJECT,
    gates=(GateRef("oracle", "."),),
    tasks=(Task(original("softmax"), "oracle", stop_at_first=False),),
)
IN_FLOAT16 = msgspec.structs.replace(
    REQUEST, subject=msgspec.structs.replace(SUBJECT, dtypes=("float16",))
)


class Counting(Silent):
    """Counts verdicts."""

    def __init__(self) -> None:
        self.verdicts = 0

    def step(self, verdict: Verdict | None = None) -> None:
        """One more."""
        self.verdicts += 1


def judge(
    folder: Path, *requests: ShardRequest, mark: str = "m", outcome: str = "accepted"
) -> tuple[Answering, list[tuple[ShardRequest, tuple[Verdict, ...]]]]:
    """Who was asked for what, and all that was said."""
    server = Answering(lambda request, task: verdict(task, outcome))
    pool, progress = ServerPool([server]), Counting()  # type: ignore[list-item]
    with recording(folder, Scope("limits")) as record:
        marks = {request.subject.name: mark for request in requests}
        said = list(judge_requests(pool, requests, marks, record, progress))
        record.finish()
    assert progress.verdicts == sum(len(request.tasks) for request in requests)
    return server, said


def test_requests_come_with_their_own_verdicts_and_are_counted_in_the_store(tmp_path: Path) -> None:
    server, said = judge(tmp_path, REQUEST, IN_FLOAT16)
    assert [request for request, _ in said] == [REQUEST, IN_FLOAT16]
    assert [len(verdicts) for _, verdicts in said] == [1, 1]
    assert len(server.asked) == 2
    with open_runs(tmp_path) as runs:
        (info,) = runs.all()
    assert (info.tasks, info.verdicts) == (2, 2)


def test_what_a_run_holds_is_not_judged_again_unless_what_it_rests_on_has_changed(
    tmp_path: Path,
) -> None:
    _, first = judge(tmp_path, REQUEST, outcome="rejected")
    server, again = judge(tmp_path, REQUEST)
    assert server.asked == [] and again == first
    changed = {
        "mark": judge(tmp_path, REQUEST, mark="n"),
        "dtypes": judge(tmp_path, IN_FLOAT16),
        "seed": judge(tmp_path, msgspec.structs.replace(REQUEST, seed=1)),
        "quick": judge(tmp_path, msgspec.structs.replace(REQUEST, quick=True)),
    }
    for what, (server, said) in changed.items():
        assert len(server.asked) == 1, what
        assert said[0][1][0].outcome.value == "accepted", what


@pytest.mark.parametrize("outcome", ["error", "timeout"])
def test_what_a_clock_or_a_machine_decided_is_judged_again(tmp_path: Path, outcome: str) -> None:
    judge(tmp_path, REQUEST, outcome=outcome)
    server, _ = judge(tmp_path, REQUEST)
    assert len(server.asked) == 1


def test_a_timeout_is_tried_once_more_with_more_time_and_nothing_else_is(tmp_path: Path) -> None:
    rewrite = msgspec.structs.replace(original("softmax"), id="softmax/benign/exp2")
    slow = Task(rewrite, "oracle", stop_at_first=False)
    usual_s = REQUEST.limits.minimum_s

    def says(request: ShardRequest, task: Task) -> Verdict:
        late = task == slow and request.limits.minimum_s <= usual_s
        return verdict(task, "timeout" if late else "accepted")

    server = Answering(says)
    pool, progress = ServerPool([server]), Counting()  # type: ignore[list-item]
    both = msgspec.structs.replace(REQUEST, tasks=(*REQUEST.tasks, slow))
    with recording(tmp_path, Scope("controls")) as record:
        ((_, said),) = judge_requests(pool, [both], {"softmax": "m"}, record, progress)
    assert [one.outcome.value for one in said] == ["accepted", "accepted"]
    assert [task for _, task in server.asked] == [*both.tasks, slow]
    assert progress.verdicts == 2


def test_the_files_of_the_project_count_for_a_gate_of_one_s_own_alone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    gates = {
        "oracle": GateRef("oracle", str(project)),
        "mine": GateRef("mine", str(project), GateConfig("callable", callable="gates:check")),
    }

    def marks() -> dict[str, str]:
        found = {}
        for name, gate in gates.items():
            plan = replace(plan_of(planned(SUBJECT), gate=gate), root=project)
            with recording(tmp_path / "out", Scope(name)) as record:
                found[name] = mark_of(plan, record)
        return found

    (project / "gates.py").write_text("def check(entry): return True\n")
    before = marks()
    assert marks() == before
    (project / "gates.py").write_text("def check(entry): return False\n")
    after = marks()
    assert after["oracle"] == before["oracle"]
    assert after["mine"] != before["mine"]
