"""Run a candidate on one case under guards and say what happened, without judging values."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gatecert.gates.records import Worst
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, GuardPolicy
from gatecert.oracle.comparators import Judgement
from gatecert.oracle.inputs import Inputs, changed_inputs, fresh_copy


@dataclass(frozen=True, slots=True)
class Execution:
    """One call: its outputs or its error, what the guards saw, which inputs changed."""

    outputs: tuple[Any, ...]
    error: BaseException | None
    findings: tuple[Finding, ...]
    changed: tuple[str, ...]


def execute(
    entry: Callable[..., Any],
    inputs: Inputs,
    policy: GuardPolicy,
    in_place: tuple[str, ...] = (),
) -> Execution:
    """Call `entry` on a fresh copy of the inputs.

    A None result of an operation with in-place arguments is read from those arguments.
    """
    copy = fresh_copy(inputs)
    before = fresh_copy(inputs)
    result: Any = None
    error: BaseException | None = None
    with interpreter.guarded(policy) as log:
        try:
            result = entry(*copy.args)
        except Exception as raised:
            error = raised
    if result is None and in_place and error is None:
        result = tuple(copy.args[copy.names.index(name)] for name in in_place)
    outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return Execution(
        outputs=outputs if error is None else (),
        error=error,
        findings=log.findings(),
        changed=tuple(changed_inputs(before, copy, in_place)),
    )


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
            plain = output.detach().cpu().contiguous()
            digest.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
            digest.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
        else:
            digest.update(repr(output).encode())
    return digest.hexdigest()
