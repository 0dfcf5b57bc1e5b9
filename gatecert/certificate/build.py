"""Build a certificate from a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

import msgspec

from gatecert.campaign.records import LANE_SHOWS, Run, Status, SubjectRun
from gatecert.certificate.contradictions import contradictions
from gatecert.certificate.controls import adversaries_of, control_results, controls_of
from gatecert.certificate.known import facts
from gatecert.certificate.records import (
    Certificate,
    Counts,
    GateScore,
    Group,
    Observable,
    Result,
    SubjectSummary,
    Survivor,
    Unseen,
)
from gatecert.certificate.scope import ignored, not_tested, relative, selection_of, skipped
from gatecert.certificate.seal import sealed
from gatecert.certificate.status import status_of
from gatecert.certificate.wiring import reasons_of, weaknesses_of
from gatecert.diagnosis.decide import decide
from gatecert.diagnosis.records import Cause, Evidence
from gatecert.gates.records import GateOutcome, Reason, Verdict, is_oracle
from gatecert.mutants.records import CodeComparison, CodeVerdict, Mutant, original
from gatecert.operators.records import ObservableBy
from gatecert.statistics import Rate, cluster_bootstrap, macro_average, tally, wilson
from gatecert.wording import count

_DETECTED = frozenset({Status.KILLED, Status.CRASHED, Status.TIMEOUT})
_SAME = (
    "its compiled code is the original's on all that the gate launches; what it does elsewhere is "
    "not known, since the subject declares no operation",
)
_NEVER_RUN = frozenset({Status.UNVIABLE, Status.EQUIVALENT, Status.DUPLICATE})


@dataclass(frozen=True, slots=True)
class Scored:
    """A mutant with its status and verdict under one gate, and the original's verdict."""

    mutant: Mutant
    status: Status
    verdict: Verdict | None
    original: Verdict | None
    reach: frozenset[str] = frozenset()
    """Kernels whose launch runs the mutated function, or that a mutated launcher launches."""
    oracle: Verdict | None = None
    ignored: str = ""
    """Why a person ignores it."""
    same_as: str = ""
    same_on_launches: bool = False
    explanation: Evidence | None = None


def certify(run: Run) -> Certificate:
    """The certificate of a run; nothing is run, read or written."""
    lane = run.lane_of(run.gate)
    by_gate = {gate: tuple(_scored(run, gate)) for gate in run.gates}
    chosen = by_gate[run.gate]
    score = _gate_score(run, run.gate, chosen)
    certificate = Certificate(
        gate=run.gate,
        lane=lane,
        seed=run.seed,
        quick=run.quick,
        interrupted=run.interrupted,
        environment=run.environment,
        labels_sha256=run.environment.labels_sha256,
        subjects=tuple(_summary(part) for part in run.subjects),
        controls=score.controls,
        adversaries=score.adversaries,
        mutants=score.mutants,
        kill_rate=score.kill_rate,
        detection_rate=score.detection_rate,
        macro_kill_rate=score.macro_kill_rate,
        by_class=score.by_class,
        by_operator=score.by_operator,
        by_subject=score.by_subject,
        ladder=score.ladder,
        observable=_observable(chosen, LANE_SHOWS[lane]),
        survivors=score.survivors,
        weaknesses=score.weaknesses,
        not_observable=tuple(_unseen(s) for s in chosen if _counts_as(s, Status.NOT_OBSERVABLE)),
        inconclusive=tuple(_unseen(s) for s in chosen if _counts_as(s, Status.INCONCLUSIVE)),
        skipped=tuple(skipped(run)),
        not_tested=(*not_tested(run), *_cut_short(run, chosen)),
        contradictions=tuple(contradictions(run)),
        beside=tuple(
            _gate_score(run, gate, scored) for gate, scored in by_gate.items() if gate != run.gate
        ),
        results=_results(by_gate),
        timings_s=run.timings_s,
        selection=selection_of(run),
        ignored=tuple(ignored(run)),
        control_results=control_results(run),
        provenance=run.provenance,
        left_out=run.left_out,
    )
    return sealed(certificate)


def _scored(run: Run, gate: str) -> Iterator[Scored]:
    shows = LANE_SHOWS[run.lane_of(gate)]
    not_sampled = frozenset(run.selection.not_sampled)
    not_reached = frozenset(run.selection.not_reached)
    for part in run.subjects:
        comparisons = {comparison.mutant: comparison for comparison in part.comparisons}
        verdicts = {verdict.candidate: verdict for verdict in part.verdicts if verdict.gate == gate}
        baseline = verdicts.get(original(part.subject.name).id)
        oracle = _trusted_oracle(part)
        reasons = {one.mutant: one.reason for one in part.ignored}
        explanations = {one.mutant: one for one in part.explanations if one.gate == gate}
        for mutant in part.mutants:
            comparison = comparisons.get(mutant.id)
            chosen = mutant.id not in not_sampled and (mutant.id, gate) not in not_reached
            verdict = verdicts.get(mutant.id) if chosen and mutant.id not in reasons else None
            status = status_of(mutant, comparison, verdict, shows)
            if mutant.id in reasons:
                status = Status.IGNORED
            elif status is Status.INCONCLUSIVE and verdict is None:
                # What an interrupted run did not come to, no environment has failed on.
                status = Status.NOT_RUN if run.interrupted or not chosen else status
            yield Scored(
                mutant,
                status,
                verdict,
                baseline,
                part.reach(mutant),
                oracle.get(mutant.id),
                reasons.get(mutant.id, ""),
                comparison.duplicate_of if comparison else "",
                _is_same_on_launches(comparison, verdict),
                explanations.get(mutant.id),
            )


def _cut_short(run: Run, chosen: Iterable[Scored]) -> Iterator[str]:
    """What an interrupted run did not come to, without what it never meant to run."""
    never = frozenset(run.selection.not_sampled)
    missed = [s for s in chosen if s.status is Status.NOT_RUN and s.mutant.id not in never]
    if run.interrupted and missed:
        yield f"{count(len(missed), 'mutant')} under {run.gate}: not reached, interrupted"


def _is_same_on_launches(comparison: CodeComparison | None, verdict: Verdict | None) -> bool:
    same = comparison is not None and comparison.verdict is CodeVerdict.SAME_ON_LAUNCHES
    return same and verdict is not None and not verdict.uncompared


def _trusted_oracle(part: SubjectRun) -> dict[str, Verdict]:
    """The oracle's verdicts by candidate; none where it rejects the original."""
    found = {v.candidate: v for v in part.verdicts if is_oracle(v.gate)}
    said = found.get(original(part.subject.name).id)
    return {} if said is not None and said.outcome is GateOutcome.REJECTED else found


def _gate_score(run: Run, gate: str, scored: Iterable[Scored]) -> GateScore:
    scored = tuple(scored)
    counted = tuple(one for one in scored if one.mutant.scored)
    by_class = _groups(counted, lambda mutant: mutant.bug_class)
    named = weaknesses_of(run, gate)
    because = reasons_of(run, gate, named)
    return GateScore(
        gate=gate,
        controls=controls_of(run, gate),
        adversaries=msgspec.structs.replace(adversaries_of(run, gate), because=because),
        mutants=_counts(one.status for one in counted),
        kill_rate=_rate(run, counted, frozenset({Status.KILLED})),
        detection_rate=_rate(run, counted, _DETECTED),
        macro_kill_rate=macro_average(
            {name: (g.mutants.killed, g.mutants.scored) for name, g in by_class.items()}
        ),
        by_class=by_class,
        by_operator=_groups(counted, lambda mutant: mutant.operator),
        by_subject=_groups(counted, lambda mutant: mutant.subject),
        ladder=_groups(
            (one for one in scored if not one.mutant.scored), lambda mutant: mutant.variant
        ),
        survivors=tuple(_survivor(one, run) for one in counted if one.status is Status.SURVIVED),
        weaknesses=named,
        lane=run.lane_of(gate),
    )


def _counts(statuses: Iterable[Status]) -> Counts:
    found = Counter(status.value for status in statuses)
    return Counts(**found)


def _groups(scored: Iterable[Scored], key: Callable[[Mutant], str]) -> dict[str, Group]:
    members: dict[str, list[Status]] = {}
    for one in scored:
        members.setdefault(key(one.mutant), []).append(one.status)
    return {name: _group(_counts(members[name])) for name in sorted(members)}


def _group(counts: Counts) -> Group:
    return Group(counts, counts.killed / counts.scored if counts.scored else None)


def _rate(run: Run, scored: Iterable[Scored], success: Set[Status]) -> Rate:
    """Mutants that were drawn at random are a sample; all of them are a clustered census."""
    known = [one for one in scored if one.status in success or one.status is Status.SURVIVED]
    if selection_of(run).sampled:
        return wilson(sum(one.status in success for one in known), len(known))
    by_kernel = tally((one.mutant.unit, one.status in success) for one in known)
    return cluster_bootstrap(by_kernel, seed=run.seed)


def _observable(scored: Iterable[Scored], shows: Set[ObservableBy]) -> Observable:
    viable = [s.mutant for s in scored if s.mutant.scored and s.status not in _NEVER_RUN]
    seen = sum(bool(shows & set(mutant.observable_by)) for mutant in viable)
    return Observable(len(viable), seen, seen / len(viable) if viable else None)


def _counts_as(one: Scored, status: Status) -> bool:
    return one.mutant.scored and one.status is status


def _survivor(one: Scored, run: Run) -> Survivor:
    mutant, verdict = one.mutant, one.verdict
    assert verdict is not None  # a mutant survives by a verdict alone
    evidence = _with_allowed(one.explanation, verdict)
    because = decide(evidence).causes if evidence is not None else ()
    reason = _survival_reason(verdict, one)
    if because and because[0].cause is not Cause.UNEXPLAINED:
        reason = because[0].cause
    told = reason in (Cause.UNREACHED, Cause.UNEXPLAINED)
    known = tuple(facts(verdict, one.original, one.reach)) if told else ()
    killed = one.oracle if one.oracle and one.oracle.reason is not Reason.NONE else None
    return Survivor(
        id=mutant.id,
        subject=mutant.subject,
        operator=mutant.operator,
        bug_class=mutant.bug_class,
        detail=mutant.detail,
        diff=mutant.diff,
        reason=reason,
        case=verdict.case,
        worst=verdict.worst,
        margin=verdict.margin,
        reveal=mutant.reveal,
        oracle_case=killed.case if killed else "",
        oracle_inputs_sha256=killed.inputs_sha256 if killed else "",
        path=relative(mutant.path, run, mutant.module),
        line=mutant.line,
        known=_SAME if one.same_on_launches else known,
        because=because,
        evidence=evidence,
    )


def _with_allowed(evidence: Evidence | None, verdict: Verdict) -> Evidence | None:
    """What the gate's own comparison said belongs to it, where it shows that."""
    if evidence is None or not verdict.margin:
        return evidence
    return msgspec.structs.replace(evidence, allowed=verdict.margin)


def _survival_reason(verdict: Verdict, one: Scored) -> Cause:
    original = one.original
    if verdict.launches > 0 and one.reach and not one.reach & set(verdict.kernels):
        return Cause.UNREACHED
    if original is not None and original.launches > 0 and verdict.launches == 0:
        return Cause.UNREACHED
    if one.same_on_launches:
        return Cause.UNINFECTED
    if original is None or not verdict.bits or not original.bits:
        return Cause.UNEXPLAINED
    if verdict.bits == original.bits:
        return Cause.UNINFECTED
    return Cause.TOLERATED


def _unseen(one: Scored) -> Unseen:
    if one.status is Status.NOT_OBSERVABLE:
        labels = ", ".join(label.value for label in one.mutant.observable_by)
        why = f"only {labels} would show it" if labels else "by its label, no run can show it"
    elif one.verdict is None:
        why = "no verdict"
    elif not one.verdict.loaded and one.verdict.outcome is not GateOutcome.ERROR:
        why = "no proof that the mutant's text was imported"
    else:
        why = one.verdict.detail or one.verdict.outcome.value
    return Unseen(one.mutant.id, why, one.mutant.observable_by)


def _summary(part: SubjectRun) -> SubjectSummary:
    subject = part.subject
    return SubjectSummary(
        name=subject.name,
        entry=subject.entry,
        operation=subject.operation,
        dtypes=subject.dtypes,
        layouts=subject.layouts,
        kernels=tuple(kernel.name for kernel in part.kernels),
        failed=part.failed,
        profile=subject.profile.name,
        planted=subject.profile.plants,
    )


def _results(by_gate: Mapping[str, Iterable[Scored]]) -> dict[str, dict[str, Result]]:
    results: dict[str, dict[str, Result]] = {}
    for gate, scored in by_gate.items():
        for one in scored:
            results.setdefault(one.mutant.id, {})[gate] = _result(one)
    return results


def _result(one: Scored) -> Result:
    verdict, ladder = one.verdict, not one.mutant.scored
    same_as = one.same_as if one.status is Status.DUPLICATE else ""
    if verdict is None:
        return Result(one.status, detail=one.ignored, same_as=same_as, ladder=ladder)
    unreported = one.status is Status.UNREPORTED
    detail = _out_of_bounds(verdict) if unreported else verdict.detail
    return Result(
        one.status,
        verdict.reason,
        detail,
        verdict.case,
        inputs_sha256=verdict.inputs_sha256,
        same_as=same_as,
        ladder=ladder,
    )


def _out_of_bounds(verdict: Verdict) -> str:
    found = verdict.findings[0]
    what = found.kind.value.replace("_out_of_bounds", "").replace("_", " ")
    lanes = "1 lane" if found.lanes == 1 else f"{found.lanes} lanes"
    where = f" on {found.argument}" if found.argument else ""
    return (
        f"touched memory out of bounds ({what}, {lanes}{where}), and the gate passed: a GPU may "
        "crash or not; see the sanitizer gate, docs/gates.md"
    )
