"""Operations that move values or turn them by their place: embedding, transpose, rope."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.schema import Tensor, operation, tensor
from gatecert.oracle.values import RECIPES

Table: TypeAlias = Annotated[torch.Tensor, Tensor["V N"]]
Index: TypeAlias = Annotated[torch.Tensor, Tensor.int("B S", high="V")]
Gathered: TypeAlias = Annotated[torch.Tensor, Tensor["B S N"]]
Matrix: TypeAlias = Annotated[torch.Tensor, Tensor["M N"]]
Transposed: TypeAlias = Annotated[torch.Tensor, Tensor["N M"]]
Heads: TypeAlias = Annotated[torch.Tensor, Tensor["B H S 2D"]]
# Ordinary numbers, not those of a circle: each entry of a table leaves its mark.
Angles: TypeAlias = Annotated[torch.Tensor, tensor("S D", stand_ins={"*": "normal"})]

_EVERY = tuple(name for name in RECIPES if name != "far_below")
"""A copy has no domain: infinities and NaN arrive as they were sent. It has no maximum either."""


def _gather_by_rows(weight: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    rows = [weight[number] for number in index.reshape(-1).tolist()]
    return torch.stack(rows).reshape(*index.shape, weight.shape[1])


@operation(
    second=_gather_by_rows,
    shadow=lambda y, weight, index: y.abs(),
    exact_on_integers=True,
    recipes=_EVERY,
    tiled="N",
    sizes={"V": (17, 5, 130)},
)
def embedding(weight: Table, index: Index) -> Gathered:
    """Row index[b, s] of weight at every place [b, s]."""
    return torch.nn.functional.embedding(index, weight)


def _columns_as_rows(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[:, column] for column in range(x.shape[1])])


@operation(
    second=_columns_as_rows,
    shadow=lambda y, x: y.abs(),
    exact_on_integers=True,
    recipes=_EVERY,
    tiled="M N",
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


@operation(second=_rope_by_complex, shadow=_rope_shadow, tiled="S", sizes={"D": (20, 8, 32)})
def rope(x: Heads, cos: Angles, sin: Angles) -> Heads:
    """Dims d and d + D of a head turned by the angle of position and d."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
