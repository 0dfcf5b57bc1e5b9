"""gatecert's own gate: schema-aware inputs, fp64 reference, calibrated tolerance, guards."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gatecert.errors import UsageError, described
from gatecert.gates.cells import Cell, Sight, sight_of
from gatecert.gates.execution import (
    Execution,
    execute,
    no_verdict,
    unrepeatable,
    worst_element,
)
from gatecert.gates.oracle_cases import subject_cases
from gatecert.gates.records import GateOutcome, Reason, Verdict, Worst
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, GuardPolicy
from gatecert.mutants.records import Candidate
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for, why_no_case
from gatecert.oracle.comparators import Comparator, uses_baseline
from gatecert.oracle.comparators.where_exact import exactly_compared, judge_where_exact
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import Expected, ExpectedOutput, expect
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.metamorphic import check_reference
from gatecert.oracle.operations import Operation, get_operation, resolve_operation
from gatecert.oracle.strategies import RELATIONS
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.subjects import Subject, load_entry

_REPEAT_EVERY = 4
_REPEATED, _REORDERED = 0, 2
"""Which of every four cases run again, and which with their programs in another order: reversed
and shuffled in turn. Where programs meet in memory the others run interleaved, with and without
late writes in turn."""
USUAL_STRATEGY = "certify"
_DEFAULT_COMPARATOR = RoundingInterval()


@dataclass(frozen=True, slots=True)
class PreparedCase:
    """A case with its inputs and its fp64 expectation.

    `config` is the autotune configuration that it runs under where every case runs under each;
    else `turn` says whose turn it is.
    """

    case: Case
    inputs: Inputs
    expected: Expected
    config: int | None = None
    turn: int = 0

    @property
    def name(self) -> str:
        """The case's id, and its configuration where that is fixed."""
        return self.case.id if self.config is None else f"{self.case.id} config={self.config}"

    @property
    def tuning(self) -> int:
        """The position of the configuration, to be counted round and round."""
        return self.turn if self.config is None else self.config


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
class OracleGate:
    """The oracle under a named configuration: strategy x comparator, guards always on.

    `rows` hold comparators by operation and dtype, which go before `comparator`.
    """

    name: str = "oracle"
    strategy: str = USUAL_STRATEGY
    comparator: Comparator = _DEFAULT_COMPARATOR
    rows: Mapping[tuple[str, str], Comparator] = field(default_factory=dict)

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation, for its schema and reference, and cases of its strategy."""
        if subject.operation is None:
            return "it has no operation, so there is no schema and no reference"
        if self.strategy == USUAL_STRATEGY or ":" in subject.operation:
            return None
        return why_no_case(get_operation(subject.operation), self.strategy, dtypes=subject.dtypes)

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedOracle:
        """Build every case of the strategy with its inputs and reference.

        Raises:
            UsageError: the strategy has no case for the subject.
            EnvironmentFailure: the reference breaks a relation that its operation declares.
        """
        assert subject.operation is not None
        operation = resolve_operation(subject.operation)
        _check_reference(operation, subject, seed)
        strategy = self._strategy(subject, quick)
        cases, _ = subject_cases(operation, subject, strategy=strategy, seed=seed)
        if not cases:
            raise UsageError(
                f"subject {subject.name!r} has no case under strategy {self.strategy!r}: "
                f"{why_no_case(operation, self.strategy, dtypes=subject.dtypes)}"
            )
        by_dtype = {
            dtype: self.rows.get((operation.name, dtype), self.comparator)
            for dtype in subject.dtypes
        }
        prepared = [
            prepare_case(operation, case, subject, baseline=uses_baseline(by_dtype[case.dtype]))
            for case in cases
        ]
        return PreparedOracle(
            gate=self.name,
            subject=subject,
            operation=operation,
            comparator=self.comparator,
            by_dtype=by_dtype,
            cases=tuple(
                under_every_config(prepared, subject.configs)
                if subject.profile.every_config
                else in_turns(prepared, subject.configs)
            ),
        )

    def _strategy(self, subject: Subject, quick: bool) -> str:
        """Its own where it has a special one, else what the command and the profile say."""
        if self.strategy != USUAL_STRATEGY:
            return self.strategy
        return "quick" if quick else subject.profile.strategy or self.strategy


def _check_reference(operation: Operation, subject: Subject, seed: int) -> None:
    """Hold the reference to its relations, in the two cases that show most."""
    dtypes, blocks = subject.dtypes[:1], subject.blocks
    cases = cases_for(operation, dtypes=dtypes, blocks=blocks, strategy=RELATIONS, seed=seed)
    for case in cases[:2]:
        check_reference(operation, case)


def prepare_case(
    operation: Operation,
    case: Case,
    subject: Subject,
    held: Mapping[str, torch.Tensor] | None = None,
    *,
    baseline: bool = False,
) -> PreparedCase:
    """Inputs and expectation of one case; `held` tensors take the place of the case's own, and
    `baseline` asks for torch's own result."""
    inputs = make_inputs(operation, case, held)
    expected = expect(operation, case, inputs, intermediate=subject.intermediate, baseline=baseline)
    return PreparedCase(case, inputs, expected)


def under_every_config(cases: Sequence[PreparedCase], configs: int) -> Iterator[PreparedCase]:
    """The cases under each of several autotune configurations; inputs are shared."""
    if configs < 2:
        yield from cases
    else:
        for config in range(configs):
            yield from (replace(case, config=config) for case in cases)


def in_turns(cases: Sequence[PreparedCase], configs: int) -> Iterator[PreparedCase]:
    """The cases, each under one of the autotune configurations, such that each has its turn.

    Who takes which follows from the cases' ids: their order goes with dtypes and layouts. Where
    there are fewer cases than configurations, the first ones run again. Where their number is not
    known, each case's id alone says.
    """
    ranked = sorted(range(len(cases)), key=lambda i: zlib.crc32(cases[i].case.id.encode()))
    if configs < 1:
        yield from (replace(case, turn=zlib.crc32(case.case.id.encode())) for case in cases)
        return
    turns = {place: rank % configs for rank, place in enumerate(ranked)}
    yield from (replace(case, turn=turns[place]) for place, case in enumerate(cases))
    for config in range(len(cases), configs if cases else 0):
        yield replace(cases[config % len(cases)], turn=config)


class NoVerdict(Exception):
    """A run says nothing about the candidate; the message says why."""


@dataclass(frozen=True, slots=True)
class Call:
    """A candidate's entry point with a case to be called on."""

    entry: Callable[..., Any]
    candidate: Candidate
    prepared: PreparedCase
    operation: Operation
    further: dict[str, Execution] = field(default_factory=dict)
    """Further runs by their order, so that none is made twice."""

    def run(self) -> Execution:
        """Call it once, on fresh copies.

        Raises:
            NoVerdict: it failed in a way that is no evidence against the candidate.
        """
        # An autotuned kernel takes each of its configurations in some of the cases.
        with interpreter.tuned(self.prepared.tuning):
            run = execute(self.entry, self.prepared.inputs, GuardPolicy.STRICT, self.operation)
        trouble = no_verdict(run, self.candidate)
        if trouble is not None:
            raise NoVerdict(trouble)
        return run

    def run_again(self) -> Execution:
        """A second run; raises as `run`."""
        if "" not in self.further:
            self.further[""] = self.run()
        return self.further[""]

    def run_in(self, order: interpreter.ProgramOrder, seed: int) -> Execution:
        """A run with its programs in that order; raises as `run`."""
        if order.value not in self.further:
            with interpreter.scheduled(order, seed=seed):
                self.further[order.value] = self.run()
        return self.further[order.value]


@dataclass(frozen=True, slots=True)
class PreparedOracle:
    """The oracle bound to a subject."""

    gate: str
    subject: Subject
    operation: Operation
    comparator: Comparator
    cases: tuple[PreparedCase, ...]
    by_dtype: Mapping[str, Comparator] = field(default_factory=dict)

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
        bits = hashlib.sha256()
        findings: list[Finding] = []
        first: tuple[Failure, PreparedCase] | None = None
        closest = Closest()
        done = 0
        for number, prepared in enumerate(self.cases):
            done += 1
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
                return self._error(candidate, f"{prepared.name}: {trouble}", done)
            findings += run.findings
            bits.update(run.bits.encode())
            if failure is None and near.score > closest.score:
                closest = near
            if failure is not None and first is None:
                first = failure, prepared
                if stop_at_first:
                    break
        verdict = Verdict(
            candidate=candidate.id,
            gate=self.gate,
            outcome=GateOutcome.ACCEPTED,
            findings=tuple(dict.fromkeys(findings)),
            cases=done,
            margin=closest.score,
            case=closest.case,
            worst=closest.worst,
            bits=bits.hexdigest(),
            inputs_sha256=self._inputs_of(closest.case),
            compared=sum(e.reference.size for e in _outputs(self.cases[:done])),
            exactly=sum(exactly_compared(e) for e in _outputs(self.cases[:done])),
        )
        if first is None:
            return verdict
        failure, at = first
        return _rejected(verdict, failure, at)

    def _check(self, prepared: PreparedCase, run: Execution) -> tuple[Failure | None, Closest]:
        """The first failed check of a run, and its closest call."""
        closest = Closest()
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
            found = run.findings[0]
            return Failure(
                Reason.BOUNDS,
                f"{found.kind.value} by {found.lanes} lanes on argument {found.argument} of "
                f"{found.kernel}, first at element {found.first_offset}",
            ), closest
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
        turns = self._turns(number)
        if _REPEATED in turns:
            said = unrepeatable(run, call.run_again())
            if said is not None:
                return Failure(Reason.NOT_REPEATABLE, said)
        for order in self._orders(run, number, turns):
            # Its sums may round otherwise, so it is its values that are checked, not its bits.
            failure, _ = self._check(call.prepared, call.run_in(order, number))
            if failure is not None:
                said = f"with programs {order.value}: {failure.detail}"
                return replace(failure, detail=said)
        return None

    def _turns(self, number: int) -> Sequence[int]:
        return range(_REPEAT_EVERY) if self._alone else (number % _REPEAT_EVERY,)

    @property
    def _alone(self) -> bool:
        """Whether there is one case only, as in a replay, under however many configurations."""
        return all(prepared.case == self.cases[0].case for prepared in self.cases)

    def _orders(
        self, run: Execution, number: int, turns: Sequence[int]
    ) -> Iterator[interpreter.ProgramOrder]:
        alone = self._alone
        if _REORDERED in turns:
            second = number // _REPEAT_EVERY % 2 == 1
            if alone or not second:
                yield interpreter.ProgramOrder.REVERSED
            if alone or second:
                yield interpreter.ProgramOrder.SHUFFLED
        if run.shares_memory and (alone or turns[0] not in (_REPEATED, _REORDERED)):
            late = number // (_REPEAT_EVERY // 2) % 2 == 1
            if alone or not late:
                yield interpreter.ProgramOrder.INTERLEAVED
            if alone or late:
                yield interpreter.ProgramOrder.INTERLEAVED_LATE

    def _cell(self, call: Call, run: Execution, sight: Sight, number: int) -> Cell:
        """The record of a case with all its further runs, whatever the verdict on it is."""
        again: list[Sight] = []
        untold = ""
        turns = self._turns(number)
        try:
            repeats = _REPEATED not in turns or unrepeatable(run, call.run_again()) is None
            if not repeats and sight.guard is Reason.NONE:
                sight = Sight(Reason.NOT_REPEATABLE, sight.outputs)
            for order in self._orders(run, number, turns):
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
    )


def _outputs(cases: Sequence[PreparedCase]) -> Iterator[ExpectedOutput]:
    return (output for prepared in cases for output in prepared.expected.outputs)
