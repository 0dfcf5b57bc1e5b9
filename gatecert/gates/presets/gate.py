"""Published checks as gates: run as their sources say, holes included."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
import torch

from gatecert.errors import UsageError, described, did_you_mean
from gatecert.gates.execution import Execution, execute, no_verdict, worst_element
from gatecert.gates.presets.data import PresetData, cases_of, load_presets
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.records import Candidate
from gatecert.oracle.case import Case
from gatecert.oracle.comparators import judge
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.eager import eager_results
from gatecert.oracle.expectation import Expected, ExpectedOutput, expect
from gatecert.oracle.formats import STORAGE_FORMATS, to_float64, torch_dtype
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.operations import Operation, resolve_operation
from gatecert.subjects import Subject, load_entry


def presets() -> tuple[PresetGate, ...]:
    """Every preset, in the order of the file."""
    return tuple(PresetGate(name, data) for name, data in load_presets().preset.items())


def get_preset(name: str) -> PresetGate:
    """The preset called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    known = {preset.name: preset for preset in presets()}
    if name in known:
        return known[name]
    hint = did_you_mean(name, known)
    raise UsageError(f"unknown preset {name!r}; {hint}")


@dataclass(frozen=True, slots=True)
class PresetGate:
    """A published check under its name."""

    name: str
    data: PresetData

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation, and a dtype that the check knows."""
        if subject.operation is None:
            return "it has no operation, so there are no inputs and no reference"
        if not set(subject.dtypes) & set(self.data.dtypes):
            return f"{self.name} checks {', '.join(self.data.dtypes)} only"
        narrow = [
            spec.kind
            for spec in resolve_operation(subject.operation).outputs
            if spec.kind in STORAGE_FORMATS
        ]
        if narrow and getattr(self.data.comparator, "compare_dtype", "") == "output":
            return f"it compares in the result's dtype, and torch computes nothing in {narrow[0]}"
        return None

    def cases(self, subject: Subject, *, seed: int, quick: bool) -> tuple[Case, ...]:
        """The cases that it tries."""
        operation = resolve_operation(subject.operation or "")
        return cases_of(self.data, operation, subject.dtypes, subject.dims, seed)

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedPreset:
        """Build inputs and references. `quick` changes nothing: the check is what it is."""
        assert subject.operation is not None
        operation = resolve_operation(subject.operation)
        cases = self.cases(subject, seed=seed, quick=quick)
        return PreparedPreset(
            gate=self.name,
            data=self.data,
            subject=subject,
            operation=operation,
            trials=tuple(_trial(self.data, operation, case) for case in cases),
        )


@dataclass(frozen=True, slots=True)
class Trial:
    """One case with its inputs and what the preset takes for right."""

    case: Case
    inputs: Inputs
    expected: Expected


@dataclass(frozen=True, slots=True)
class PreparedPreset:
    """A preset bound to a subject."""

    gate: str
    data: PresetData
    subject: Subject
    operation: Operation
    trials: tuple[Trial, ...]

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Run every trial; guards only watch."""
        verdict = Verdict(candidate.id, self.gate, GateOutcome.ACCEPTED)
        replace = msgspec.structs.replace
        try:
            entry = load_entry(self.subject)
        except Exception as error:
            said = described(error)
            return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
        bits = hashlib.sha256()
        for done, trial in enumerate(self.trials, start=1):
            # Not poisoned, as the checker itself does not, but the same in every run.
            with interpreter.repeatable_memory():
                run = execute(entry, trial.inputs, GuardPolicy.LENIENT, self.operation)
            bits.update(run.bits.encode())
            verdict = replace(
                verdict,
                cases=done,
                findings=tuple(dict.fromkeys(verdict.findings + run.findings)),
                bits=bits.hexdigest(),
            )
            trouble = no_verdict(run, candidate)
            if trouble is not None:
                said = f"{trial.case.id}: {trouble}"
                return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
            if verdict.outcome is GateOutcome.ACCEPTED:
                verdict = self._after(trial, run, verdict)
            if stop_at_first and verdict.outcome is GateOutcome.REJECTED:
                break
        return verdict

    def _after(self, trial: Trial, run: Execution, verdict: Verdict) -> Verdict:
        """The verdict once this trial is in: still accepting, or rejecting with the reason."""
        no = msgspec.structs.replace(
            verdict, outcome=GateOutcome.REJECTED, reason=Reason.CONTRACT, case=trial.case.id
        )
        if run.error is not None:
            said = described(run.error)
            return msgspec.structs.replace(no, reason=Reason.RAISED, detail=said)
        broken = self._contract(trial, run)
        if broken is not None:
            return msgspec.structs.replace(no, detail=broken)
        comparator = self.data.comparator_for(self.operation.name, trial.case.dtype)
        for wanted, output in zip(trial.expected.outputs, run.outputs, strict=True):
            expected, candidate = _broadcast(wanted, output)
            judgement = judge(comparator, expected, candidate)
            if not judgement.passed:
                return msgspec.structs.replace(
                    no,
                    reason=Reason(judgement.reason),
                    detail=f"{judgement.mismatched} of {judgement.compared} elements of "
                    f"{wanted.name} differ beyond the tolerance",
                    worst=worst_element(wanted.name, judgement),
                )
            if judgement.score > verdict.margin:
                verdict = msgspec.structs.replace(
                    verdict,
                    margin=judgement.score,
                    case=trial.case.id,
                    worst=worst_element(wanted.name, judgement),
                )
        return verdict

    def _contract(self, trial: Trial, run: Execution) -> str | None:
        """What makes the published check raise or say no before it looks at values."""
        if self.data.shape_check:
            return contract_violation(self.operation, trial.case, trial.inputs, run.outputs)
        if len(run.outputs) != len(trial.expected.outputs):
            return f"{len(run.outputs)} outputs instead of {len(trial.expected.outputs)}"
        for wanted, output in zip(trial.expected.outputs, run.outputs, strict=True):
            if not isinstance(output, torch.Tensor):
                return f"{wanted.name} is a {type(output).__name__}, not a tensor"
            if output.dtype != torch_dtype(wanted.dtype):
                return f"{wanted.name} has dtype {output.dtype}, not {wanted.dtype}"
            try:
                np.broadcast_shapes(tuple(output.shape), wanted.shape)
            except ValueError:
                return f"{wanted.name} has shape {tuple(output.shape)}, not {wanted.shape}"
        return None


def _trial(data: PresetData, operation: Operation, case: Case) -> Trial:
    inputs = make_inputs(operation, case)
    make: Callable[[Operation, Case, Inputs], Expected] = (
        _eager if data.reference == "eager" else expect
    )
    return Trial(case, inputs, make(operation, case, inputs))


def _eager(operation: Operation, case: Case, inputs: Inputs) -> Expected:
    """The operation's own formula, computed by PyTorch in the tested dtype."""
    results = eager_results(operation, case.dtype, inputs.args)
    return Expected(
        tuple(
            ExpectedOutput(
                name=spec.name,
                dtype=spec.dtype(case.dtype),
                reference=to_float64(value) if value.is_floating_point() else value.numpy(),
                shadow=np.zeros(tuple(value.shape)),
                mid_shadow=np.zeros(tuple(value.shape)),
                mid_unit=0.0,
                reduction_length=1,
                contraction=False,
            )
            for spec, value in zip(operation.outputs_of(inputs.args), results, strict=True)
        )
    )


def _broadcast(
    expected: ExpectedOutput, output: torch.Tensor
) -> tuple[ExpectedOutput, torch.Tensor]:
    """Both in the shape that torch.allclose compares them in."""
    shape = np.broadcast_shapes(tuple(output.shape), expected.shape)
    if shape == expected.shape == tuple(output.shape):
        return expected, output
    reference = np.broadcast_to(expected.reference, shape)
    return dataclasses.replace(expected, reference=reference), output.broadcast_to(shape)
