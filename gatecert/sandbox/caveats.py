"""When what a gate said is no verdict on the candidate: the evidence that it saw it is missing."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gatecert.gates.records import GateOutcome, Verdict


def without_proof(verdict: Verdict, missed: Sequence[str]) -> Verdict:
    """The candidate's text is not what the process ran."""
    if verdict.outcome is GateOutcome.ERROR:
        return verdict
    said = f"the gate never imported the mutated text of {', '.join(missed)}"
    return msgspec.structs.replace(verdict, loaded=False, detail=said)


def without_call(verdict: Verdict) -> Verdict:
    """The gate never called the adversary, so accepting it says nothing."""
    return _nothing_seen(verdict, "the gate never called the entry in its own process")


def without_launches(verdict: Verdict) -> Verdict:
    """The gate launches no kernel of the original either: it tests nothing that we can reach."""
    return _nothing_seen(
        verdict,
        "the gate launches no Triton kernel in its own process: what a test runs in a "
        "subprocess never sees the mutant",
    )


def _nothing_seen(verdict: Verdict, why: str) -> Verdict:
    if verdict.outcome is not GateOutcome.ACCEPTED:
        return verdict
    return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=why)
