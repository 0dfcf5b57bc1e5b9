"""The tolerance that parts a mutant from controls keeps its distance from these, or is none."""

from __future__ import annotations

import numpy as np
import torch

from gatecert.gates.cells import Cell, Sight
from gatecert.gates.records import Reason
from gatecert.oracle.observation import observe
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.remedies.records import ENVELOPE
from gatecert.remedies.tolerance import tolerances_of
from tests.oracle.expectations import expected

CASE = "softmax/{}/B=2,N=4/contiguous/normal/seed=0"
REFERENCE = np.linspace(0.5, 2.0, 8).reshape(2, 4)


def cells(error: float, dtype: str = "float32", guard: Reason = Reason.NONE) -> tuple[Cell, ...]:
    """A case on which one element is wrong by so much."""
    made = expected(REFERENCE, dtype)
    output = torch.from_numpy(REFERENCE).to(getattr(torch, dtype)).clone()
    output[1, 1] += error
    seen = observe(made, output, interval=RoundingInterval())
    return (Cell(CASE.format(dtype), Sight(guard, (seen,))),)


def test_a_mutant_beyond_all_controls_is_parted_by_what_lies_between() -> None:
    (found,) = tolerances_of([cells(0.0), cells(1e-4)], cells(1e-2))
    assert (found.dtype, found.controls) == ("float32", 2)
    assert found.atol is not None
    assert ENVELOPE * 0.9e-4 < found.atol < found.mutant_needs < 1.1e-2


def test_a_mutant_within_the_noise_of_controls_is_not_parted() -> None:
    (found,) = tolerances_of([cells(1e-4)], cells(1.2e-4))
    assert found.atol is None


def test_dtypes_are_told_apart() -> None:
    found = tolerances_of(
        [(*cells(0.0), *cells(1e-2, "float16"))], (*cells(1e-3), *cells(1e-2, "float16"))
    )
    assert {one.dtype: one.atol is not None for one in found} == {
        "float32": True,
        "float16": False,
    }


def test_what_broke_more_than_values_is_not_counted() -> None:
    assert tolerances_of([cells(0.0)], cells(1e-2, guard=Reason.BOUNDS)) == ()
