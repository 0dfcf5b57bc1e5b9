"""Equality."""

from __future__ import annotations

import msgspec
import numpy as np
import torch

from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import round_to_dtype, to_float64
from gatecert.oracle.judgement import (
    Elements,
    Judgement,
    RecordJudgement,
    misplaced,
    summarise,
    verdict_of,
)
from gatecert.oracle.observation import Observation, nonfinite_differs


class Exact(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """`y` is `r` rounded to the output's dtype; -0 equals +0."""

    def judge(self, expected: ExpectedOutput, output: torch.Tensor) -> Judgement:
        """Each element must be the rounded reference."""
        y = to_float64(output)
        rounded = round_to_dtype(expected.reference, expected.dtype)
        nonfinite = misplaced(rounded, y)
        failed = nonfinite | (np.isfinite(rounded) & (rounded != y))
        with np.errstate(invalid="ignore"):
            error = np.where(failed, np.abs(y - rounded), 0.0)
        error = np.where(nonfinite, np.inf, error)
        return summarise(Elements(error, np.zeros(expected.shape), failed, nonfinite))

    def judge_record(self, seen: Observation) -> RecordJudgement:
        """By the count of elements that are not the rounded reference."""
        return verdict_of(nonfinite_differs(seen, "match"), seen.unequal > 0)
