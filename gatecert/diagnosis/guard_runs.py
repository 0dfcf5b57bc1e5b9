"""Original and mutant on single cases, under guards: for what no result shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.children import Children
from gatecert.diagnosis.guards import MANNERS, guards_in
from gatecert.diagnosis.outputs import written_by
from gatecert.diagnosis.plain_runs import call_of
from gatecert.diagnosis.records import Guard
from gatecert.diagnosis.replaying import Manner, Ran
from gatecert.gates.oracle import PreparedCase
from gatecert.gates.records import ORACLE, GateOutcome, Reason, Verdict
from gatecert.oracle.operations import Operation

_REASONS = {
    Guard.BOUNDS: Reason.BOUNDS,
    Guard.INPUTS: Reason.INPUT_CHANGED,
    Guard.RACE: Reason.NOT_REPEATABLE,
    Guard.REPEAT: Reason.NOT_REPEATABLE,
    Guard.POISON: Reason.NONFINITE,
}


@dataclass(slots=True)
class GuardRuns:
    """Runs cases in every manner; a candidate fails where a guard sees it."""

    operation: Operation
    first: Children
    mutant: Children

    def originals(self, cases: Sequence[PreparedCase]) -> list[Verdict]:
        """Each is taken for right until a mutant fails on it: see `confirmed`."""
        return [_verdict(case, self.first.candidate.id) for case in cases]

    def mutants(self, cases: Sequence[PreparedCase], bits: Mapping[str, str]) -> list[Verdict]:
        """The mutant on cases, up to the first on which a guard sees it."""
        found: list[Verdict] = []
        for verdict in self._judged(self.mutant, cases):
            found.append(verdict)
            if verdict.outcome is GateOutcome.REJECTED:
                break
        return found

    def confirmed(self, case: PreparedCase) -> Verdict:
        """The original on the case: no guard may see it."""
        return self._judged(self.first, [case])[0]

    def _judged(self, children: Children, cases: Sequence[PreparedCase]) -> list[Verdict]:
        calls = [call_of(case) for case in cases]
        ran = children.ran([(call, manner, 0) for call in calls for manner in MANNERS])
        return [
            self._seen(
                _verdict(case, children.candidate.id),
                case,
                calls[place],
                dict(zip(MANNERS, ran[place * len(MANNERS) :], strict=False)),
            )
            for place, case in enumerate(cases)
        ]

    def _seen(
        self, verdict: Verdict, case: PreparedCase, call: Kept, runs: Mapping[Manner, Ran]
    ) -> Verdict:
        plain = runs[MANNERS[0]]
        if plain.error:
            return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=plain.error)
        written = written_by(call, plain, self.operation)
        for guard, said in guards_in(call, runs, written, case.expected).items():
            return msgspec.structs.replace(
                verdict,
                outcome=GateOutcome.REJECTED,
                reason=_REASONS[guard],
                detail=f"{guard.value}: {said}",
            )
        return verdict


def _verdict(case: PreparedCase, candidate: str) -> Verdict:
    return Verdict(
        candidate,
        ORACLE,
        GateOutcome.ACCEPTED,
        case=case.case.id,
        inputs_sha256=case.inputs.sha256,
    )
