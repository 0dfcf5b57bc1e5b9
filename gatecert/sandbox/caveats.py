"""When what a gate said is no verdict on the candidate: the evidence that it saw it is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from gatecert.errors import ControlRejected, EnvironmentFailure
from gatecert.gates.records import GateOutcome, Verdict


def without_proof(verdict: Verdict, missed: Sequence[str], blind: str = "") -> Verdict:
    """The candidate's text is not what the process ran; `blind` says why, if that is known. One
    that a signal ended could not give proof any more."""
    if verdict.outcome is GateOutcome.ERROR or verdict.signal:
        return verdict
    said = f"the gate never imported the mutated text of {', '.join(missed)}"
    said += f" ({blind})" if blind else ""
    return msgspec.structs.replace(verdict, loaded=False, detail=said)


def without_call(verdict: Verdict) -> Verdict:
    """The gate never called the adversary, so accepting it says nothing."""
    return _nothing_seen(verdict, "the gate never called the entry where it would be seen")


def without_launches(verdict: Verdict) -> Verdict:
    """The gate launches no kernel of the original either: it tests nothing that we can reach."""
    return _nothing_seen(
        verdict,
        "the gate launches no Triton kernel where it would be seen: in its own process, or for "
        "a gate of kind command in any Python process; what a test runs in a subprocess never "
        "sees the mutant",
    )


def without_use(verdict: Verdict) -> Verdict:
    """Of a gate that launches nothing, a control is accepted also where it is not imported: there
    is nothing in it to reject, and the mutants say what is wrong with the gate."""
    if verdict.outcome is not GateOutcome.ACCEPTED:
        return verdict
    return msgspec.structs.replace(verdict, loaded=True)


def check_baseline(
    gate: str, verdicts: Sequence[Verdict], *, must_accept: bool, must_answer: bool = False
) -> None:
    """Hold the runs of the original against each other.

    Raises:
        EnvironmentFailure: they differ, or a gate that must accept or answer gives no verdict.
        ControlRejected: a gate that must accept rejects.
    """
    said = Counter(verdict.outcome for verdict in verdicts)
    if len(said) > 1:
        counts = ", ".join(f"{count} {outcome.value}" for outcome, count in said.items())
        odd = next(v for v in verdicts if v.outcome is not GateOutcome.ACCEPTED)
        raise EnvironmentFailure(
            f"gate {gate!r} is flaky: {len(verdicts)} runs on the original ended differently "
            f"({counts}: {odd.detail}); make it repeatable"
        )
    verdict = verdicts[0]
    if verdict.outcome is GateOutcome.ACCEPTED or not (must_accept or must_answer):
        return
    if verdict.outcome is not GateOutcome.REJECTED:
        raise EnvironmentFailure(
            f"gate {gate!r} gives no verdict on the original ({verdict.candidate}): "
            f"{verdict.detail or verdict.outcome.value}; mend the gate, or choose with --subject "
            "what it can judge"
        )
    if must_accept:
        raise ControlRejected(f"gate {gate!r} rejects the original: {verdict.detail}")


def _nothing_seen(verdict: Verdict, why: str) -> Verdict:
    if verdict.outcome is not GateOutcome.ACCEPTED:
        return verdict
    return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=why)
