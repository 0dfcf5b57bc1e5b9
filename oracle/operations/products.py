"""Matrix products."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.schema import Tensor, operation, tensor

Left: TypeAlias = Annotated[torch.Tensor, Tensor["M K"]]
# One factor alone takes the values near 100: their products would leave float16.
Right: TypeAlias = Annotated[
    torch.Tensor, tensor("K N", stand_ins={"large_offset": "normal", "spike": "normal"})
]
Product: TypeAlias = Annotated[torch.Tensor, Tensor["M N"]]
Lefts: TypeAlias = Annotated[torch.Tensor, Tensor["B M K"]]
Rights: TypeAlias = Annotated[
    torch.Tensor, tensor("B K N", stand_ins={"large_offset": "normal", "spike": "normal"})
]
Products: TypeAlias = Annotated[torch.Tensor, Tensor["B M N"]]


def _matmul_by_columns(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total += torch.outer(a[:, k], b[k])
    return total


@operation(
    second=_matmul_by_columns,
    shadow=lambda y, a, b: a.abs() @ b.abs(),
    mid_shadow=lambda y, a, b: a.abs() @ b.abs(),
    reduces="K",
    contraction=True,
    exact_on_integers=True,
    tiled="M N K",
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
    exact_on_integers=True,
    tiled="M N K",
)
def matmul_batched(a: Lefts, b: Rights) -> Products:
    """The matrix product of every pair of a batch."""
    return a @ b
