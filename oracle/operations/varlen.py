"""Operations on sequences packed behind one another: attention by offsets, sums by segment."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear
from gatecert.oracle.operations.attention import attend_row_by_row, scaled_scores
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Size, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

# As for attention of one sequence: scores must follow the recipe along the keys.
_STEADY = dict.fromkeys(("rising", "falling", "spike", "far_below"), "uniform01")
_PLAIN = dict.fromkeys(("rising", "falling", "spike", "large_offset", "far_below"), "normal")

Query: TypeAlias = Annotated[torch.Tensor, tensor("T Hq D", stand_ins=_STEADY)]
Key: TypeAlias = Annotated[torch.Tensor, tensor("T H D", axis=-3)]
Value: TypeAlias = Annotated[torch.Tensor, tensor("T H D", stand_ins=_PLAIN)]
Offsets: TypeAlias = Annotated[torch.Tensor, Tensor.offsets("B+1", total="T")]
Output: TypeAlias = Annotated[torch.Tensor, tensor("T Hq D")]
LogSum: TypeAlias = Annotated[torch.Tensor, tensor("T Hq", kind="float32", when="return_lse")]
Pair: TypeAlias = tuple[torch.Tensor, torch.Tensor | None]

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["T N"]]
Segments: TypeAlias = Annotated[torch.Tensor, Tensor.segments("T", count="S")]
Sums: TypeAlias = Annotated[torch.Tensor, Tensor["S N"]]


def _sequences(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, offsets: torch.Tensor
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Each sequence's tensors as [1, heads, length, D], keys and values for every query head."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    bounds = offsets.tolist()
    return [
        (
            q[begin:end].transpose(0, 1)[None],
            k[begin:end].transpose(0, 1)[None],
            v[begin:end].transpose(0, 1)[None],
        )
        for begin, end in itertools.pairwise(bounds)
        if end > begin
    ]


def _packed(parts: list[torch.Tensor]) -> torch.Tensor:
    """[1, heads, length, ...] of each sequence behind one another, as [T, heads, ...]."""
    return torch.cat([part[0].transpose(0, 1) for part in parts])


def _row_by_row(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    offsets: torch.Tensor,
    causal: int,
    return_lse: int,
) -> Pair:
    outputs = [attend_row_by_row(*one, causal=bool(causal)) for one in _sequences(q, k, v, offsets)]
    if not return_lse:
        return _packed(outputs), None
    group = q.shape[1] // k.shape[1]
    ids = torch.repeat_interleave(offsets.diff())
    apart = q.reshape(len(q), -1, group, q.shape[2]) * q.shape[2] ** -0.5
    scores = torch.einsum("shgd,thd->shgt", apart, k).flatten(1, 2)
    hidden = ids[:, None] != ids
    if causal:
        hidden = hidden | (torch.arange(len(ids))[:, None] < torch.arange(len(ids)))
    scores = scores.masked_fill(hidden[:, None], -math.inf)
    largest = scores.amax(-1)
    return _packed(outputs), (scores - largest[..., None]).exp().sum(-1).log() + largest


def _shadow(
    y: Pair,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    offsets: torch.Tensor,
    causal: int,
    return_lse: int,
) -> Pair:
    outputs, sums = [], []
    for one, keys, values in _sequences(q, k, v, offsets):
        scores = scaled_scores(one, keys, bool(causal))
        size = one.abs() @ keys.abs().transpose(-1, -2) / math.sqrt(q.shape[-1])
        error = torch.softmax(scores, -1) * (1 + scores.masked_fill(scores.isinf(), 0).abs() + size)
        outputs.append((error @ values.abs(), error.sum(-1, keepdim=True)))
        sums.append(error.sum(-1) + torch.logsumexp(scores, -1).abs())
    terms, weights = (_packed([part[at] for part in outputs]) for at in (0, 1))
    assert y[0] is not None
    return terms + weights * y[0].abs(), _packed(sums) if return_lse else None


def _mid_shadow(
    y: Pair,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    offsets: torch.Tensor,
    causal: int,
    return_lse: int,
) -> Pair:
    parts = [
        torch.softmax(scaled_scores(one, keys, bool(causal)), -1) @ values.abs()
        for one, keys, values in _sequences(q, k, v, offsets)
    ]
    return _packed(parts), None if y[1] is None else torch.zeros_like(y[1])


@operation(
    causal=Scalar(0, 1, integer=True),
    return_lse=Scalar(0, 1, integer=True),
    second=_row_by_row,
    shadow=_shadow,
    mid_shadow=_mid_shadow,
    reduces="T D",
    contraction=True,
    tiled="T",
    derived={"Hq": "G*H"},
    recipes=(*FINITE_RECIPES, "far_below"),
    sizes={"G": (2, 1, 3), "D": (40, 16, 24)},
    outputs=("out", "lse"),
    relations=Relations(scalings=(additive("v", where={"return_lse": 0}),)),
)
def attention_varlen(
    q: Query, k: Key, v: Value, offsets: Offsets, causal: int = 1, return_lse: int = 0
) -> tuple[Output, LogSum | None]:
    """Attention of packed sequences, each to itself: sequence b is offsets[b] to offsets[b+1].

    G query heads in a row share a head of keys and values. Where asked for, also the logarithm
    of the sum of exponentials of each query's scores.
    """
    outputs, sums = [], []
    for one, keys, values in _sequences(q, k, v, offsets):
        scores = scaled_scores(one, keys, bool(causal))
        outputs.append(torch.softmax(scores, -1) @ values)
        sums.append(torch.logsumexp(scores, -1))
    return _packed(outputs), _packed(sums) if return_lse else None


def _sum_by_product(x: torch.Tensor, segments: torch.Tensor, count: int) -> torch.Tensor:
    member = segments == torch.arange(count)[:, None]
    return member.to(x.dtype) @ x


@operation(
    count=Size("S"),
    second=_sum_by_product,
    shadow=lambda y, x, segments, count: _sum_by_product(x.abs(), segments, count),
    reduces="T",
    contraction=True,  # atomics add one by one, which drifts as a long contraction does
    tiled="T N",
    exact=linear(tensors=["x"]),
    relations=Relations(symmetric="N", independent="N", scalings=(additive("x"),)),
)
def segment_sum(x: Rows, segments: Segments, count: int) -> Sums:
    """Row s is the sum of those rows of x whose segment is s; 0 where there are none."""
    return x.new_zeros(count, x.shape[1]).index_add(0, segments, x)
