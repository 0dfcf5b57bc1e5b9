"""A gate without a reference: do the relations that an operation declares hold of a kernel?

It needs shapes, dtypes and relations only, so it can judge where no reference is to be trusted.
What satisfies every relation passes, right or not: a constant factor does, where the operation
is linear.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch

from gatecert.errors import UsageError
from gatecert.gates.execution import Execution, execute, no_verdict
from gatecert.gates.records import GateOutcome, Reason, Verdict, Worst
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.records import Candidate
from gatecert.oracle.cases import cases_for
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.equations import Breach, Call, Equation, read
from gatecert.oracle.metamorphic import equations, start
from gatecert.oracle.operations import Operation, get_operation, resolve_operation
from gatecert.oracle.relations import NO_RELATIONS
from gatecert.oracle.strategies import RELATIONS as STRATEGY
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.subjects import Subject, load_entry

_COMPARATOR = RoundingInterval()
_EVERY = 2
"""Each relation is tried in every second case; the first two cases have them all."""
_DENSE_LAYOUTS = (
    *("contiguous", "transposed", "inner_transposed"),
    *("sliced", "row_padded", "offset_base"),
)
"""Layouts that can hold any values of any shape."""


@dataclass(frozen=True, slots=True)
class MetamorphicGate:
    """The relations of a subject's operation."""

    name: str = "metamorphic"

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation that declares relations."""
        if subject.operation is None:
            return "it has no operation, so no relation is declared"
        if ":" not in subject.operation:
            return _why_not(get_operation(subject.operation))
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedMetamorphic:
        """Inputs of every equation.

        Raises:
            UsageError: the operation declares no relation.
        """
        assert subject.operation is not None
        operation = resolve_operation(subject.operation)
        why_not = _why_not(operation)
        if why_not is not None:
            raise UsageError(f"gate {self.name!r} cannot judge subject {subject.name!r}: {why_not}")
        layouts = [layout for layout in subject.layouts if layout in _DENSE_LAYOUTS]
        cases = cases_for(
            operation,
            dtypes=subject.dtypes,
            layouts=layouts or ("contiguous",),
            blocks=subject.blocks,
            extra_dims=subject.dims,
            strategy=STRATEGY,
            seed=seed,
        )
        calls = [start(operation, case) for case in cases[: len(subject.dtypes) if quick else None]]
        per_dtype = dict.fromkeys(subject.dtypes, 0)
        trials = []
        for call in calls:
            turn = per_dtype[call.case.dtype]
            per_dtype[call.case.dtype] += 1
            every = equations(operation, call)
            chosen = every if quick else every[turn % _EVERY :: _EVERY]
            trials.append(Trial(call, chosen))
        return PreparedMetamorphic(self.name, subject, operation, tuple(trials))


def _why_not(operation: Operation) -> str | None:
    if operation.relations == NO_RELATIONS:
        return f"operation {operation.name!r} declares no relation"
    return None


@dataclass(frozen=True, slots=True)
class Trial:
    """A call, and the equations in which it stands."""

    call: Call
    equations: tuple[Equation, ...]


class _Stop(Exception):
    """The candidate is rejected, or nothing can be said of it; the verdict is in `args`."""


@dataclass(slots=True)
class _Runs:
    """The runs of one candidate: a call that stands in several equations is made once."""

    entry: Callable[..., Any]
    candidate: Candidate
    gate: PreparedMetamorphic
    verdict: Verdict
    done: dict[int, Execution] = field(default_factory=dict)
    bits: Any = field(default_factory=hashlib.sha256)
    nonzero: dict[str, bool] = field(default_factory=dict)
    """By output that was there: whether it had a value other than 0."""

    def outputs(self, call: Call) -> tuple[torch.Tensor, ...]:
        """The candidate's outputs; raises `_Stop` where it has none of the right form."""
        run = self.done.get(id(call))
        if run is None:
            operation = self.gate.operation
            run = execute(self.entry, call.inputs, GuardPolicy.STRICT, operation)
            self.done[id(call)] = run
            self.bits.update(run.bits.encode())
            trouble = no_verdict(run, self.candidate)
            case = call.case
            if trouble is not None:
                self.stop(GateOutcome.ERROR, Reason.NONE, f"{case.id}: {trouble}", case.id)
            if run.error is not None:
                said = f"{type(run.error).__name__}: {run.error}"
                self.stop(GateOutcome.REJECTED, Reason.RAISED, said, case.id)
            broken = contract_violation(operation, case, call.inputs, run.outputs)
            if broken is not None:
                self.stop(GateOutcome.REJECTED, Reason.CONTRACT, broken, case.id)
            there = operation.outputs_of(call.inputs.args)
            for spec, output in zip(there, run.outputs, strict=True):
                says = not spec.is_float or not output.numel() or bool((output != 0).any())
                self.nonzero[spec.name] = self.nonzero.get(spec.name, False) or says
        return run.outputs

    def stop(
        self,
        outcome: GateOutcome,
        reason: Reason,
        detail: str,
        case: str,
        worst: Worst | None = None,
    ) -> None:
        """End with that verdict."""
        raise _Stop(
            msgspec.structs.replace(
                self.verdict, outcome=outcome, reason=reason, detail=detail, case=case, worst=worst
            )
        )


@dataclass(frozen=True, slots=True)
class PreparedMetamorphic:
    """The relations bound to a subject."""

    gate: str
    subject: Subject
    operation: Operation
    trials: tuple[Trial, ...]

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Hold every equation against the candidate; the first breach decides."""
        verdict = Verdict(candidate.id, self.gate, GateOutcome.ACCEPTED)
        try:
            entry = load_entry(self.subject)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return msgspec.structs.replace(verdict, outcome=GateOutcome.ERROR, detail=said)
        runs = _Runs(entry, candidate, self, verdict)
        margin, done = 0.0, 0
        try:
            for number, trial in enumerate(self.trials):
                done += 1
                # An autotuned kernel takes each of its configurations in some of the cases.
                with interpreter.tuned(number):
                    margin = max(margin, self._hold(runs, trial))
                runs.done.clear()
            self._check_nonzero(runs)
        except _Stop as stopped:
            (verdict,) = stopped.args
        return msgspec.structs.replace(
            verdict, cases=done, margin=margin, bits=runs.bits.hexdigest()
        )

    def _hold(self, runs: _Runs, trial: Trial) -> float:
        """Every equation of a trial: the nearest that one came to its allowance."""
        margin = 0.0
        for equation in trial.equations:
            results = [runs.outputs(term.call) for term in equation.terms]
            reading = read(
                self.operation,
                equation,
                results,
                comparator=_COMPARATOR,
                intermediate=self.subject.intermediate,
            )
            if reading.breach is not None:
                self._reject(runs, trial, reading.breach)
            margin = max(margin, reading.score)
        return margin

    def _reject(self, runs: _Runs, trial: Trial, found: Breach) -> None:
        finite = found.error != float("inf")
        worst = Worst(found.output, found.index, found.error if finite else None, found.allowance)
        reason = Reason.VALUES if finite else Reason.NONFINITE
        runs.stop(GateOutcome.REJECTED, reason, str(found), trial.call.case.id, worst)

    def _check_nonzero(self, runs: _Runs) -> None:
        """Zeros satisfy nearly every relation; no operation gives them for all ordinary inputs."""
        for name, says in runs.nonzero.items():
            if not says:
                said = f"{name} is 0 everywhere, in every case"
                case = self.trials[-1].call.case.id
                runs.stop(GateOutcome.REJECTED, Reason.VALUES, said, case)
