"""Original and mutant on single cases, held against each other by their results alone: what a gate
could see that compares values, and no guard."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.children import Children, limit_beside
from gatecert.diagnosis.comparing import Comparison
from gatecert.diagnosis.noise import Difference, difference
from gatecert.diagnosis.outputs import outputs_of, written_by
from gatecert.diagnosis.replaying import Manner, Ran
from gatecert.diagnosis.values import NamedValues, TensorValue, Value, kept
from gatecert.gates.oracle import PreparedCase, prepare_case
from gatecert.gates.records import ORACLE, GateOutcome, Reason, Verdict, Worst
from gatecert.oracle.case import parse_case
from gatecert.oracle.operations import Operation
from gatecert.subjects import Subject


@dataclass(slots=True)
class PlainRuns:
    """Runs cases plainly, under each autotune configuration; a mutant fails where its results
    differ from the original's by more than rounding."""

    operation: Operation
    first: Children
    mutant: Children
    configs: int = 1
    comparison: Comparison | None = None
    """Where it is given, a mutant fails where that says no, and says yes to the original."""
    results: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    """The original's, by case."""
    _written: dict[str, frozenset[int]] = field(default_factory=dict)

    def originals(self, cases: Sequence[PreparedCase]) -> list[Verdict]:
        """The original on each case, which it passes unless it raises."""
        self.results.clear()
        self._written.clear()
        started = time.monotonic()
        found = self._ran(self.first, cases)
        self.mutant.limit_s = limit_beside(time.monotonic() - started)
        return [
            self._original(case, call, ran) for case, (call, ran) in zip(cases, found, strict=True)
        ]

    def mutants(self, cases: Sequence[PreparedCase], bits: Mapping[str, str]) -> list[Verdict]:
        """The mutant on cases, up to the first that fails."""
        found: list[Verdict] = []
        for case, (call, ran) in zip(cases, self._ran(self.mutant, cases), strict=True):
            found.append(self._mutant(case, call, ran, bits[case.case.id]))
            if found[-1].outcome is not GateOutcome.ACCEPTED:
                break
        return found

    def confirmed(self, case: PreparedCase) -> Verdict:
        """The original once more: it must give the same bits."""
        wanted = self.results[case.case.id]
        ((call, ran),) = self._ran(self.first, [case])
        verdict = _verdict(case, self.first.candidate.id)
        if _hash(self._results(case, call, ran)) == _hash(wanted):
            return verdict
        said = "the original gives other bits in a second process"
        return msgspec.structs.replace(
            verdict, outcome=GateOutcome.REJECTED, reason=Reason.NOT_REPEATABLE, detail=said
        )

    def _ran(
        self, children: Children, cases: Sequence[PreparedCase]
    ) -> list[tuple[Kept, tuple[Ran, ...]]]:
        configs = max(1, self.configs)
        calls = [call_of(case) for case in cases]
        jobs = [(call, Manner.PLAIN, config) for call in calls for config in range(configs)]
        ran = children.ran(jobs)
        return [
            (call, ran[place * configs : (place + 1) * configs]) for place, call in enumerate(calls)
        ]

    def _original(self, case: PreparedCase, call: Kept, ran: tuple[Ran, ...]) -> Verdict:
        verdict = _verdict(case, self.first.candidate.id)
        failed = next((one.error for one in ran if one.error), "")
        if failed:
            return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=failed)
        self._written[case.case.id] = written_by(call, ran[0], self.operation)
        found = self.results[case.case.id] = self._results(case, call, ran)
        return msgspec.structs.replace(verdict, bits=_hash(found))

    def _mutant(self, case: PreparedCase, call: Kept, ran: tuple[Ran, ...], bits: str) -> Verdict:
        verdict = _verdict(case, self.mutant.candidate.id)
        if any(one.hung for one in ran):
            return msgspec.structs.replace(
                verdict, outcome=GateOutcome.TIMEOUT, detail="no answer in its time"
            )
        failed = next((one.error for one in ran if one.error), "")
        if failed:
            return msgspec.structs.replace(
                verdict, outcome=GateOutcome.REJECTED, reason=Reason.RAISED, detail=failed
            )
        found = self._results(case, call, ran)
        verdict = msgspec.structs.replace(verdict, bits=_hash(found))
        if verdict.bits == bits:
            return verdict
        seen = self._difference(case, found)
        if not seen.beyond_noise or not self._is_rejected(case, found):
            return verdict
        return msgspec.structs.replace(
            verdict,
            outcome=GateOutcome.REJECTED,
            reason=Reason.VALUES if seen.largest is not None else Reason.NONFINITE,
            detail=_told(seen),
            worst=None if seen.error is None else _worst(case, seen),
        )

    def _difference(self, case: PreparedCase, found: tuple[Value, ...]) -> Difference:
        right = self.results[case.case.id]
        for one, other in zip(self._parts(right), self._parts(found), strict=False):
            seen = difference(one, other, case.expected)
            if seen.beyond_noise:
                return seen
        return Difference(True, len(right) != len(found))

    def passes(self, case_id: str, comparison: Comparison, subject: Subject) -> bool | None:
        """Whether a comparison lets the mutant's results on a case pass; None: it is not known, or
        says no to the original."""
        case = prepare_case(self.operation, parse_case(case_id), subject)
        if self.originals([case])[0].outcome is not GateOutcome.ACCEPTED:
            return None
        ((call, ran),) = self._ran(self.mutant, [case])
        if any(one.error for one in ran):
            return False
        if not self._allowed(case, self.results[case.case.id], comparison):
            return None
        return self._allowed(case, self._results(case, call, ran), comparison)

    def _is_rejected(self, case: PreparedCase, found: tuple[Value, ...]) -> bool:
        if self.comparison is None:
            return True
        right = self.results[case.case.id]
        return self._allowed(case, right, self.comparison) and not self._allowed(
            case, found, self.comparison
        )

    def _allowed(
        self, case: PreparedCase, results: tuple[Value, ...], comparison: Comparison
    ) -> bool:
        parts = self._parts(results)
        return all(comparison.passes(part, case.expected, case.case.dtype) for part in parts)

    def _parts(self, results: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        """Results by configuration."""
        each = len(results) // max(1, self.configs)
        for start in range(0, len(results), each or 1):
            yield results[start : start + each]

    def _results(self, case: PreparedCase, call: Kept, ran: tuple[Ran, ...]) -> tuple[Value, ...]:
        written = self._written[case.case.id]
        return tuple(value for one in ran for value in outputs_of(call, one, written))


def call_of(case: PreparedCase) -> Kept:
    """The call of the entry that a case makes."""
    numbers: dict[int, int] = {}
    return Kept(tuple(kept(arg, numbers) for arg in case.inputs.args), NamedValues({}))


def _verdict(case: PreparedCase, candidate: str) -> Verdict:
    return Verdict(
        candidate,
        ORACLE,
        GateOutcome.ACCEPTED,
        case=case.case.id,
        inputs_sha256=case.inputs.sha256,
    )


def _worst(case: PreparedCase, seen: Difference) -> Worst:
    outputs = case.expected.outputs
    return Worst(outputs[0].name if outputs else "", (), seen.error, seen.own_error or 0.0)


def _told(seen: Difference) -> str:
    if seen.largest is None:
        return "results differ in kind, or in what is not finite"
    return f"results differ by up to {seen.largest:.3g}"


def _hash(values: Sequence[Value]) -> str:
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, TensorValue):
            digest.update(f"{value.dtype}{value.shape}".encode() + value.data)
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()
