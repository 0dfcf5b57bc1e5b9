"""Scaled dot-product attention, forward."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

# Scores must follow the recipe along the keys: a positive query makes a key that rises or
# peaks along T a score that does.
_STEADY = dict.fromkeys(("rising", "falling", "spike", "far_below", "early_peak"), "uniform01")
_PLAIN = dict.fromkeys(("rising", "falling", "spike", "large_offset", "far_below"), "normal") | {
    "early_peak": "uniform01"
}

Query: TypeAlias = Annotated[torch.Tensor, tensor("B H S D", stand_ins=_STEADY)]
Key: TypeAlias = Annotated[torch.Tensor, tensor("B H T D", axis=-2)]
Value: TypeAlias = Annotated[torch.Tensor, tensor("B H T D", stand_ins=_PLAIN)]
SelfKey: TypeAlias = Annotated[torch.Tensor, tensor("B H S D", axis=-2)]
SelfValue: TypeAlias = Annotated[torch.Tensor, tensor("B H S D", stand_ins=_PLAIN)]
Output: TypeAlias = Annotated[torch.Tensor, tensor("B H S D")]
GroupedQuery: TypeAlias = Annotated[torch.Tensor, tensor("B G*H S D", stand_ins=_STEADY)]
GroupedOutput: TypeAlias = Annotated[torch.Tensor, tensor("B G*H S D")]

_HEAD_SIZES = (40, 16, 64)
_RECIPES = (*FINITE_RECIPES, "far_below")


def scaled_scores(q: torch.Tensor, k: torch.Tensor, causal: bool) -> torch.Tensor:
    """q k^T / sqrt(D), and -inf where `causal` hides a key from an earlier query."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if not causal:
        return scores
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    return torch.softmax(scaled_scores(q, k, causal), dim=-1) @ v


def attend_row_by_row(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    """Attention one query at a time, over the keys that it sees."""
    rows = []
    for row in range(q.shape[2]):
        seen = row + 1 if causal else k.shape[2]
        scores = (q[:, :, row, None] * k[:, :, :seen]).sum(-1) * q.shape[-1] ** -0.5
        weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
        rows.append((weights[..., None] * v[:, :, :seen]).sum(2))
    return torch.stack(rows, 2)


def _shadow(
    y: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    scores = scaled_scores(q, k, causal)
    size = q.abs() @ k.abs().transpose(-1, -2) / math.sqrt(q.shape[-1])
    error = torch.softmax(scores, -1) * (1 + scores.masked_fill(scores.isinf(), 0).abs() + size)
    return error @ v.abs() + error.sum(-1, keepdim=True) * y.abs()


def _mid_shadow(
    y: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> torch.Tensor:
    return torch.softmax(scaled_scores(q, k, causal), -1) @ v.abs()


@operation(
    second=lambda q, k, v: attend_row_by_row(q, k, v, False),
    shadow=lambda y, q, k, v: _shadow(y, q, k, v, False),
    mid_shadow=lambda y, q, k, v: _mid_shadow(y, q, k, v, False),
    reduces="T D",
    contraction=True,
    tiled="S T",
    recipes=(*_RECIPES, "early_peak"),
    sizes={"D": _HEAD_SIZES},
    relations=Relations(symmetric="B H S T D", independent="B H S", scalings=(additive("v"),)),
)
def attention(q: Query, k: Key, v: Value) -> Output:
    """softmax(q k^T / sqrt(D)) v."""
    return _attend(q, k, v, causal=False)


@operation(
    second=lambda q, k, v: attend_row_by_row(q, k, v, True),
    shadow=lambda y, q, k, v: _shadow(y, q, k, v, True),
    mid_shadow=lambda y, q, k, v: _mid_shadow(y, q, k, v, True),
    reduces="S D",
    contraction=True,
    tiled="S",
    recipes=_RECIPES,
    sizes={"D": _HEAD_SIZES},
    # Nobody sees a later key.
    relations=Relations(
        symmetric="B H D", independent="B H", padded={"S": 1.0}, scalings=(additive("v"),)
    ),
)
def attention_causal(q: Query, k: SelfKey, v: SelfValue) -> Output:
    """Attention in which row i sees keys 0 to i."""
    return _attend(q, k, v, causal=True)


def _for_every_query_head(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    group_size = q.shape[1] // k.shape[1]
    return k.repeat_interleave(group_size, dim=1), v.repeat_interleave(group_size, dim=1)


def _grouped_head_by_head(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: int
) -> torch.Tensor:
    heads, shared = q.shape[1], k.shape[1]
    return torch.cat(
        [
            attend_row_by_row(
                q[:, head, None],
                k[:, head * shared // heads, None],
                v[:, head * shared // heads, None],
                bool(causal),
            )
            for head in range(heads)
        ],
        dim=1,
    )


@operation(
    causal=Scalar(0, 1, integer=True),
    second=_grouped_head_by_head,
    shadow=lambda y, q, k, v, causal: _shadow(y, q, *_for_every_query_head(q, k, v), bool(causal)),
    mid_shadow=lambda y, q, k, v, causal: _mid_shadow(
        y, q, *_for_every_query_head(q, k, v), bool(causal)
    ),
    reduces="T D",
    contraction=True,
    tiled="S T",
    recipes=_RECIPES,
    sizes={"D": (40, 24, 80)},
    relations=Relations(symmetric="B D", independent="B", scalings=(additive("v"),)),
)
def attention_grouped_query(q: GroupedQuery, k: Key, v: Value, causal: int = 1) -> GroupedOutput:
    """Attention in which G query heads in a row share a head of keys and values."""
    return _attend(q, *_for_every_query_head(q, k, v), causal=bool(causal))
