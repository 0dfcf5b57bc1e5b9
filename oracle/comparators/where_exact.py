"""Equality where an output must be exact, another comparator everywhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from gatecert.oracle.comparators import ToleranceModel, judge
from gatecert.oracle.comparators.exact import Exact
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.judgement import Flags, Judgement


def exactly_compared(expected: ExpectedOutput) -> int:
    """How many elements must be equal; all of an index or count."""
    if expected.counted:
        return int(expected.reference.size)
    return 0 if expected.exact is None else int(expected.exact.sum())


def judge_where_exact(
    comparator: ToleranceModel, expected: ExpectedOutput, output: torch.Tensor
) -> Judgement:
    """Judge an output of the right shape: no element is left out, none is judged twice.

    Counts are of both parts; the worst element is that of the part that failed.
    """
    places, count = expected.exact, exactly_compared(expected)
    if expected.counted or places is None or not count:
        return judge(comparator, expected, output)
    if count == places.size:
        return judge(Exact(), expected, output)
    exact = _part(Exact(), expected, output, places)
    rest = _part(comparator, expected, output, ~places)
    first, second = (exact, rest) if exact.score >= rest.score else (rest, exact)
    return replace(
        first,
        passed=exact.passed and rest.passed,
        reason="nonfinite" if second.reason == "nonfinite" else first.reason or second.reason,
        mismatched=exact.mismatched + rest.mismatched,
        compared=exact.compared + rest.compared,
    )


def _part(
    comparator: ToleranceModel, expected: ExpectedOutput, output: torch.Tensor, places: Flags
) -> Judgement:
    """The judgement of these elements, with its index as one of the whole output."""
    part = replace(
        expected,
        reference=expected.reference[places],
        shadow=expected.shadow[places],
        mid_shadow=expected.mid_shadow[places],
        baseline=None if expected.baseline is None else expected.baseline[places],
        exact=None,
    )
    found = judge(comparator, part, output.detach().cpu()[torch.from_numpy(places)])
    index = np.argwhere(places)[found.worst_index[0]] if found.worst_index else ()
    return replace(found, worst_index=tuple(int(axis) for axis in index))
