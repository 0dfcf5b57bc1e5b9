"""One subject's server: prepares gates once, forks a child per candidate and gate."""

from __future__ import annotations

import contextlib
import functools
import importlib
import operator
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gatecert.diagnosis.serve import explain
from gatecert.encoding import decode, encode
from gatecert.gates.base import PreparedGate, SelectingGate
from gatecert.gates.cells import ObservingGate, pack_cells
from gatecert.gates.command.elsewhere import GateElsewhere
from gatecert.gates.reads import GateReads
from gatecert.gates.records import GateOutcome, Reason, Spent, Verdict
from gatecert.gates.registry import make_gate
from gatecert.gates.suite.gate import with_baseline
from gatecert.lanes import interpreter
from gatecert.lanes.records import Launch
from gatecert.mutants import adversaries
from gatecert.mutants.overlay import install_overlay, note_imports, overlay_proof
from gatecert.mutants.records import Candidate, CandidateKind, original
from gatecert.sandbox.caveats import (
    check_baseline,
    without_call,
    without_launches,
    without_proof,
    without_use,
)
from gatecert.sandbox.child import ChildEnd, ChildResult, run_in_child
from gatecert.sandbox.imports import forget_user_modules, is_users
from gatecert.sandbox.naming import under_known_names
from gatecert.sandbox.private_tree import tree_notes
from gatecert.sandbox.probe import probe
from gatecert.sandbox.protocol import (
    Event,
    Explained,
    ExplainRequest,
    Failed,
    Hunted,
    HuntRequest,
    Judged,
    Prepared,
    ProbeRequest,
    Request,
    ShardRequest,
    Task,
    decode_event,
)
from gatecert.sandbox.reads import watch_reads
from gatecert.sandbox.relocation import as_users, moved
from gatecert.sandbox.signatures import signature_of
from gatecert.subjects import Subject
from gatecert.witness.serve import hunt

Say = Callable[[Event], None]


def serve(request: Request, say: Say) -> None:
    """Answer one request; errors of the user's making are raised as `GatecertError`.

    Where a gate of the user's runs, all is done in a private copy of the project.
    """
    with moved(request) as (here, tree):
        _extend_path(here.subject)
        if isinstance(here, ProbeRequest):
            _serve_probe(here, lambda event: say(as_users(event, tree)))
        elif isinstance(here, HuntRequest):
            _preload(here.preload)
            say(Hunted(hunt(here)))
        elif isinstance(here, ExplainRequest):
            _preload(here.preload)
            for evidence in explain(here):
                say(as_users(Explained(evidence), tree))
        else:
            _serve_shard(here, lambda event: say(as_users(event, tree)))


def _serve_probe(request: ProbeRequest, say: Say) -> None:
    result = run_in_child(lambda: encode(probe(request)), timeout_s=600.0, memory_bytes=8 << 30)
    if result.end is not ChildEnd.ANSWERED:
        say(Failed(f"probing {request.subject.entry}: {result.last_words}", 4))
        return
    say(decode_event(result.answer))


def _serve_shard(request: ShardRequest, say: Say) -> None:
    _preload(request.preload)
    before = set(sys.modules)
    began = time.monotonic()
    prepared: dict[str, PreparedGate] = {}
    for ref in request.gates:
        started = time.monotonic()
        gate = make_gate(ref.name, ref.config, ref.root, ref.around, ref.oracle)
        known = request.baselines.get(ref.name)
        gate = with_baseline(gate, known, request.modules, request.kernels)
        prepared[ref.name] = gate.prepare(request.subject, seed=request.seed, quick=request.quick)
        say(Prepared(ref.name, time.monotonic() - started))
    forget_user_modules(before, {path for task in request.tasks for path in task.candidate.files})
    note_imports()
    external = {ref.name for ref in request.gates if ref.config is not None}
    baselines: dict[str, Judged] = {}
    for task in request.tasks:
        if request.stop_after_s is not None and time.monotonic() - began > request.stop_after_s:
            break
        gate_name = task.gate
        if gate_name not in baselines:
            baselines[gate_name] = _baseline_of(request, prepared[gate_name], task)
            notes = _notes(prepared[gate_name], baselines[gate_name].verdict)
            say(Prepared(gate_name, 0.0, notes))
        baseline = baselines[gate_name]
        if task.candidate.kind is CandidateKind.ORIGINAL:
            say(baseline)
            continue
        if (certain := _without_running(prepared[gate_name], task)) is not None:
            say(certain)
            continue
        usual_s = request.limits.factor * baseline.verdict.duration_s
        limit_s = max(request.limits.minimum_s, usual_s)
        judged = _judge(request, prepared[gate_name], task, limit_s)
        must_fail = task.candidate.kind is not CandidateKind.BENIGN
        if gate_name in external and baseline.verdict.launches == 0:
            caveat = without_launches if must_fail else without_use
            judged = Judged(caveat(judged.verdict))
        say(judged)


def _baseline_of(request: ShardRequest, prepared: PreparedGate, task: Task) -> Judged:
    """The original under the gate of `task`: as often as its table says where this request has
    it among its tasks, else what the run knows of it, or once.

    Raises:
        ControlRejected: a gate that runs in processes of its own rejects it.
        EnvironmentFailure: such a gate or a function gives no verdict, or runs differ.
    """
    first = original(request.subject.name)
    table = next(ref.config for ref in request.gates if ref.name == task.gate)
    mine = any(one.candidate == first and one.gate == task.gate for one in request.tasks)
    if not mine and (known := request.originals.get(task.gate)) is not None:
        return Judged(known)
    # A selecting gate has measured itself on the original.
    often = mine and not isinstance(prepared, SelectingGate)
    runs = table.runs_on_original if table is not None and often else 1
    task = msgspec.structs.replace(task, candidate=first, stop_at_first=False)
    tree_notes()  # what other gates did is none of this one's
    said = [_judge(request, prepared, task, request.limits.baseline_s) for _ in range(runs)]
    elsewhere = isinstance(prepared, GateElsewhere)
    check_baseline(
        task.gate,
        [one.verdict for one in said],
        must_accept=elsewhere,
        must_answer=table is not None and often,
    )
    return _with_baseline(_with_reads_of_all(said), prepared)


def _notes(prepared: PreparedGate, baseline: Verdict) -> tuple[str, ...]:
    """What a user should know before waiting for many verdicts."""
    notes: tuple[str, ...] = ()
    if isinstance(prepared, GateElsewhere):
        each_s = baseline.duration_s
        notes = (f"a fresh process for each candidate: {each_s:.1f} s on the original",)
    if isinstance(prepared, SelectingGate):
        notes += prepared.baseline.notes()
    return (*notes, *tree_notes())


def _judge(request: ShardRequest, prepared: PreparedGate, task: Task, timeout_s: float) -> Judged:
    """Fork, overlay, judge; what went wrong on the way is in the verdict."""
    candidate = task.candidate
    files = candidate.files if request.overlay else {}
    is_original = candidate.kind is CandidateKind.ORIGINAL
    if isinstance(prepared, SelectingGate):
        prepared.settle(candidate)

    def work() -> bytes:
        if isinstance(prepared, GateElsewhere):
            verdict = _judged_elsewhere(request, prepared, task, files)
            return encode(Judged(verdict))
        if (folder := _folder_of(request, task.gate)) is not None:
            os.chdir(folder)
        install_overlay(files)
        reads = watch_reads(is_users) if _folder_of(request, task.gate) is not None else None
        observed = b""
        started = time.monotonic()
        with interpreter.recording() as launches, interpreter.timed() as kernels:
            if task.observe and isinstance(prepared, ObservingGate):
                verdict, cells = prepared.observe(candidate)
                observed = pack_cells(cells)
            else:
                verdict = prepared.judge(candidate, stop_at_first=task.stop_at_first)
        launches = under_known_names(launches, request.modules)
        verdict = msgspec.structs.replace(
            verdict,
            spent=Spent(kernels.seconds, time.monotonic() - started),
            launches=len(launches),
            kernels=tuple(sorted({launch.kernel for launch in launches})),
            uncompared=_is_uncompared(request, candidate, launches),
            # On the original also what was imported before, in preparing the gate.
            reads=None if reads is None else reads.names(modules=is_original),
        )
        missed = overlay_proof(files)
        if missed:
            verdict = without_proof(verdict, missed)
        elif files and candidate.kind is CandidateKind.ADVERSARY and adversaries.calls() == 0:
            verdict = without_call(verdict)
        return encode(Judged(verdict, observed))

    result = run_in_child(work, timeout_s=timeout_s, memory_bytes=request.limits.memory_bytes)
    if result.end is ChildEnd.ANSWERED:
        judged: Judged = decode(result.answer, Judged)
        verdict = msgspec.structs.replace(judged.verdict, gate=task.gate, duration_s=result.seconds)
        return Judged(verdict, judged.observed)
    verdict = Verdict(
        candidate=candidate.id,
        gate=task.gate,
        outcome=_outcome_without_answer(result),
        reason=Reason.NONE,
        detail=result.last_words,
        duration_s=result.seconds,
        signal=result.signal,
    )
    return Judged(verdict)


def _folder_of(request: ShardRequest, gate: str) -> Path | None:
    """The folder that a gate of the user's runs in."""
    ref = next(ref for ref in request.gates if ref.name == gate)
    return None if ref.config is None else Path(ref.root, ref.config.rootdir)


def _judged_elsewhere(
    request: ShardRequest, prepared: GateElsewhere, task: Task, files: Mapping[str, str]
) -> Verdict:
    """The verdict of a gate whose processes say themselves what they saw."""
    started = time.monotonic()
    verdict, seen = prepared.run_elsewhere(task.candidate, files, stop_at_first=task.stop_at_first)
    modules = seen.modules
    launches = under_known_names(seen.launches, request.modules, lambda name: modules.get(name, ""))
    verdict = msgspec.structs.replace(
        verdict,
        spent=Spent(seen.kernels_s, time.monotonic() - started),
        launches=seen.launch_count,
        kernels=tuple(sorted({launch.kernel for launch in launches})),
        uncompared=_is_uncompared(request, task.candidate, launches),
        findings=seen.findings,
        reads=seen.reads,
    )
    if seen.missed:
        return without_proof(verdict, seen.missed, seen.blind)
    if files and task.candidate.kind is CandidateKind.ADVERSARY and seen.adversary_calls == 0:
        return without_call(verdict)
    return verdict


def _is_uncompared(request: ShardRequest, candidate: Candidate, launches: Iterable[Launch]) -> bool:
    """Was the changed code launched in a compiled form that mutants were not compared by?

    A gate's tests may launch kernels of other subjects too: those say nothing of this one.
    """
    forms = {
        signature_of(launch)
        for launch in launches
        if not candidate.kernels or launch.kernel in candidate.kernels
    }
    return any(form.key not in request.signatures for form in forms)


def _with_reads_of_all(said: Sequence[Judged]) -> Judged:
    """The first of several runs on the original, with what any of them read."""
    reads = [one.verdict.reads for one in said if one.verdict.reads is not None]
    if not reads:
        return said[0]
    both = functools.reduce(operator.or_, reads)
    return Judged(msgspec.structs.replace(said[0].verdict, reads=both), said[0].observed)


def _with_baseline(judged: Judged, prepared: PreparedGate) -> Judged:
    """The verdict on the original with what the gate learned from it, so that it is kept."""
    if not isinstance(prepared, SelectingGate):
        return judged
    baseline = prepared.baseline
    reads = baseline.reads | (judged.verdict.reads or GateReads())
    verdict = msgspec.structs.replace(judged.verdict, baseline=baseline, reads=reads)
    return Judged(verdict, judged.observed)


def _without_running(prepared: PreparedGate, task: Task) -> Judged | None:
    verdict = None
    if isinstance(prepared, SelectingGate):
        verdict = prepared.without_running(task.candidate)
    return None if verdict is None else Judged(verdict)


def _outcome_without_answer(result: ChildResult) -> GateOutcome:
    if result.end is ChildEnd.TIMEOUT:
        return GateOutcome.TIMEOUT
    # A Python error before the verdict is the environment's; only a signal, or an exit that
    # bypassed Python, is a death of the gate's process.
    return GateOutcome.ERROR if result.raised else GateOutcome.CRASHED


def _preload(libraries: Iterable[str]) -> None:
    for name in libraries:
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _extend_path(subject: Subject) -> None:
    for folder in reversed(subject.import_paths):
        if folder not in sys.path:
            sys.path.insert(0, folder)
