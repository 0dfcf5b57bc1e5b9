"""Reductions and scans of rows: moments, place of the maximum, cumulative sum."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear, selecting
from gatecert.oracle.relations import Relations, additive, homogeneous
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES, MODERATE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
# Statistics are kept in float32 whatever the rows are.
Statistic: TypeAlias = Annotated[torch.Tensor, tensor("B", kind="float32")]
Index: TypeAlias = Annotated[torch.Tensor, Tensor.int("B", high="N")]

_UNIT = 2.0**-24
Moments: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _moments_by_pairs(x: torch.Tensor) -> Moments:
    total = x @ torch.ones(x.shape[1], dtype=x.dtype)
    # Half the mean square of all differences, a value with itself among them.
    pairs = (x[:, :, None] - x[:, None, :]).square().mean(dim=(1, 2)) / 2
    return total, total / x.shape[1], pairs


def _moments_shadow(y: Moments, x: torch.Tensor) -> Moments:
    _, mean, variance = y
    size, distance = x.abs(), (x - mean[:, None]).abs()
    centring = 2 * (distance * (size + mean.abs()[:, None])).mean(dim=1)
    # Where the true variance is 0 a kernel still finds about (4 u mean|x|)^2.
    second_order = 16 * _UNIT * size.mean(dim=1) ** 2
    return size.sum(dim=1), size.mean(dim=1), variance + centring + second_order


@operation(
    empty="B",
    second=_moments_by_pairs,
    shadow=_moments_shadow,
    reduces="N",
    recipes=FINITE_RECIPES,
    outputs=("sum", "mean", "variance"),
    exact=linear(outputs=["sum"]),
    relations=Relations(symmetric="B N", independent="B", scalings=(homogeneous("x", variance=2),)),
)
def row_moments(x: Rows) -> tuple[Statistic, Statistic, Statistic]:
    """Sum, mean and population variance of each row."""
    return x.sum(dim=1), x.mean(dim=1), x.var(dim=1, unbiased=False)


def _first_of_the_largest(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.shape[1]).expand_as(x)
    return torch.where(x == x.amax(dim=1, keepdim=True), places, x.shape[1]).amin(dim=1)


@operation(
    empty="B",
    second=_first_of_the_largest,
    # An index is right or wrong; nothing rounds.
    shadow=lambda y, x: y,
    reduces="N",
    recipes=(*FINITE_RECIPES, "masked_rows", "huge", "far_below"),
    exact=selecting(),
    # Of equal values the first counts, so columns may not change places.
    relations=Relations(symmetric="B", independent="B", padded={"N": -math.inf}),
)
def argmax(x: Rows) -> Index:
    """Place of the largest value of each row; of equal ones the first."""
    return torch.from_numpy(x.double().numpy().argmax(axis=1))


def _from_the_end(x: torch.Tensor, reverse: int) -> torch.Tensor:
    return x.flip(1) if reverse else x


def _cumsum_by_slices(x: torch.Tensor, reverse: int) -> torch.Tensor:
    slices = (x[:, at:] if reverse else x[:, : at + 1] for at in range(x.shape[1]))
    sums = [part.sum(dim=1) for part in slices]
    return torch.stack(sums, dim=1) if sums else x


def _cumsum(x: torch.Tensor, reverse: int) -> torch.Tensor:
    return _from_the_end(_from_the_end(x, reverse).cumsum(dim=1), reverse)


@operation(
    reverse=Scalar(0, 1, integer=True),
    empty="B N",
    second=_cumsum_by_slices,
    shadow=lambda y, x, reverse: _cumsum(x.abs(), reverse),
    reduces="N",
    exact=linear(),
    recipes=MODERATE_RECIPES,
    relations=Relations(
        symmetric="B", independent="B", padded={"N": 0.0}, scalings=(additive("x"),)
    ),
)
def cumsum(x: Rows, reverse: int = 0) -> Rows:
    """Sums of the first 1, 2, ... N values of each row; with `reverse` from each to the last."""
    return _cumsum(x, reverse)
