"""Run a candidate on one case under guards and say what happened, without judging values."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from gatecert.errors import described
from gatecert.gates.failing import is_no_verdict
from gatecert.gates.records import Worst
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, GuardPolicy
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.oracle.comparators import Judgement
from gatecert.oracle.formats import raw_bytes
from gatecert.oracle.inputs import Inputs, changed_inputs, fresh_copy
from gatecert.oracle.schema import Operation


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


@dataclass(frozen=True, slots=True)
class Execution:
    """One call: its outputs or its error, what the guards saw, which inputs changed.

    `bits` hashes the outputs as they were right after the call. `failures` are launches that
    failed inside the lane, even if the launcher caught the error and answered in another way.
    `shares_memory` says that programs may have met in memory, so that their order matters.
    """

    outputs: tuple[Any, ...]
    bits: str
    error: BaseException | None
    failures: tuple[str, ...]
    findings: tuple[Finding, ...]
    changed: tuple[str, ...]
    shares_memory: bool


def execute(
    entry: Callable[..., Any],
    inputs: Inputs,
    policy: GuardPolicy,
    operation: Operation | None = None,
) -> Execution:
    """Call `entry` on a fresh copy of the inputs, and find its results where they are.

    `operation` says where: in arguments that it may overwrite or that receive results. Without one
    they are what is returned.
    """
    written = () if operation is None else (*operation.in_place, *operation.destinations)
    copy = fresh_copy(inputs)
    run = execute_on(entry, copy, policy, operation)
    return replace(run, changed=tuple(changed_inputs(inputs, copy, written)))


def execute_on(
    entry: Callable[..., Any],
    inputs: Inputs,
    policy: GuardPolicy,
    operation: Operation | None = None,
) -> Execution:
    """The same on exactly these tensors, which it may change: what it changed is not said."""
    result: Any = None
    error: BaseException | None = None
    with interpreter.guarded(policy) as log:
        try:
            result = entry(*inputs.args)
        except Exception as raised:
            error = raised
    outputs = () if error is not None else results_of(result, inputs, operation)
    return Execution(
        outputs=outputs,
        bits=hash_outputs(outputs),
        error=error,
        failures=log.failures(),
        findings=log.findings(),
        changed=(),
        shares_memory=log.shares_memory,
    )


def results_of(result: Any, copy: Inputs, operation: Operation | None) -> tuple[Any, ...]:
    """What a call returned or wrote: None from one with in-place arguments means those.

    Destinations receive the first results; a launcher may return them too, or nothing.
    """
    if operation is None:
        return _as_tuple(result)
    tensors = copy.tensors
    if result is None and operation.in_place:
        return tuple(tensors[name] for name in operation.in_place)
    received = tuple(tensors[name] for name in operation.destinations)
    if not received:
        return operation.returned(copy.args, result)
    others = () if result is None else _as_tuple(result)
    return (*received, *(part for part in others if all(part is not own for own in received)))


def no_verdict(run: Execution, candidate: Candidate) -> str | None:
    """Why a run says nothing about the candidate, or None.

    What fails inside the lane is the lane's, whether or not the launcher passed it on. What the
    original raises is the environment's: counted as a failure of the kernel it would catch
    every bug where nothing runs.
    """
    if run.failures:
        return run.failures[0]
    error = run.error
    if error is None or interpreter.was_stopped(error):
        return None
    if is_no_verdict(error) or candidate.kind is CandidateKind.ORIGINAL:
        return described(error)
    return None


def unrepeatable(first: Execution, second: Execution) -> str | None:
    """Why a second call on the same input does not repeat the first, or None.

    Outputs are the caller's: a later call may neither overwrite nor share them.
    """
    if hash_outputs(first.outputs) != first.bits:
        return "the first call's output changed during a second call"
    if not _storages(first.outputs).isdisjoint(_storages(second.outputs)):
        return "a second call's output shares memory with the first's"
    if second.error is not None or second.bits != first.bits:
        return "a second call on the same input gave other bits"
    return None


def _storages(outputs: tuple[Any, ...]) -> set[int]:
    """Addresses of the memory behind the outputs; memory of no bytes is shared by all."""
    storages = [output.untyped_storage() for output in outputs if isinstance(output, torch.Tensor)]
    return {storage.data_ptr() for storage in storages if storage.nbytes()}


def worst_element(output: str, judgement: Judgement) -> Worst:
    """The worst element of a judgement, for a verdict."""
    return Worst(
        output=output,
        index=judgement.worst_index,
        error=judgement.error if math.isfinite(judgement.error) else None,
        allowance=judgement.allowance,
    )


def hash_outputs(outputs: tuple[Any, ...]) -> str:
    """SHA-256 of all output bits; equal hashes mean equal bits, shapes and dtypes."""
    digest = hashlib.sha256()
    for output in outputs:
        if isinstance(output, torch.Tensor):
            digest.update(f"{output.dtype}{tuple(output.shape)}".encode())
            digest.update(raw_bytes(output).tobytes())
        else:
            digest.update(repr(output).encode())
    return digest.hexdigest()
