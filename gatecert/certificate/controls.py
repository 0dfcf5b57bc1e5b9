"""What a gate did with correct code and with code that no gate may accept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gatecert.campaign.records import Run, SubjectRun
from gatecert.certificate.records import Adversaries, ControlResult, Controls, Rejection
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import original
from gatecert.statistics import clopper_pearson

_JUDGED = frozenset({GateOutcome.ACCEPTED, GateOutcome.REJECTED})


def controls_of(run: Run, gate: str) -> Controls:
    """Controls judged by the gate: the originals and every benign rewrite.

    The unit of the interval is the kernel, or the kernels that a subject launches together:
    ten rewrites of one kernel are not ten independent trials.
    """
    judged = [(part, verdict) for part in run.subjects for verdict in _control_verdicts(part, gate)]
    rejected = [v for _, v in judged if _is_rejection(v)]
    failed = [v for _, v in judged if not _has_verdict(v)]
    units: dict[str, bool] = {}
    for part, verdict in judged:
        if _has_verdict(verdict):
            unit = " ".join(sorted(kernel.name for kernel in part.kernels)) or part.subject.name
            units[unit] = units.get(unit, False) or _is_rejection(verdict)
    return Controls(
        runs=len(judged),
        distinct=_count_distinct(run, judged),
        rejected=len(rejected),
        failed=len(failed),
        cases=sum(verdict.cases for _, verdict in judged),
        rejected_kernels=clopper_pearson(sum(units.values()), len(units)),
        rejections=tuple(_rejection(verdict) for verdict in (*rejected, *failed)),
    )


def adversaries_of(run: Run, gate: str) -> Adversaries:
    """Adversaries judged by the gate; one without a verdict is neither caught nor accepted."""
    ids = {candidate.id for part in run.subjects for candidate in part.adversaries}
    verdicts = [
        verdict
        for part in run.subjects
        for verdict in part.verdicts
        if verdict.gate == gate and verdict.candidate in ids
    ]
    known = [v for v in verdicts if v.loaded and v.outcome is not GateOutcome.ERROR]
    accepted = tuple(v.candidate for v in known if v.outcome is GateOutcome.ACCEPTED)
    return Adversaries(len(known), len(accepted), len(verdicts) - len(known), accepted)


def control_results(run: Run) -> dict[str, dict[str, ControlResult]]:
    """What every gate said of every control, by control and gate."""
    found: dict[str, dict[str, ControlResult]] = {}
    for part in run.subjects:
        for gate in run.gates:
            for verdict in _control_verdicts(part, gate):
                outcome = verdict.outcome if verdict.loaded else GateOutcome.ERROR
                found.setdefault(verdict.candidate, {})[gate] = ControlResult(
                    outcome, verdict.cases, verdict.margin, verdict.bits
                )
    return found


def _control_verdicts(part: SubjectRun, gate: str) -> Iterator[Verdict]:
    ids = {original(part.subject.name).id, *(candidate.id for candidate in part.controls)}
    return (v for v in part.verdicts if v.gate == gate and v.candidate in ids)


def _count_distinct(run: Run, judged: Iterable[tuple[SubjectRun, Verdict]]) -> int | None:
    """How many of the judged controls have other bits, as far as any gate of the run saw bits."""
    seen = (v for part in run.subjects for gate in run.gates for v in _control_verdicts(part, gate))
    if not any(verdict.bits for verdict in seen):
        return None
    distinct = {name for part in run.subjects for name in _distinct(part)}
    return sum(verdict.candidate in distinct for _, verdict in judged)


def _distinct(part: SubjectRun) -> set[str]:
    """Controls whose bits differ from the original's under a gate that hashed both."""
    original_id = original(part.subject.name).id
    bits = {v.gate: v.bits for v in part.verdicts if v.candidate == original_id}
    ids = {candidate.id for candidate in part.controls}
    return {
        v.candidate
        for v in part.verdicts
        if v.candidate in ids and v.bits and bits.get(v.gate, "") not in ("", v.bits)
    }


def _has_verdict(verdict: Verdict) -> bool:
    return verdict.loaded and verdict.outcome in _JUDGED


def _is_rejection(verdict: Verdict) -> bool:
    return verdict.loaded and verdict.outcome is GateOutcome.REJECTED


def _rejection(verdict: Verdict) -> Rejection:
    outcome = verdict.outcome.value if verdict.loaded else "not loaded"
    return Rejection(
        verdict.candidate,
        outcome,
        verdict.reason,
        verdict.detail,
        verdict.case,
        verdict.worst,
        verdict.inputs_sha256,
    )
