"""A gate that cannot judge is refused where it is certified, and left out where it is beside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatecert.campaign import baselines
from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.progress import Silent
from gatecert.campaign.shards import Work
from gatecert.errors import ControlRejected, EnvironmentFailure, GatecertError, UsageError
from gatecert.gates.config import GateConfig
from gatecert.mutants.records import original
from gatecert.sandbox.protocol import GateRef, ShardRequest, Task
from tests.runs import subject_run

RED = "gate 'tests' does not pass on the original: call of test_red failed\nE assert 1 == 2"


class Told(Silent):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        """Keep the line."""
        self.lines.append(line)


def prepared(
    monkeypatch: pytest.MonkeyPatch, error: GatecertError, certified: str
) -> tuple[Plan, Work, list[str]]:
    """What becomes of two gates, of which `tests` fails on the original and `other` does not."""

    def ask_shard(pool: object, request: ShardRequest, *rest: object, **more: object) -> Any:
        if request.tasks[0].gate == "tests":
            raise error
        return ()

    monkeypatch.setattr(baselines, "ask_shard", ask_shard)
    monkeypatch.setattr(baselines, "spread", lambda _, work, items: map(work, items))
    table = GateConfig(kind="command", command=("true",))
    names = dict.fromkeys((certified, "tests", "other"))
    refs = tuple(GateRef(name, ".", None if name == "oracle" else table, None) for name in names)
    part = subject_run()
    plan = Plan(Path(), (part.subject,), refs, ())
    tasks = [Task(original("softmax"), ref.name, stop_at_first=False) for ref in refs]
    work = [(PlannedSubject(part, {}, (), 0.0), tasks)]
    marks = dict.fromkeys(names, "")
    told = Told()
    unused: Any = None
    plan, done = baselines.with_baselines(plan, work, marks, unused, unused, told, unused, unused)
    return plan, done, told.lines


@pytest.mark.parametrize("kind", [EnvironmentFailure, ControlRejected])
def test_a_gate_beside_that_fails_on_the_original_is_left_out_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch, kind: type[GatecertError]
) -> None:
    plan, work, said = prepared(monkeypatch, kind(RED), "oracle")
    first = RED.partition("\n")[0]
    assert [ref.name for ref in plan.gates] == ["oracle", "other"]
    assert plan.left_out == {"tests": first}
    assert [task.gate for _, tasks in work for task in tasks] == ["oracle", "other"]
    assert said == [f"gate 'tests' is left out, which stands beside only: {first}"]


def test_the_certified_gate_must_pass_on_the_original(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentFailure, match="does not pass on the original"):
        prepared(monkeypatch, EnvironmentFailure(RED), "tests")


def test_a_wrong_table_is_refused_whichever_gate_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        prepared(monkeypatch, UsageError("selects no test"), "oracle")
