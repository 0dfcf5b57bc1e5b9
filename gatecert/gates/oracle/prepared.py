"""The oracle bound to a subject: every check of every case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gatecert.errors import described
from gatecert.gates.cells import Cell, Sight, sight_of
from gatecert.gates.execution import Execution, unrepeatable, worst_element
from gatecert.gates.oracle.cases import PreparedCase, likely_first
from gatecert.gates.oracle.runs import Call, NoVerdict, orders, poisons
from gatecert.gates.oracle.same_memory import CHECKED, blind_to_new_values
from gatecert.gates.records import GateOutcome, Reason, Verdict, Worst
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, Poison
from gatecert.mutants.records import Candidate
from gatecert.oracle.case import Case
from gatecert.oracle.comparators import Comparator
from gatecert.oracle.comparators.where_exact import exactly_compared, judge_where_exact
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.operations import Operation
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.subjects import Subject, load_entry


@dataclass(frozen=True, slots=True)
class Failure:
    """The first check that a candidate failed on a case."""

    reason: Reason
    detail: str
    worst: Worst | None = None


@dataclass(frozen=True, slots=True)
class Closest:
    """The element that came closest to its allowance, and by how much of it."""

    score: float = 0.0
    case: str = ""
    worst: Worst | None = None


@dataclass(frozen=True, slots=True)
class PreparedOracle:
    """The oracle bound to a subject."""

    gate: str
    subject: Subject
    operation: Operation
    comparator: Comparator
    cases: tuple[PreparedCase, ...]
    by_dtype: Mapping[str, Comparator] = field(default_factory=dict)
    once: bool = False
    """A quick look: no case runs a second time, or in another order."""

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Run the candidate on the cases, likely killers first."""
        return self._run(candidate, stop_at_first, None)

    def observe(self, candidate: Candidate) -> tuple[Verdict, tuple[Cell, ...]]:
        """Run the candidate on every case, and record each."""
        cells: list[Cell] = []
        return self._run(candidate, False, cells), tuple(cells)

    def _run(self, candidate: Candidate, stop_at_first: bool, cells: list[Cell] | None) -> Verdict:
        try:
            entry = load_entry(self.subject)
        except Exception as error:
            return self._error(candidate, described(error), 0)
        bits: dict[int, str] = {}
        findings: list[Finding] = []
        first: tuple[Failure, PreparedCase] | None = None
        failing: list[str] = []
        closest = Closest()
        reveal = candidate.reveal if stop_at_first else ()
        for number, prepared in likely_first(self.cases, reveal):
            call = Call(entry, candidate, prepared, self.operation)
            try:
                run = call.run()
                # Before a further run, which may write into the first one's outputs.
                sight = None if cells is None else self._sight(prepared, run)
                failure, near = self._check(prepared, run)
                if failure is None:
                    failure = self._check_again(call, run, number)
                if cells is not None and sight is not None:
                    cells.append(self._cell(call, run, sight, number))
            except NoVerdict as trouble:
                return self._error(candidate, f"{prepared.name}: {trouble}", len(bits) + 1)
            findings += run.findings
            bits[number] = run.bits
            if failure is None and near.score > closest.score:
                closest = near
            if failure is not None:
                failing.append(prepared.case.id)
                first = first or (failure, prepared)
                if stop_at_first:
                    break
        outputs = [output for at in sorted(bits) for output in self.cases[at].expected.outputs]
        verdict = Verdict(
            candidate=candidate.id,
            gate=self.gate,
            outcome=GateOutcome.ACCEPTED,
            findings=tuple(dict.fromkeys(findings)),
            cases=len(bits),
            margin=closest.score,
            case=closest.case,
            worst=closest.worst,
            bits=hashlib.sha256("".join(bits[at] for at in sorted(bits)).encode()).hexdigest(),
            inputs_sha256=self._inputs_of(closest.case),
            compared=sum(e.reference.size for e in outputs),
            exactly=sum(exactly_compared(e) for e in outputs),
            failed=() if stop_at_first else tuple(dict.fromkeys(failing)),
        )
        if first is None:
            return verdict
        failure, at = first
        return _rejected(verdict, failure, at)

    def _check(self, prepared: PreparedCase, run: Execution) -> tuple[Failure | None, Closest]:
        """The first failed check of a run, and its closest call."""
        closest = Closest()
        if interpreter.was_stopped(run.error):
            return Failure(Reason.BOUNDS, _told(run.findings[0])), closest
        if run.error is not None:
            return Failure(Reason.RAISED, described(run.error)), closest
        broken = contract_violation(self.operation, prepared.case, prepared.inputs, run.outputs)
        if broken is not None:
            return Failure(Reason.CONTRACT, broken), closest
        for expected, output in zip(prepared.expected.outputs, run.outputs, strict=True):
            judgement = judge_where_exact(self._comparator(prepared.case), expected, output)
            worst = worst_element(expected.name, judgement)
            if not judgement.passed:
                said = (
                    f"{judgement.mismatched} of {judgement.compared} elements of "
                    f"{expected.name} are wrong"
                )
                return Failure(Reason(judgement.reason), said, worst), closest
            if judgement.score > closest.score:
                closest = Closest(judgement.score, prepared.case.id, worst)
        if run.findings:
            return Failure(Reason.BOUNDS, _told(run.findings[0])), closest
        if run.changed:
            return Failure(Reason.INPUT_CHANGED, f"wrote to {', '.join(run.changed)}"), closest
        return None, closest

    def _inputs_of(self, case: str) -> str:
        """The hash of that case's inputs."""
        return next((one.inputs.sha256 for one in self.cases if one.case.id == case), "")

    def _comparator(self, case: Case) -> Comparator:
        return self.by_dtype.get(case.dtype, self.comparator)

    def _check_again(self, call: Call, run: Execution, number: int) -> Failure | None:
        """Does a further run of some cases agree? A lone case (a replay) has every check."""
        if self.once:
            return None
        said = self._unrepeatable(call, run, number)
        if said is not None:
            return Failure(Reason.NOT_REPEATABLE, said)
        for order in orders(run, number, self._alone):
            # Its sums may round otherwise, so it is its values that are checked, not its bits.
            failure, _ = self._check(call.prepared, call.run_in(order, number))
            if failure is not None:
                said = f"with programs {order.value}: {failure.detail}"
                return replace(failure, detail=said)
        return None

    def _unrepeatable(self, call: Call, run: Execution, number: int) -> str | None:
        """Why another call does not repeat what it should, on the cases that have one."""
        for poison in poisons(number, self._alone):
            said = unrepeatable(run, call.run_again(poison))
            if said is None:
                continue
            if unrepeatable(run, call.run_again(Poison.NAN)) is None:
                said += " where memory that nobody wrote, or a masked-off lane, is not NaN"
            return said
        if self._alone or number == min(CHECKED, len(self.cases) - 1):
            return blind_to_new_values(call)
        return None

    @property
    def _alone(self) -> bool:
        """Whether there is one case only, as in a replay, under however many configurations."""
        return all(prepared.case == self.cases[0].case for prepared in self.cases)

    def _cell(self, call: Call, run: Execution, sight: Sight, number: int) -> Cell:
        """The record of a case with all its further runs, whatever the verdict on it is."""
        again: list[Sight] = []
        untold = ""
        try:
            said = self._unrepeatable(call, run, number)
            if said is not None and sight.guard is Reason.NONE:
                sight = Sight(Reason.NOT_REPEATABLE, sight.outputs)
            for order in orders(run, number, self._alone):
                again.append(self._sight(call.prepared, call.run_in(order, number), order.value))
        except NoVerdict as trouble:
            untold = str(trouble)
        return Cell(call.prepared.name, sight, tuple(again), untold)

    def _sight(self, prepared: PreparedCase, run: Execution, order: str = "") -> Sight:
        """What an execution showed, whether or not the comparator allows it."""
        broken = run.error is None and contract_violation(
            self.operation, prepared.case, prepared.inputs, run.outputs
        )
        comparator = self._comparator(prepared.case)
        interval = comparator if isinstance(comparator, RoundingInterval) else None
        return sight_of(run, prepared.expected, bool(broken), interval, order)

    def _error(self, candidate: Candidate, detail: str, cases: int) -> Verdict:
        return Verdict(
            candidate=candidate.id,
            gate=self.gate,
            outcome=GateOutcome.ERROR,
            detail=detail,
            cases=cases,
        )


def _told(found: Finding) -> str:
    return (
        f"{found.kind.value} by {found.lanes} lanes on argument {found.argument} of "
        f"{found.kernel}, first at element {found.first_offset}"
    )


def _rejected(verdict: Verdict, failure: Failure, at: PreparedCase) -> Verdict:
    under = "" if at.config is None else f"under autotune configuration {at.config}: "
    return Verdict(
        candidate=verdict.candidate,
        gate=verdict.gate,
        outcome=GateOutcome.REJECTED,
        reason=failure.reason,
        detail=under + failure.detail,
        case=at.case.id,
        worst=failure.worst,
        findings=verdict.findings,
        cases=verdict.cases,
        margin=verdict.margin,
        bits=verdict.bits,
        inputs_sha256=at.inputs.sha256,
        compared=verdict.compared,
        exactly=verdict.exactly,
        failed=verdict.failed,
    )
