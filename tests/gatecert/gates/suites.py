"""Small projects as teams lay them out, and the whole chain on them without a command line."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from gatecert.campaign.plan import Plan, PlannedSubject, plan_subject
from gatecert.campaign.shards import plan_tasks, request_of
from gatecert.errors import GatecertError
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import CandidateKind, original
from gatecert.operators.registry import get_operator
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Probed, ProbeRequest
from gatecert.subjects import Subject

KERNEL = (Path(__file__).parents[2] / "testdata" / "kernels_softmax.py").read_text()
"""A right softmax; the entry is `softmax`."""
TESTS = """
import pytest
import torch

@pytest.mark.parametrize("columns", [1, 5, 8])
def test_softmax(columns):
    x = torch.linspace(-3, 3, 2 * columns).reshape(2, columns) - 80.0
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=1))
"""
"""A suite for `softmax`, which is to be imported first."""
OPERATORS = ("drop-load-mask", "wrong-pad-value", "missing-max-subtraction")
SOME_ADVERSARIES = ("does_nothing", "returns_zeros", "wrong_shape", "raises")
"""Where the claim is about a project's layout: all get in the kernel's place by the same way."""


@dataclass(frozen=True)
class Outcome:
    """What became of a project: its plan and every verdict by candidate."""

    planned: PlannedSubject
    verdicts: dict[str, Verdict]

    @property
    def original(self) -> Verdict:
        """The verdict on the original."""
        return self.verdicts[original(self.planned.run.subject.name).id]

    def of(self, kind: CandidateKind) -> list[Verdict]:
        """Verdicts on adversaries or on mutants."""
        run = self.planned.run
        members = run.adversaries if kind is CandidateKind.ADVERSARY else run.mutants
        return [self.verdicts[member.id] for member in members]


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a project's files; the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def judge_project(
    server: Server,
    folder: Path,
    entry: str,
    *args: str,
    import_paths: tuple[str, ...] = (".",),
    operation: str | None = "softmax",
    operators: tuple[str, ...] = OPERATORS,
    adversaries: Collection[str] = SOME_ADVERSARIES,
) -> Outcome:
    """Probe, plant and judge everything, as a campaign does, with these adversaries alone."""
    paths = tuple(str((folder / path).resolve()) for path in import_paths)
    subject = Subject("softmax", entry, operation, import_paths=paths)
    ref = GateRef("tests", str(folder), GateConfig("pytest", args))
    planting = tuple(get_operator(name) for name in operators)
    plan = Plan(folder, (subject,), (ref,), planting)
    probed = _only(list(server.ask(ProbeRequest(subject, ref))), Probed)[0]
    planned = _with_adversaries(plan_subject(subject, probed, planting, 0.0), adversaries)
    ((_, tasks),) = plan_tasks(plan, [planned], {subject.name: {}})
    events = list(server.ask(request_of(plan, planned, tasks)))
    said = [event.verdict for event in _only(events, Judged)]
    return Outcome(planned, {verdict.candidate: verdict for verdict in said})


def _with_adversaries(planned: PlannedSubject, names: Collection[str]) -> PlannedSubject:
    chosen = tuple(c for c in planned.run.adversaries if c.id.rpartition("/")[2] in names)
    assert len(chosen) == len(names)
    return replace(planned, run=msgspec.structs.replace(planned.run, adversaries=chosen))


def assert_sound(outcome: Outcome) -> None:
    """The original passes, every adversary is caught, and mutants are judged, most of them
    killed, each with the proof that its text is what ran."""
    assert outcome.original.outcome is GateOutcome.ACCEPTED
    assert outcome.original.launches > 0
    adversaries = outcome.of(CandidateKind.ADVERSARY)
    assert {verdict.outcome for verdict in adversaries} == {GateOutcome.REJECTED}
    mutants = outcome.of(CandidateKind.MUTANT)
    assert all(verdict.loaded for verdict in (*adversaries, *mutants))
    assert not any(verdict.outcome is GateOutcome.ERROR for verdict in mutants)
    assert sum(verdict.outcome is GateOutcome.REJECTED for verdict in mutants) >= 2


def _only(events: list[object], kind: type) -> list:  # type: ignore[type-arg]
    for event in events:
        if isinstance(event, Failed):
            raise GatecertError(event.message)
    return [event for event in events if isinstance(event, kind)]
