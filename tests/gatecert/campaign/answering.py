"""A server that runs nothing: what is asked for, kept and counted shows without kernels."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gatecert.campaign.plan import Plan, PlannedSubject
from gatecert.campaign.records import SubjectRun
from gatecert.campaign.supervise import ServerPool
from gatecert.errors import ExitCode
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.discover import find_kernels
from gatecert.mutants.plant import plant
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.operators.records import Operator
from gatecert.sandbox.protocol import Event, Failed, GateRef, Judged, ShardRequest, Task
from gatecert.subjects import Subject


def accepts(request: ShardRequest, task: Task) -> Verdict:
    """All that it is asked about is right."""
    return verdict(task)


def verdict(task: Task, outcome: str = "accepted", **changes: Any) -> Verdict:
    """An answer to a task."""
    return Verdict(task.candidate.id, task.gate, GateOutcome(outcome), **changes)


@dataclass
class Answering:
    """Answers as `says` does, and notes what was asked; dies after `lives` answers."""

    says: Callable[[ShardRequest, Task], Verdict] = accepts
    lives: int = 1_000_000
    asked: list[tuple[ShardRequest, Task]] = field(default_factory=list)

    def ask(self, request: ShardRequest) -> Iterator[Event]:
        """As a server does."""
        for task in request.tasks:
            if len(self.asked) == self.lives:
                yield Failed("the server died", ExitCode.ENVIRONMENT_FAILED)
                return
            self.asked.append((request, task))
            yield Judged(self.says(request, task))

    def stands_in(
        self, patch: pytest.MonkeyPatch, module: ModuleType, *subjects: PlannedSubject
    ) -> None:
        """Take the place of the servers of `module`, and of its probing and planting."""
        pool = ServerPool([self])  # type: ignore[list-item]
        patch.setattr(module, "server_pool", lambda *_: contextlib.nullcontext(pool))
        patch.setattr(module, "plan_campaign", lambda *_: subjects)


def plan_of(*subjects: PlannedSubject, gate: GateRef | None = None) -> Plan:
    """A plan of these subjects under the oracle, or another gate."""
    ref = gate or GateRef("oracle", ".")
    own = tuple(subject.run.subject for subject in subjects)
    return Plan(root=Path(), subjects=own, gates=(ref,), operators=())


def planned(
    subject: Subject,
    text: str = "",
    operators: tuple[Operator, ...] = (),
    *,
    rewrites: int = 0,
    failed: str = "",
) -> PlannedSubject:
    """A subject with what operators plant in the kernels of `text`, and some benign rewrites."""
    kernels, _ = find_kernels("kernels", "kernels.py", text)
    mutants = [one for kernel in kernels for one in plant(subject.name, kernel, text, operators)]
    controls = [
        Candidate(f"{subject.name}/benign/{number}", CandidateKind.BENIGN, subject.name)
        for number in range(rewrites)
    ]
    run = SubjectRun(
        subject, tuple(kernels), mutants=tuple(mutants), controls=tuple(controls), failed=failed
    )
    return PlannedSubject(run, {"kernels.py": text}, (), probe_s=1.0, sources_sha256="0" * 64)
