"""Attention of one query per sequence to keys and values that lie in pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.attention import attend_row_by_row
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

_STEADY = dict.fromkeys(("rising", "falling", "spike", "far_below"), "uniform01")
_PLAIN = dict.fromkeys(("rising", "falling", "spike", "large_offset", "far_below"), "normal")

Query: TypeAlias = Annotated[torch.Tensor, tensor("B Hq D", stand_ins=_STEADY)]
# A page more than all sequences can fill, so that one page of any case is nobody's.
Keys: TypeAlias = Annotated[torch.Tensor, tensor("Pages Z H D", axis=0)]
Values: TypeAlias = Annotated[torch.Tensor, tensor("Pages Z H D", stand_ins=_PLAIN)]
Table: TypeAlias = Annotated[
    torch.Tensor, Tensor.pages("B P", pages="Pages", block="Z", lengths="lengths")
]
Lengths: TypeAlias = Annotated[torch.Tensor, Tensor.lengths("B", most="P*Z", block="Z")]
Output: TypeAlias = Annotated[torch.Tensor, tensor("B Hq D")]
_Sequence: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _sequences(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
) -> list[_Sequence | None]:
    """Per sequence q as [1, Hq, 1, D], and its keys and values as [1, Hq, length, D]."""
    group, page = q.shape[1] // keys.shape[2], keys.shape[1]
    found: list[_Sequence | None] = []
    for row, length in enumerate(lengths.tolist()):
        pages = table[row, : -(-length // page)]
        k, v = (
            cache[pages].flatten(0, 1)[:length].transpose(0, 1).repeat_interleave(group, 0)[None]
            for cache in (keys, values)
        )
        found.append((q[row, None, :, None], k, v) if length else None)
    return found


def _slot_by_slot(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    page = keys.shape[1]
    group = q.shape[1] // keys.shape[2]
    out = torch.zeros_like(q)
    for row, length in enumerate(lengths.tolist()):
        slots = [(int(table[row, at // page]), at % page) for at in range(length)]
        for head in range(q.shape[1] if slots else 0):
            k = torch.stack([keys[number, slot, head // group] for number, slot in slots])
            v = torch.stack([values[number, slot, head // group] for number, slot in slots])
            query, k, v = (part[None, None] for part in (q[row, head, None], k, v))
            one = attend_row_by_row(query, k, v, causal=False)
            out[row, head] = one[0, 0, 0]
    return out


def _unused_slots(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Slots behind the last key of a sequence, and pages that are nobody's: a cache is never
    cleared, so they hold what was there (vllm-project/vllm #641: NaN, and 0 * NaN is NaN)."""
    table, lengths = tensors["table"], tensors["lengths"].long()
    n_pages, page = tensors["keys"].shape[:2]
    unused = torch.ones(n_pages, page, dtype=torch.bool)
    for row, length in enumerate(lengths.tolist()):
        at = torch.arange(length)
        unused[table[row].long()[at // page], at % page] = False
    return {"keys": unused, "values": unused}


def _shadow(
    y: torch.Tensor,
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    shadow = torch.zeros_like(y)
    for row, one in enumerate(_sequences(q, keys, values, table, lengths)):
        if one is None:
            continue
        query, k, v = one
        scores = query @ k.mT / math.sqrt(q.shape[-1])
        size = query.abs() @ k.abs().mT / math.sqrt(q.shape[-1])
        error = torch.softmax(scores, -1) * (1 + scores.abs() + size)
        own = error @ v.abs() + error.sum(-1, keepdim=True) * y[row, None, :, None].abs()
        shadow[row] = own[0, :, 0]
    return shadow


@operation(
    second=_slot_by_slot,
    shadow=_shadow,
    reduces="P*Z D",
    contraction=True,
    tiled="P",
    derived={"Hq": "G*H", "Pages": "B*P+1"},
    recipes=(*FINITE_RECIPES, "far_below"),
    sizes={"G": (2, 1, 3), "D": (40, 16, 24), "Z": (8, 16), "P": (3, 1, 4, 2)},
    unread=_unused_slots,
    relations=Relations(scalings=(additive("values"),)),
)
def paged_attention(q: Query, keys: Keys, values: Values, table: Table, lengths: Lengths) -> Output:
    """Attention of each sequence's query to lengths[b] keys; table[b] names the pages they lie in.

    G query heads in a row share a head of keys and values. A sequence without keys gets 0.
    """
    out = torch.zeros_like(q)
    for row, one in enumerate(_sequences(q, keys, values, table, lengths)):
        if one is not None:
            query, k, v = one
            scores = query @ k.mT / math.sqrt(q.shape[-1])
            out[row] = (torch.softmax(scores, -1) @ v)[0, :, 0]
    return out
