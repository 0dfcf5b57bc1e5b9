"""Explanations as the sandbox's server makes them: capture once, then mutant after mutant."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gatecert.diagnosis.binding import BoundCall, KnownCall, bound_calls, known_call
from gatecert.diagnosis.calls import MOST_CALLS, Kept
from gatecert.diagnosis.capture import capture
from gatecert.diagnosis.children import Children
from gatecert.diagnosis.comparing import Comparison, comparison_of
from gatecert.diagnosis.explain import Explainer
from gatecert.diagnosis.plain_runs import call_of
from gatecert.diagnosis.records import Captured, Evidence
from gatecert.errors import EnvironmentFailure
from gatecert.gates.base import CaseGate, Gate
from gatecert.gates.built_in import BuiltInGate
from gatecert.gates.oracle import OracleGate, prepare_case
from gatecert.gates.oracle.cases import subject_cases
from gatecert.gates.presets.gate import PresetGate
from gatecert.gates.registry import make_gate
from gatecert.gates.suite.gate import with_baseline
from gatecert.mutants.overlay import note_imports
from gatecert.mutants.records import original
from gatecert.oracle.case import Case
from gatecert.oracle.operations import Operation, resolve_operation
from gatecert.sandbox.imports import forget_user_modules
from gatecert.sandbox.protocol import ExplainRequest
from gatecert.subjects import load_entry


def explain(request: ExplainRequest) -> Iterator[Evidence]:
    """Evidence of each candidate of the request, as it is measured.

    Raises:
        GatecertError: the gate cannot be prepared.
    """
    before = set(sys.modules)
    operation = None
    if request.subject.operation is not None:
        operation = resolve_operation(request.subject.operation)
    explainer = _explainer(request, operation)
    forget_user_modules(before, {path for one in request.candidates for path in one.files})
    note_imports()
    for candidate in request.candidates:
        try:
            yield explainer.explain(candidate)
        except EnvironmentFailure as error:  # of this mutant; the next may do
            yield Evidence(candidate.id, request.gate.name, Captured(why_none=str(error)))


def _explainer(request: ExplainRequest, operation: Operation | None) -> Explainer:
    subject, ref = request.subject, request.gate
    made = make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
    first = Children(subject, original(subject.name), request.limits.memory_bytes)
    compares: Comparison | None = None
    own: tuple[Case, ...] = ()
    if isinstance(made, CaseGate) and operation is not None:
        own = made.cases(subject, seed=request.seed, quick=request.quick)
    if own and operation is not None:
        captured, calls = _of_cases(own, operation, request)
        compares = _comparison_of_gate(made, operation, own)
    else:
        captured, kept, compares = _captured(made, request)
        calls = tuple(_known(first, kept, operation, request))
        own = tuple(dict.fromkeys(one.case for one in calls if one.case is not None))
    if operation is not None and not own:
        own, _ = subject_cases(operation, subject, strategy="quick", seed=request.seed)
    return Explainer(
        subject,
        ref.name,
        operation,
        captured,
        calls,
        own,
        first,
        compares,
        request.budget,
        request.seed,
    )


def _of_cases(
    own: Sequence[Case], operation: Operation, request: ExplainRequest
) -> tuple[Captured, tuple[KnownCall, ...]]:
    """The calls of a gate whose inputs are cases, spread over all where they are many."""
    step = max(1, -(-len(own) // MOST_CALLS))
    prepared = [prepare_case(operation, case, request.subject) for case in own[::step]]
    calls = tuple(KnownCall(call_of(one), one.case, one.expected) for one in prepared)
    return Captured(len(own), len(calls), len(own) - len(calls)), calls


def _captured(
    gate: Gate, request: ExplainRequest
) -> tuple[Captured, tuple[Kept, ...], Comparison | None]:
    ref = request.gate
    gate = with_baseline(gate, request.baselines.get(ref.name), request.modules, request.kernels)
    prepared = gate.prepare(request.subject, seed=request.seed, quick=request.quick)
    folder = None if ref.config is None else str(Path(ref.root, ref.config.rootdir))
    verdict, captured, kept = capture(
        prepared,
        request.subject,
        folder,
        request.kernels,
        timeout_s=request.limits.baseline_s,
        memory_bytes=request.limits.memory_bytes,
    )
    evidence = verdict.evidence
    return captured, kept, comparison_of(evidence.compared) if evidence is not None else None


def _known(
    first: Children, kept: Sequence[Kept], operation: Operation | None, request: ExplainRequest
) -> Iterator[KnownCall]:
    calls = [call for call in kept if not call.kernel]
    if operation is None or not calls:
        yield from map(KnownCall, kept)
        return
    spec = request.subject.operation or ""

    def bind() -> bytes:
        return msgspec.msgpack.encode(bound_calls(load_entry(request.subject), spec, calls))

    bound = msgspec.msgpack.decode(first.answer_of(bind), type=tuple[BoundCall, ...])
    for call, one in zip(calls, bound, strict=True):
        yield known_call(call, one, operation, request.subject.intermediate)
    yield from (KnownCall(call) for call in kept if call.kernel)


def _comparison_of_gate(gate: Gate, operation: Operation, own: Sequence[Case]) -> Comparison | None:
    dtypes = {case.dtype for case in own}
    inner = gate.load() if isinstance(gate, BuiltInGate) else gate
    if isinstance(inner, PresetGate):
        known = inner.data
        return Comparison({dtype: known.comparator_for(operation.name, dtype) for dtype in dtypes})
    if isinstance(inner, OracleGate):
        rows = {dtype: inner.rows.get((operation.name, dtype)) for dtype in dtypes}
        return Comparison({dtype: row or inner.comparator for dtype, row in rows.items()})
    return None
