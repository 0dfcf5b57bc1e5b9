"""Claims about which survivors are explained, and what becomes of the answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from gatecert.campaign.explaining import Explaining, without_seconds
from gatecert.campaign.plan import PlannedSubject
from gatecert.campaign.supervise import ServerPool
from gatecert.diagnosis.records import Captured, Evidence, Reached
from gatecert.errors import ExitCode
from gatecert.gates.config import GateConfig
from gatecert.mutants.records import CodeComparison, CodeVerdict
from gatecert.operators.registry import get_operator
from gatecert.sandbox.protocol import Event, Explained, ExplainRequest, Failed, GateRef
from gatecert.store import Scope, recording
from gatecert.subjects import Subject
from gatecert.witness.records import Hunt, HuntBudget, HuntEnd, NoWitness, Tried
from tests.gatecert.campaign.answering import plan_of, planned
from tests.runs import verdict

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(y_ptr + at, x * 2.5, mask=at < n)
"""
OPERATORS = (get_operator("drop-load-mask"), get_operator("drop-store-mask"))


@dataclass
class Explains:
    """A server that has an explanation for everybody, for `lives` of them."""

    lives: int = 100
    asked: list[str] = field(default_factory=list)

    def ask(self, request: ExplainRequest) -> Iterator[Event]:
        for candidate in request.candidates:
            if len(self.asked) == self.lives:
                yield Failed("the gate cannot be prepared", ExitCode.ENVIRONMENT_FAILED)
                return
            self.asked.append(candidate.id)
            evidence = Evidence(candidate.id, request.gate.name, Captured(1, 0, 1), seconds=3.0)
            yield Explained(evidence)


@dataclass
class Hears:
    """Progress that keeps what is said."""

    lines: list[str] = field(default_factory=list)
    steps: int = 0

    def stage(self, name: str, total: int) -> None:
        self.lines.append(f"{name}: {total}")

    def step(self, verdict: Any = None) -> None:
        self.steps += 1

    def say(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def subject() -> PlannedSubject:
    """A subject with two mutants."""
    made = planned(Subject("s", "kernels:entry", "softmax"), KERNEL, OPERATORS)
    assert len(made.run.mutants) == 2
    return replace(made, texts={"kernels.py": KERNEL})


def explain(
    folder: Path,
    subject: PlannedSubject,
    server: Explains,
    *,
    gate: GateRef | None = None,
    killed: int = 0,
    duplicate: bool = False,
) -> tuple[Hears, tuple[Evidence, ...]]:
    """Explain the survivors of the subject; the first `killed` mutants are none."""
    plan = plan_of(subject, gate=gate)
    name = plan.gates[0].name
    heard = Hears()
    ids = [mutant.id for mutant in subject.run.mutants]
    said = [
        verdict(one, "rejected" if place < killed else "accepted", gate=name)
        for place, one in enumerate(ids)
    ]
    same = CodeComparison(ids[1], CodeVerdict.DUPLICATE, duplicate_of=ids[0])
    with recording(folder, Scope("certify")) as record:
        keys = {(one, name): f"key of {one}" for one in ids}
        explaining = Explaining(plan, record, heard, keys, HuntBudget())
        pool = ServerPool([server])  # type: ignore[list-item]
        comparisons = {"s": {ids[1]: same} if duplicate else {}}
        explaining.run(pool, [subject], comparisons, {"s": said})
        found = tuple(
            one for one in record._database.rows("SELECT explanation FROM run_explanation")
        )
    return heard, found


def test_survivors_alone_are_explained(tmp_path: Path, subject: PlannedSubject) -> None:
    server = Explains()
    explain(tmp_path, subject, server, killed=1)
    assert server.asked == [subject.run.mutants[1].id]


def test_a_mutant_that_is_another_one_is_not(tmp_path: Path, subject: PlannedSubject) -> None:
    server = Explains()
    explain(tmp_path, subject, server, duplicate=True)
    assert server.asked == [subject.run.mutants[0].id]


def test_what_was_explained_before_a_server_died_is_kept(
    tmp_path: Path, subject: PlannedSubject
) -> None:
    heard, found = explain(tmp_path, subject, Explains(lives=1))
    assert (heard.steps, len(found)) == (1, 1)
    assert (
        "survivors are not explained: subject 's': the gate cannot be prepared" in heard.lines[-1]
    )
    again = Explains()
    heard, found = explain(tmp_path, subject, again)
    assert again.asked == [subject.run.mutants[1].id]
    assert len(found) == 2
    assert heard.lines[0] == "1 explanation taken from the store"


def test_survivors_of_a_gate_on_a_gpu_are_not_explained_and_it_is_said(
    tmp_path: Path, subject: PlannedSubject
) -> None:
    table = GateConfig(kind="pytest", args=("tests",), lane="cuda")
    server = Explains()
    heard, found = explain(tmp_path, subject, server, gate=GateRef("tests", ".", table))
    assert (server.asked, found) == ([], ())
    assert heard.lines == ["gate 'tests' runs on a GPU: its survivors are not explained"]


def test_what_is_kept_of_evidence_is_the_same_in_a_repeat() -> None:
    hunt = Hunt("m", "g", 0, 1, NoWitness(Tried(1, HuntEnd.CASES)), seconds=4.0)
    first = Evidence("m", "g", reached=Reached(1, True), hunt=hunt, seconds=9.0)
    assert without_seconds(first).seconds == 0.0
    kept = without_seconds(first).hunt
    assert kept is not None and kept.seconds == 0.0
