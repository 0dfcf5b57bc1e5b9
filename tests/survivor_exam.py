"""The diagnosis held against the frozen survivor situations.

    python -m tests.survivor_exam [--out FILE] [--seconds 60] [ID ...]

prints a line per situation and, per reason, how many are right of how many. Goes on from FILE.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gatecert.config import load_config
from gatecert.diagnosis.decide import decide
from gatecert.diagnosis.records import Cause, Evidence
from gatecert.gates.suite.records import PytestBaseline
from gatecert.mutants.records import Candidate, CandidateKind, original
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import (
    Explained,
    ExplainRequest,
    Failed,
    GateRef,
    Judged,
    Probed,
    ProbeRequest,
    ShardRequest,
    Task,
)
from gatecert.subjects import Subject
from gatecert.witness.records import HuntBudget
from tests.survivors import FOLDER, Situation, mutant, situations

SECONDS, CASES = 60.0, 500


class Answer(msgspec.Struct, frozen=True):
    """What the diagnosis said of one situation, beside its label."""

    id: str
    label: tuple[str, ...]
    causes: tuple[Cause, ...]
    said: tuple[str, ...]
    evidence: Evidence
    seconds: float

    @property
    def right(self) -> bool:
        """Is the first reason the label's?"""
        return self.causes[0].value == self.label[0]


@dataclass(slots=True)
class Examiner:
    """One server, and what is asked of each subject and gate once."""

    server: Server
    budget: HuntBudget
    _probed: dict[str, Subject] = field(default_factory=dict)
    _baselines: dict[tuple[str, str], PytestBaseline | None] = field(default_factory=dict)

    def answer(self, situation: Situation) -> Answer:
        """Diagnose one situation. The operator is not told to it, as nobody knows it."""
        began = time.monotonic()
        config = load_config(FOLDER / "gatecert.toml")
        gate = GateRef(situation.gate, str(FOLDER), config.gates[situation.gate])
        declared = next(one for one in config.subjects if one.name == situation.subject)
        subject = self._subject(declared, gate)
        path = str((FOLDER / situation.file).resolve())
        candidate = Candidate(
            situation.id, CandidateKind.MUTANT, subject.name, {path: mutant(situation)}
        )
        baseline = self._baseline(subject, gate)
        request = ExplainRequest(
            subject,
            gate,
            (candidate,),
            self.budget,
            baselines={} if baseline is None else {gate.name: baseline},
            kernels=subject.kernels,
        )
        (evidence,) = [e.evidence for e in self._ask(request) if isinstance(e, Explained)]
        found = decide(evidence)
        return Answer(
            situation.id,
            tuple(reason.value for reason in situation.reasons),
            tuple(one.cause for one in found.causes),
            tuple(one.said for one in found.causes),
            evidence,
            round(time.monotonic() - began, 2),
        )

    def _subject(self, declared: Subject, gate: GateRef) -> Subject:
        if declared.name not in self._probed:
            (probed,) = [
                event
                for event in self._ask(ProbeRequest(declared, gate))
                if isinstance(event, Probed)
            ]
            self._probed[declared.name] = msgspec.structs.replace(
                declared,
                blocks=probed.blocks,
                configs=probed.configs,
                kernels=tuple(sorted({launch.kernel for launch in probed.launches})),
            )
        return self._probed[declared.name]

    def _baseline(self, subject: Subject, gate: GateRef) -> PytestBaseline | None:
        place = subject.name, gate.name
        if gate.config is not None and gate.config.kind != "pytest":
            return None
        if place not in self._baselines:
            task = Task(original(subject.name), gate.name)
            events = self._ask(ShardRequest(subject, (gate,), (task,)))
            (judged,) = [event for event in events if isinstance(event, Judged)]
            self._baselines[place] = judged.verdict.baseline
        return self._baselines[place]

    def _ask(self, request: ProbeRequest | ShardRequest | ExplainRequest) -> Iterator[object]:
        for event in self.server.ask(request):
            if isinstance(event, Failed):
                raise RuntimeError(event.message)
            yield event


def examine(wanted: Iterable[Situation], budget: HuntBudget) -> Iterator[Answer]:
    """The answers, one by one."""
    with Server() as server:
        examiner = Examiner(server, budget)
        for situation in wanted:
            yield examiner.answer(situation)


def score_lines(answers: Iterable[Answer]) -> Iterator[str]:
    """Right first reasons by label, and how often a whole set of causes is the label's."""
    answers = tuple(answers)
    asked = Counter(answer.label[0] for answer in answers)
    right = Counter(answer.label[0] for answer in answers if answer.right)
    for reason, count in asked.items():
        yield f"{reason}: {right[reason]}/{count}"
    both = sum(tuple(c.value for c in answer.causes) == answer.label for answer in answers)
    yield f"all: {right.total()}/{len(answers)}; with second reasons: {both}/{len(answers)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--cases", type=int, default=CASES)
    options = parser.parse_args()
    known: dict[str, Answer] = {}
    if options.out is not None and options.out.is_file():
        read = msgspec.json.decode(options.out.read_bytes(), type=tuple[Answer, ...])
        known = {answer.id: answer for answer in read}
    chosen = [s for s in situations() if not options.ids or s.id in options.ids]
    budget = HuntBudget(options.seconds, options.cases)
    for answer in examine((s for s in chosen if s.id not in known), budget):
        known[answer.id] = answer
        mark = "right" if answer.right else "WRONG"
        causes = ", ".join(cause.value for cause in answer.causes)
        label = ", ".join(answer.label)
        print(f"{answer.id} {mark} {answer.seconds:.0f} s: {causes} (label {label})", flush=True)
        print(f"    {json.dumps(answer.said)}", flush=True)
        if options.out is not None:
            body = msgspec.json.encode([known[one.id] for one in situations() if one.id in known])
            options.out.write_bytes(msgspec.json.format(body, indent=1) + b"\n")
    for line in score_lines(known[s.id] for s in chosen):
        print(line)


if __name__ == "__main__":
    main()
