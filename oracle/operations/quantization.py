"""Symmetric int8 quantisation with one scale per row, and the way back."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
Scale: TypeAlias = Annotated[torch.Tensor, Tensor["B"]]
Codes: TypeAlias = Annotated[torch.Tensor, tensor("B N", kind="int8", low=-127, high=128)]
Float32Scale: TypeAlias = Annotated[torch.Tensor, tensor("B", kind="float32")]

LARGEST_CODE = 127
_Pair: TypeAlias = tuple[torch.Tensor, torch.Tensor]


def _by_norm(x: torch.Tensor, eps: float) -> _Pair:
    largest: torch.Tensor = torch.linalg.vector_norm(x, ord=torch.inf, dim=1)
    scale = largest.clamp(min=eps) / LARGEST_CODE
    return x / scale[:, None], scale


def _magnitudes(y: _Pair, x: torch.Tensor, eps: float) -> _Pair:
    return y[0].abs(), y[1].abs()


@operation(
    # Drawn in every case: only rows of tiny values show eps, and they come but once or twice.
    eps=Scalar(1e-8, 1e-2, logarithmic=True),
    second=_by_norm,
    shadow=_magnitudes,
    # A row is divided by its own size.
    recipes=(*FINITE_RECIPES, "huge"),
    outputs=["codes", "scale"],
)
def quantize_int8(x: Rows, eps: float) -> tuple[Codes, Float32Scale]:
    """x over its row's scale, and that scale: the largest magnitude, or eps, over 127."""
    largest = torch.maximum(x.amax(dim=1), -x.amin(dim=1))
    largest = torch.where(largest > eps, largest, eps)
    return x / largest[:, None] * LARGEST_CODE, largest / LARGEST_CODE


@operation(
    second=lambda codes, scale: (codes.to(scale.dtype).T * scale).T,
    shadow=lambda y, codes, scale: y.abs(),
    tiled="N",
)
def dequantize_int8(codes: Codes, scale: Scale) -> Rows:
    """Codes times the scale of their row."""
    return codes * scale[:, None]
