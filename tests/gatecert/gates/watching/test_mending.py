"""What mends an output before it is compared, and what does not; and how much of it is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gatecert.gates.watching.watch import watch

WANT = torch.linspace(-1.0, 1.0, 8)
BAD = WANT.clone()
BAD[3] = torch.nan
"""What the entry gives back."""
Compare = Callable[[torch.Tensor, torch.Tensor], Any]


def overwrites(y: torch.Tensor, want: torch.Tensor) -> None:
    wrong = ~((y - want).abs() < 1e-6)
    y[wrong] = want[wrong]
    torch.equal(y, want)


def copies(y: torch.Tensor, want: torch.Tensor) -> None:
    y.copy_(want)
    torch.equal(y, want)


def spoils_the_reference(y: torch.Tensor, want: torch.Tensor) -> None:
    want[y.isnan()] = torch.nan
    torch.testing.assert_close(y, want, equal_nan=True)


def fills(y: torch.Tensor, want: torch.Tensor) -> None:
    torch.equal(y.masked_fill(y.isnan(), 0.0), want)


def compares_by_hand(y: torch.Tensor, want: torch.Tensor) -> None:
    bool((y - want).nan_to_num().abs().max() < 1)


def compares_arrays(y: torch.Tensor, want: torch.Tensor) -> None:
    np.allclose(np.nan_to_num(y.numpy()), want.numpy())


def mended_by(compare: Compare, y: torch.Tensor) -> set[str]:
    """How the comparisons say that the output was mended."""
    given, want = y.clone(), WANT.clone()
    with watch() as seen:
        seen.gave_back([given])
        compare(given, want)
    assert seen.evidence().compared
    return {mend for one in seen.evidence().compared for mend in one.mended}


@pytest.mark.parametrize(
    ("compare", "mend"),
    [
        (lambda y, want: torch.equal(y.nan_to_num(), want), "nan_to_num"),
        (lambda y, want: torch.equal(torch.where(y.isfinite(), y, want), want), "where"),
        (lambda y, want: torch.equal(y.where(y == y, 0.0), want), "where"),
        (lambda y, want: torch.equal(y[y.isfinite()], want[y.isfinite()]), "getitem"),
        (lambda y, want: torch.allclose(y.masked_select(y == y), want[y == y]), "masked_select"),
        (fills, "masked_fill"),
        (overwrites, "setitem"),
        (copies, "copy"),
        (spoils_the_reference, "setitem"),
        (compares_by_hand, "nan_to_num"),
        (compares_arrays, "nan_to_num"),
    ],
)
def test_a_comparison_of_what_was_mended_says_how(compare: Compare, mend: str) -> None:
    assert mended_by(compare, BAD) == {mend}
    assert mended_by(compare, WANT) == set()  # there is nothing to mend in it


def test_a_limit_mends_what_lies_beyond_and_no_denominator() -> None:
    def limited(y: torch.Tensor, want: torch.Tensor) -> None:
        torch.equal(y.float()[1:].clamp(-1.0, 1.0), want[1:])

    def relative(y: torch.Tensor, want: torch.Tensor) -> None:
        bool(((y - want) / (y * y).clamp(min=1e-3)).abs().max() < 1)

    assert mended_by(limited, 3.0 * WANT) == {"clamp"}
    assert mended_by(limited, WANT) == set()
    assert mended_by(relative, 0.0 * WANT) == set()


@pytest.mark.parametrize(
    "compare",
    [
        lambda y, want: torch.equal(y[want > 0], want[want > 0]),
        lambda y, want: torch.equal(torch.where(want > 0, y, 0.0), want.clamp(min=0.0)),
        lambda y, want: torch.equal(y[:3], want[:3]),
        lambda y, want: torch.equal(y[y.isnan() | (y == y)], want),
        lambda y, want: torch.equal(y, want.nan_to_num()),
        lambda y, want: (y.nan_to_num().max(), torch.equal(y, want)),
    ],
)
def test_a_mask_that_does_not_come_from_the_output_mends_nothing(compare: Compare) -> None:
    assert mended_by(compare, BAD) == set()


def in_rows(y: torch.Tensor, want: torch.Tensor) -> None:
    for row in range(4):
        torch.equal(y.view(4, 2)[row], want.view(4, 2)[row])


@pytest.mark.parametrize(
    ("compare", "elements", "is_whole"),
    [
        (lambda y, want: torch.equal(y[:3], want[:3]), (3, 8), False),
        (lambda y, want: torch.equal(y[:6].double()[::2], want[:6:2].double()), (3, 8), False),
        (lambda y, want: bool((y[:3] - want[:3]).abs().max() < 1), (3, 8), False),
        (lambda y, want: np.allclose(y.view(4, 2)[:1] + 0, want.view(4, 2)[:1]), (2, 8), False),
        (lambda y, want: bool(((y - want)[:3].abs() > 1).any()), (3, 8), False),
        (lambda y, want: bool(((y - want).abs() > 1).any()), (0, 0), True),
        (in_rows, (8, 8), False),
        (lambda y, want: torch.equal(y.view(4, 2), want.view(4, 2)), (0, 0), True),
        # Of these nobody knows how much there was in them.
        (lambda y, want: torch.equal(y[:3].sum(), want[:3].sum()), (0, 0), True),
        (lambda y, want: torch.equal(y[want > 0], want[want > 0]), (0, 0), True),
        (lambda y, want: y[:3].tolist() == want[:3].tolist(), (0, 0), True),
        (lambda y, want: torch.equal(want[:3], want[:3].clone()), (0, 0), False),
    ],
)
def test_pieces_of_an_output_that_are_compared_are_counted(
    compare: Compare, elements: tuple[int, int], is_whole: bool
) -> None:
    with watch() as seen:
        y = WANT.clone()
        seen.gave_back([y])
        compare(y, WANT.clone())
    evidence = seen.evidence()
    assert (evidence.elements_compared, evidence.elements_given) == elements
    assert bool(evidence.whole) is is_whole
