"""Survivors of a gate, each with the reason that evidence supports."""

from __future__ import annotations

import msgspec

from gatecert.campaign.records import Run
from gatecert.certificate.known import facts
from gatecert.certificate.records import Survivor
from gatecert.certificate.scope import relative
from gatecert.certificate.scored import Scored
from gatecert.diagnosis.decide import decide
from gatecert.diagnosis.records import Cause, Evidence
from gatecert.gates.records import Reason, Verdict
from gatecert.mutants.records import Accepted
from gatecert.witness.records import Witness

_SAME = (
    "its compiled code is the original's on all that the gate launches; what it does elsewhere is "
    "not known, since the subject declares no operation",
)


def survivor_of(one: Scored, run: Run) -> Survivor:
    """What the certificate tells of a survivor."""
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
        kernel=mutant.unit,
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
        remedies=_remedies(mutant.id, killed.case if killed else "", evidence),
        accepted=_accepted(one.accepted),
        reopened=one.accepted is not None and one.accepted.changed,
    )


def _remedies(mutant: str, oracle_case: str, evidence: Evidence | None) -> tuple[str, ...]:
    """What is known to kill it: a case to add, and the command that makes a test of it."""
    hunted = evidence.hunt.found if evidence is not None and evidence.hunt is not None else None
    case = oracle_case or (hunted.case if isinstance(hunted, Witness) else "")
    if not case:
        return ()
    return (f"add {case}: `gatecert remedies '{mutant}'` makes a test of it",)


def _accepted(accepted: Accepted | None) -> str:
    if accepted is None:
        return ""
    return f"{accepted.reason} ({accepted.by})" if accepted.by else accepted.reason


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
