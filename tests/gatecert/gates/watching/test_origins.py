"""What is made of the entry's outputs is followed, and in doubt it counts as looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gatecert.gates.watching.origins import Between
from gatecert.gates.watching.watch import watch

Compare = Callable[[torch.Tensor, torch.Tensor], Any]


@pytest.mark.parametrize(
    ("compare", "expected"),
    [
        (lambda y, want: torch.equal(y, want), Between.MIXED),
        (lambda y, want: torch.allclose(want, want.clone()), Between.OTHERS),
        (lambda y, want: torch.testing.assert_close((y - 0.5) / 3.0, y), Between.OUTPUTS),
        (lambda y, want: torch.equal(y.T[1:].T, y.data), Between.OUTPUTS),
        (lambda y, want: bool(((y + 1) - y).abs().max() < 1), Between.OUTPUTS),
        (lambda y, want: bool((y - want).abs().max() < 1), Between.MIXED),
        (lambda y, want: np.allclose(y.numpy(), want.numpy()), Between.MIXED),
        (lambda y, want: y.tolist() == want.tolist(), Between.MIXED),
        (lambda y, want: bytes(y.untyped_storage()) == b"", Between.MIXED),
        (lambda y, want: str(y), Between.MIXED),
        (lambda y, want: bool(y.isnan().any()), Between.MIXED),
    ],
)
def test_a_comparison_is_known_by_where_its_sides_come_from(
    compare: Compare, expected: Between
) -> None:
    y, want = torch.ones(2, 3), torch.zeros(2, 3)
    with watch() as seen:
        seen.gave_back([y])
        assert y.shape == want.shape
        with contextlib.suppress(AssertionError):
            compare(y, want)
    evidence = seen.evidence()
    counts = {
        Between.OUTPUTS: evidence.between_outputs,
        Between.OTHERS: evidence.between_others,
        Between.MIXED: evidence.with_outputs,
    }
    assert {between for between, times in counts.items() if times} == {expected}


def test_what_an_output_is_written_into_is_made_of_it() -> None:
    y, buffer = torch.ones(2, 3), torch.zeros(4, 3)
    with watch() as seen:
        seen.gave_back([y])
        buffer[:2] = y
        torch.equal(buffer, torch.zeros(4, 3))
    assert seen.evidence().with_outputs == 1
