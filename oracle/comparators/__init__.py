"""Comparators: values that say how wrong an output may be, and the functions that apply one.

A new one is a frozen `msgspec.Struct` with the two methods of `ToleranceModel` in a file here,
and its name in `Comparator`. With that it can stand in gatecert.toml, and the tests that hold
judging records against judging outputs cover it.
"""

from __future__ import annotations

from typing import Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import InternalError
from gatecert.oracle.comparators.exact import Exact
from gatecert.oracle.comparators.linear import Absolute, AllClose, Envelope
from gatecert.oracle.comparators.whole import BaselineRatio, Cosine, RootMeanSquare
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.judgement import (
    Elements,
    Judgement,
    NotJudgeable,
    RecordJudgement,
    ToleranceModel,
    summarise,
    verdict_of,
)
from gatecert.oracle.observation import Observation
from gatecert.oracle.tolerance import RoundingInterval

Comparator: TypeAlias = (
    RoundingInterval
    | AllClose
    | Absolute
    | Envelope
    | BaselineRatio
    | RootMeanSquare
    | Cosine
    | Exact
)
COMPARATORS: tuple[type[Comparator], ...] = get_args(Comparator)


def judge(comparator: ToleranceModel, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
    """Apply a comparator to one output, whatever device it is on.

    Indices and counts must be equal under every comparator.

    Raises:
        InternalError: the output has another shape; `contract_violation` comes first.
    """
    if tuple(output.shape) != expected.shape:
        raise InternalError(
            f"{expected.name} has shape {tuple(output.shape)}, not {expected.shape}; "
            "check the contract before judging values"
        )
    if expected.counted:
        return summarise(_integers(expected, output))
    return comparator.judge(expected, output)


def judge_observation(comparator: ToleranceModel, seen: Observation) -> RecordJudgement:
    """Judge a record as `judge` would have judged the output.

    Raises:
        NotJudgeable: the record does not hold what the comparator needs.
    """
    if seen.interval is None:
        return verdict_of(False, seen.unequal > 0)
    return comparator.judge_record(seen)


def uses_baseline(comparator: Comparator) -> bool:
    """Does it compare with torch's own result, so that this must be computed?"""
    return isinstance(comparator, BaselineRatio)


def _integers(expected: ExpectedOutput, output: torch.Tensor) -> Elements:
    values: npt.NDArray[Any] = output.detach().cpu().numpy()
    failed = np.asarray(values != expected.reference)
    error = np.abs(values.astype(np.float64) - expected.reference.astype(np.float64))
    nothing = np.zeros(expected.shape)
    # Large integers may differ by less than float64 shows.
    return Elements(np.where(failed, np.maximum(error, 1.0), 0.0), nothing, failed, nothing > 0)


__all__ = [
    "COMPARATORS",
    "Absolute",
    "AllClose",
    "BaselineRatio",
    "Comparator",
    "Cosine",
    "Envelope",
    "Exact",
    "Judgement",
    "NotJudgeable",
    "RecordJudgement",
    "RootMeanSquare",
    "RoundingInterval",
    "ToleranceModel",
    "judge",
    "judge_observation",
    "uses_baseline",
]
