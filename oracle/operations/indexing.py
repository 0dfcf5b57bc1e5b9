"""Operations that move values or turn them by their place: embedding, transpose, rope."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear, selecting
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Tensor, operation, tensor
from gatecert.oracle.values import PROBES_AS_THEY_ARE, RECIPES

Table: TypeAlias = Annotated[torch.Tensor, Tensor["V N"]]
Index: TypeAlias = Annotated[torch.Tensor, Tensor.int("B S", high="V")]
Gathered: TypeAlias = Annotated[torch.Tensor, Tensor["B S N"]]
Matrix: TypeAlias = Annotated[torch.Tensor, Tensor["M N"]]
Transposed: TypeAlias = Annotated[torch.Tensor, Tensor["N M"]]
Heads: TypeAlias = Annotated[torch.Tensor, Tensor["B H S 2D"]]
# Ordinary numbers, not those of a circle: each entry of a table leaves its mark.
# In exact mode they are integers too.
_ANGLES = {"*": "normal", "ternary": "ternary", "one_hot": "small_integers", **PROBES_AS_THEY_ARE}
Angles: TypeAlias = Annotated[torch.Tensor, tensor("S D", stand_ins=_ANGLES)]

_EVERY = tuple(name for name in RECIPES if name not in ("far_below", "early_peak"))
"""A copy has no domain: infinities and NaN arrive as they were sent. It has no maximum either."""


def _gather_by_rows(weight: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    rows = [weight[number] for number in index.reshape(-1).tolist()]
    return torch.cat([weight[:0], *(row[None] for row in rows)]).reshape(
        *index.shape, weight.shape[1]
    )


@operation(
    empty="B S N",
    second=_gather_by_rows,
    shadow=lambda y, weight, index: y.abs(),
    exact=selecting(),
    recipes=_EVERY,
    tiled="N",
    sizes={"V": (17, 5, 130)},
    relations=Relations(symmetric="V N B S", independent="N B S", scalings=(additive("weight"),)),
)
def embedding(weight: Table, index: Index) -> Gathered:
    """Row index[b, s] of weight at every place [b, s]."""
    return torch.nn.functional.embedding(index, weight)


def _columns_as_rows(x: torch.Tensor) -> torch.Tensor:
    rows = [x[:, column] for column in range(x.shape[1])]
    return torch.stack(rows) if rows else x.new_empty(0, x.shape[0])


@operation(
    empty="M N",
    second=_columns_as_rows,
    shadow=lambda y, x: y.abs(),
    exact=selecting(),
    recipes=_EVERY,
    tiled="M N",
    relations=Relations(symmetric="M N", independent="M N", scalings=(additive("x"),)),
)
def transpose(x: Matrix) -> Transposed:
    """Rows become columns."""
    return x.t()


def _rope_by_complex(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = cos.shape[1]
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag], dim=-1)


def _rope_shadow(
    y: torch.Tensor, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> torch.Tensor:
    first, second = x.abs().chunk(2, dim=-1)
    c, s = cos.abs(), sin.abs()
    return torch.cat([first * c + second * s, second * c + first * s], dim=-1)


@operation(
    second=_rope_by_complex,
    shadow=_rope_shadow,
    tiled="S",
    sizes={"D": (20, 8, 32)},
    exact=linear(factors=2, more_terms=1),
    relations=Relations(
        symmetric="B H S",
        independent="B H S",
        scalings=(additive("x"), additive("cos", "sin")),
    ),
)
def rope(x: Heads, cos: Angles, sin: Angles) -> Heads:
    """Dims d and d + D of a head turned by the angle of position and d."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
