"""Matrix products."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Tensor, operation, tensor

# One factor alone takes the values near 100: their products would leave float16. Rows of one 1
# pick rows of distinct integers, so that a wrong index shows.
_ORDINARY = {"large_offset": "normal", "spike": "normal", "one_hot": "small_integers"}

Left: TypeAlias = Annotated[torch.Tensor, Tensor["M K"]]
Right: TypeAlias = Annotated[torch.Tensor, tensor("K N", stand_ins=_ORDINARY)]
Product: TypeAlias = Annotated[torch.Tensor, Tensor["M N"]]
Lefts: TypeAlias = Annotated[torch.Tensor, Tensor["B M K"]]
Rights: TypeAlias = Annotated[torch.Tensor, tensor("B K N", stand_ins=_ORDINARY)]
Products: TypeAlias = Annotated[torch.Tensor, Tensor["B M N"]]


def _matmul_by_columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total += torch.outer(a[:, k], b[k])
    return total


@operation(
    empty="M K N",
    second=_matmul_by_columns,
    shadow=lambda y, a, b: a.abs() @ b.abs(),
    mid_shadow=lambda y, a, b: a.abs() @ b.abs(),
    reduces="K",
    contraction=True,
    exact=linear(factors=2),
    tiled="M N K",
    relations=Relations(
        symmetric="M K N",
        independent="M N",
        padded={"K": 0.0},
        scalings=(additive("a"), additive("b")),
    ),
)
def matmul(a: Left, b: Right) -> Product:
    """The matrix product."""
    return a @ b


@operation(
    second=lambda a, b: torch.stack([_matmul_by_columns(*pair) for pair in zip(a, b, strict=True)]),
    shadow=lambda y, a, b: a.abs() @ b.abs(),
    mid_shadow=lambda y, a, b: a.abs() @ b.abs(),
    reduces="K",
    contraction=True,
    exact=linear(factors=2),
    tiled="M N K",
    relations=Relations(
        symmetric="B M K N",
        independent="B M N",
        padded={"K": 0.0},
        scalings=(additive("a"), additive("b")),
    ),
)
def matmul_batched(a: Lefts, b: Rights) -> Products:
    """The matrix product of every pair of a batch."""
    return a @ b
