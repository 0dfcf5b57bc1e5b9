"""Where gatecert contradicts itself: what it has proven, and what a trustworthy gate saw."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.campaign.records import Run, SubjectRun
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import CodeVerdict, original


def contradictions(run: Run) -> Iterator[str]:
    """A sentence for each proven equivalent that a gate rejects, or has other bits for, although
    it accepts the original."""
    for part in run.subjects:
        proven = {c.mutant for c in part.comparisons if c.verdict is CodeVerdict.EQUIVALENT}
        for verdict in part.verdicts:
            if verdict.candidate in proven and verdict.loaded and not verdict.uncompared:
                yield from _of_equivalent(verdict, _originals(part, verdict.gate))


def _originals(part: SubjectRun, gate: str) -> list[Verdict]:
    name = original(part.subject.name).id
    return [v for v in part.verdicts if v.candidate == name and v.gate == gate]


def _of_equivalent(verdict: Verdict, originals: list[Verdict]) -> Iterator[str]:
    """A gate that does not accept the original, always, need not accept what is the same."""
    if not originals or any(v.outcome is not GateOutcome.ACCEPTED for v in originals):
        return
    bits = {v.bits for v in originals if v.bits}
    if verdict.outcome is GateOutcome.REJECTED:
        yield f"{verdict.candidate}: proven equivalent, yet {verdict.gate} rejected it"
    elif verdict.bits and bits and verdict.bits not in bits:
        yield (
            f"{verdict.candidate}: proven equivalent, yet its outputs under "
            f"{verdict.gate} differ in bits from the original's"
        )
