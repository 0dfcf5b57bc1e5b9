"""How each gate is wired, from the verdicts of a run."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.campaign.records import Run, SubjectRun
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.wiring.rules import reasons, weaknesses
from gatecert.gates.wiring.weaknesses import NamedWeakness, Weakness
from gatecert.mutants.records import original


def weaknesses_of(run: Run, gate: str) -> tuple[NamedWeakness, ...]:
    """What evidence shows that a gate cannot see, subject by subject."""
    return tuple(one for part in run.subjects for one in _of_subject(part, gate))


def reasons_of(
    run: Run, gate: str, named: tuple[NamedWeakness, ...]
) -> dict[str, tuple[Weakness, ...]]:
    """Why the gate accepted adversaries, by their ids; those that evidence does not explain are
    left out."""
    found = {}
    for part in run.subjects:
        mine = tuple(one for one in named if one.subject == part.subject.name)
        for name, verdict in _answers(part, gate):
            why = reasons(name, mine)
            if verdict.loaded and verdict.outcome is GateOutcome.ACCEPTED and why:
                found[verdict.candidate] = why
    return found


def _of_subject(part: SubjectRun, gate: str) -> tuple[NamedWeakness, ...]:
    """Nothing is said of a gate that does not accept the original, or was not watched."""
    baseline = original(part.subject.name).id
    said = next((v for v in part.verdicts if v.gate == gate and v.candidate == baseline), None)
    if said is None or said.outcome is not GateOutcome.ACCEPTED or said.evidence is None:
        return ()
    kernels = [kernel.name for kernel in part.kernels]
    return weaknesses(part.subject, said.evidence, dict(_answers(part, gate)), kernels)


def _answers(part: SubjectRun, gate: str) -> Iterator[tuple[str, Verdict]]:
    """The gate's verdicts on the adversaries, by their short names."""
    ids = {candidate.id for candidate in part.adversaries}
    for verdict in part.verdicts:
        if verdict.gate == gate and verdict.candidate in ids:
            yield verdict.candidate.rpartition("/")[2], verdict
