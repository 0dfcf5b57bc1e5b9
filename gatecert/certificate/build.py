"""Build a certificate from a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set

import msgspec

from gatecert.campaign.records import LANE_SHOWS, Run, Status, SubjectRun
from gatecert.certificate.contradictions import contradictions
from gatecert.certificate.controls import adversaries_of, control_results, controls_of
from gatecert.certificate.records import (
    Certificate,
    Counts,
    GateScore,
    Group,
    Observable,
    Result,
    SubjectSummary,
    Unseen,
)
from gatecert.certificate.scope import ignored, not_tested, selection_of, skipped
from gatecert.certificate.scored import Scored
from gatecert.certificate.seal import sealed
from gatecert.certificate.status import status_of
from gatecert.certificate.survivors import survivor_of
from gatecert.certificate.wiring import reasons_of, weaknesses_of
from gatecert.gates.records import GateOutcome, Verdict, is_oracle
from gatecert.mutants.records import CodeComparison, CodeVerdict, Mutant, original
from gatecert.operators.records import ObservableBy
from gatecert.statistics import Rate, cluster_bootstrap, macro_average, tally, wilson
from gatecert.wording import count

_DETECTED = frozenset({Status.KILLED, Status.CRASHED, Status.TIMEOUT})
_NEVER_RUN = frozenset({Status.UNVIABLE, Status.EQUIVALENT, Status.DUPLICATE})


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
        ladder_by_kernel=score.ladder_by_kernel,
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
        accepted = {one.mutant: one for one in part.accepted}
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
                accepted.get(mutant.id),
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
        survivors=tuple(survivor_of(one, run) for one in counted if one.status is Status.SURVIVED),
        ladder_by_kernel=_ladders(scored),
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


def _ladders(scored: Iterable[Scored]) -> dict[str, dict[str, Group]]:
    """The rungs of the detection ladder by kernel."""
    members: dict[str, list[Scored]] = {}
    for one in scored:
        if not one.mutant.scored:
            members.setdefault(one.mutant.unit, []).append(one)
    return {
        kernel: _groups(members[kernel], lambda mutant: mutant.variant)
        for kernel in sorted(members)
    }


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
