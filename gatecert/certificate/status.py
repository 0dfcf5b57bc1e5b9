"""What became of a mutant under one gate: one rule, in one place."""

from __future__ import annotations

from collections.abc import Set

from gatecert.campaign.records import Status
from gatecert.gates.records import GateOutcome, Verdict, is_oracle
from gatecert.mutants.records import CodeComparison, CodeVerdict, Mutant
from gatecert.operators.records import ObservableBy

_BY_CODE = {
    CodeVerdict.UNVIABLE: Status.UNVIABLE,
    CodeVerdict.EQUIVALENT: Status.EQUIVALENT,
    CodeVerdict.DUPLICATE: Status.DUPLICATE,
}
_BY_OUTCOME = {
    GateOutcome.ACCEPTED: Status.SURVIVED,
    GateOutcome.REJECTED: Status.KILLED,
    GateOutcome.CRASHED: Status.CRASHED,
    GateOutcome.TIMEOUT: Status.TIMEOUT,
    GateOutcome.ERROR: Status.INCONCLUSIVE,
}


def status_of(
    mutant: Mutant,
    comparison: CodeComparison | None,
    verdict: Verdict | None,
    lane_shows: Set[ObservableBy],
) -> Status:
    """The mutant's status, from evidence in order of weight.

    Compiled code comes first, since no gate can overrule it (unless a gate launched a compiled
    form outside the domain that was compared, which leaves `equivalent` unproven); then the
    label, which was fixed before anything ran; then the verdict, which counts only with the
    proof that the mutant's text was what the process imported.
    """
    if comparison is not None and comparison.verdict in _BY_CODE:
        status = _BY_CODE[comparison.verdict]
        if status is not Status.EQUIVALENT or verdict is None or not verdict.uncompared:
            return status
    if not lane_shows & set(mutant.observable_by):
        return Status.NOT_OBSERVABLE
    if verdict is None or not verdict.loaded:
        return Status.INCONCLUSIVE
    if verdict.outcome is GateOutcome.ACCEPTED and verdict.findings and not is_oracle(verdict.gate):
        return Status.UNREPORTED
    return _BY_OUTCOME[verdict.outcome]
