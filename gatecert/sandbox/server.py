"""One subject's server: prepares gates once, forks a child per candidate and gate."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable

import msgspec

from gatecert.gates.base import PreparedGate
from gatecert.gates.cells import ObservingGate, pack_cells
from gatecert.gates.records import GateOutcome, Reason, Spent, Verdict
from gatecert.gates.registry import make_gate
from gatecert.lanes import interpreter
from gatecert.mutants import adversaries
from gatecert.mutants.overlay import install_overlay, overlay_proof
from gatecert.mutants.records import CandidateKind, original
from gatecert.sandbox.caveats import without_call, without_launches, without_proof
from gatecert.sandbox.child import ChildEnd, ChildResult, run_in_child
from gatecert.sandbox.imports import forget_user_modules
from gatecert.sandbox.probe import probe
from gatecert.sandbox.protocol import (
    Event,
    Failed,
    Judged,
    Prepared,
    Probed,
    ProbeRequest,
    Request,
    ShardRequest,
    Task,
)
from gatecert.sandbox.signatures import signature_of
from gatecert.subjects import Subject

Say = Callable[[Event], None]


def serve(request: Request, say: Say) -> None:
    """Answer one request; errors of the user's making are raised as `GatecertError`."""
    _extend_path(request.subject)
    if isinstance(request, ProbeRequest):
        _serve_probe(request, say)
    else:
        _serve_shard(request, say)


def _serve_probe(request: ProbeRequest, say: Say) -> None:
    result = run_in_child(
        lambda: msgspec.json.encode(probe(request)), timeout_s=600.0, memory_bytes=8 << 30
    )
    if result.end is not ChildEnd.ANSWERED:
        say(Failed(f"probing {request.subject.entry}: {_last_words(result)}", 4))
        return
    say(msgspec.json.decode(result.answer, type=Probed | Failed))


def _serve_shard(request: ShardRequest, say: Say) -> None:
    for name in request.preload:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    before = set(sys.modules)
    prepared: dict[str, PreparedGate] = {}
    for ref in request.gates:
        started = time.monotonic()
        gate = make_gate(ref.name, ref.config, ref.root)
        prepared[ref.name] = gate.prepare(request.subject, seed=request.seed, quick=request.quick)
        say(Prepared(ref.name, time.monotonic() - started))
    forget_user_modules(before, {path for task in request.tasks for path in task.candidate.files})
    external = {ref.name for ref in request.gates if ref.config is not None}
    baselines: dict[str, Judged] = {}
    for task in request.tasks:
        gate_name = task.gate
        if gate_name not in baselines:
            first = msgspec.structs.replace(
                task, candidate=original(request.subject.name), stop_at_first=False
            )
            limit_s = request.limits.baseline_s
            baselines[gate_name] = _judge(request, prepared[gate_name], first, limit_s)
        baseline = baselines[gate_name]
        if task.candidate.kind is CandidateKind.ORIGINAL:
            say(baseline)
            continue
        usual_s = request.limits.factor * baseline.verdict.duration_s
        limit_s = max(request.limits.minimum_s, usual_s)
        judged = _judge(request, prepared[gate_name], task, limit_s)
        must_fail = task.candidate.kind is not CandidateKind.BENIGN
        if gate_name in external and baseline.verdict.launches == 0 and must_fail:
            judged = Judged(without_launches(judged.verdict))
        say(judged)


def _judge(request: ShardRequest, prepared: PreparedGate, task: Task, timeout_s: float) -> Judged:
    """Fork, overlay, judge; what went wrong on the way is in the verdict."""
    candidate = task.candidate
    files = candidate.files if request.overlay else {}

    def work() -> bytes:
        install_overlay(files)
        observed = b""
        started = time.monotonic()
        with interpreter.recording() as launches, interpreter.timed() as kernels:
            if task.observe and isinstance(prepared, ObservingGate):
                verdict, cells = prepared.observe(candidate)
                observed = pack_cells(cells)
            else:
                verdict = prepared.judge(candidate, stop_at_first=task.stop_at_first)
        compiled_forms = {signature_of(launch) for launch in launches}
        verdict = msgspec.structs.replace(
            verdict,
            spent=Spent(kernels.seconds, time.monotonic() - started),
            launches=len(launches),
            kernels=tuple(sorted({launch.kernel for launch in launches})),
            uncompared=any(form.key not in request.signatures for form in compiled_forms),
        )
        missed = overlay_proof(files)
        if missed:
            verdict = without_proof(verdict, missed)
        elif files and candidate.kind is CandidateKind.ADVERSARY and adversaries.calls() == 0:
            verdict = without_call(verdict)
        return msgspec.json.encode(Judged(verdict, observed))

    result = run_in_child(work, timeout_s=timeout_s, memory_bytes=request.limits.memory_bytes)
    if result.end is ChildEnd.ANSWERED:
        judged = msgspec.json.decode(result.answer, type=Judged)
        verdict = msgspec.structs.replace(judged.verdict, gate=task.gate, duration_s=result.seconds)
        return Judged(verdict, judged.observed)
    verdict = Verdict(
        candidate=candidate.id,
        gate=task.gate,
        outcome=_outcome_without_answer(result),
        reason=Reason.NONE,
        detail=_last_words(result),
        duration_s=result.seconds,
        signal=result.signal,
    )
    return Judged(verdict)


def _outcome_without_answer(result: ChildResult) -> GateOutcome:
    if result.end is ChildEnd.TIMEOUT:
        return GateOutcome.TIMEOUT
    # A Python error before the verdict is the environment's; only a signal, or an exit that
    # bypassed Python, is a death of the gate's process.
    return GateOutcome.ERROR if result.raised else GateOutcome.CRASHED


def _last_words(result: ChildResult) -> str:
    if result.end is ChildEnd.TIMEOUT:
        return f"no answer within {result.seconds:.0f} s"
    if result.signal:
        return f"died of signal {result.signal}"
    lines = result.log.strip().splitlines()
    return lines[-1] if lines else "ended without an answer"


def _extend_path(subject: Subject) -> None:
    for folder in reversed(subject.import_paths):
        if folder not in sys.path:
            sys.path.insert(0, folder)
