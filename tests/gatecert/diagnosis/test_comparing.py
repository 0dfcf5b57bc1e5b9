"""Claims about what a gate's own comparison makes of results."""

from __future__ import annotations

import numpy as np
import torch

from gatecert.diagnosis.comparing import Comparison, comparison_of
from gatecert.diagnosis.values import kept
from gatecert.gates.evidence import BY_HAND, Compared
from gatecert.oracle.comparators.exact import Exact
from gatecert.oracle.expectation import Expected, ExpectedOutput

EXACT = np.array([1.0, 2.0])
EXPECTED = Expected(
    (ExpectedOutput("out", "float32", EXACT, np.abs(EXACT), 0 * EXACT, 0.0, 1, False),)
)


def result(scale: float) -> tuple:  # type: ignore[type-arg]
    return (kept(torch.tensor(EXACT, dtype=torch.float32) * scale, {}),)


def test_the_tolerance_that_was_seen_is_applied() -> None:
    found = comparison_of([Compared("torch.allclose", True, 1e-2, 1e-2)])
    assert found is not None
    assert found.passes(result(1.001), EXPECTED, "float32") is True
    assert found.passes(result(1.1), EXPECTED, "float32") is False
    assert found.passes((), EXPECTED, "float32") is False


def test_a_comparison_without_a_tolerance_is_not_known() -> None:
    assert comparison_of([Compared(BY_HAND, True)]) is None
    assert Comparison({"float32": Exact()}).passes(result(1.0), EXPECTED, "float16") is None


def test_a_published_checks_comparator_goes_by_dtype() -> None:
    found = Comparison({"float32": Exact()})
    assert found.passes(result(1.0), EXPECTED, "float32") is True
    assert found.passes(result(1.001), EXPECTED, "float32") is False
