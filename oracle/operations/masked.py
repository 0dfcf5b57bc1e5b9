"""Softmax under a mask of booleans, with or without a bias."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.relations import Relations
from gatecert.oracle.schema import Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
Mask: TypeAlias = Annotated[
    torch.Tensor, Tensor.mask("B N", patterns="random late rows lone causal all")
]
# Ordinary whatever the recipe, so that a lost bias shows in all of them.
Bias: TypeAlias = Annotated[torch.Tensor, tensor("N", stand_ins={"*": "uniform10"})]


def _by_selection(x: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    y = torch.zeros_like(x)
    for row in range(len(x)):
        seen = mask[row].nonzero()[:, 0]
        if len(seen):
            scores = x[row, seen] if bias is None else x[row, seen] + bias[seen]
            powers = torch.exp2((scores - scores.max()) * 1.4426950408889634074)
            y[row, seen] = powers / powers.sum()
    return y


def _shadow(
    y: torch.Tensor, x: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor:
    score = x.abs() if bias is None else x.abs() + bias.abs()
    return y * (1 + score + (y * score).sum(dim=1, keepdim=True))


@operation(
    empty="B",
    second=_by_selection,
    shadow=_shadow,
    reduces="N",
    recipes=(*FINITE_RECIPES, "far_below"),
    relations=Relations(symmetric="B N", independent="B", padded={"N": 0.0}, shifted=("x",)),
)
def masked_softmax(x: Rows, mask: Mask, bias: Bias | None = None) -> Rows:
    """Softmax of x, plus bias, over the places of a row that mask lets through; 0 elsewhere.

    A row of which it lets nothing through is 0.
    """
    scores = x if bias is None else x + bias
    weights = torch.softmax(scores.masked_fill(mask == 0, -torch.inf), dim=1)
    return torch.where(mask.any(dim=1, keepdim=True), weights, 0.0)
