"""Symmetric quantisation to int8 and float8 with one scale per row, and the way back."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
Scale: TypeAlias = Annotated[torch.Tensor, Tensor["B"]]
Codes: TypeAlias = Annotated[torch.Tensor, tensor("B N", kind="int8", low=-127, high=128)]
Float32Scale: TypeAlias = Annotated[torch.Tensor, tensor("B", kind="float32")]

E4m3Codes: TypeAlias = Annotated[torch.Tensor, tensor("B N", kind="float8_e4m3fn")]
E5m2Codes: TypeAlias = Annotated[torch.Tensor, tensor("B N", kind="float8_e5m2")]

LARGEST_CODE = 127
LARGEST_E4M3 = 448
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
    empty="B",
    second=_by_norm,
    shadow=_magnitudes,
    # A row is divided by its own size.
    recipes=(*FINITE_RECIPES, "huge"),
    outputs=["codes", "scale"],
    relations=Relations(symmetric="B N", independent="B", padded={"N": 0.0}),
)
def quantize_int8(x: Rows, eps: float) -> tuple[Codes, Float32Scale]:
    """x over its row's scale, and that scale: the largest magnitude, or eps, over 127."""
    largest = torch.maximum(x.amax(dim=1), -x.amin(dim=1))
    largest = torch.where(largest > eps, largest, eps)
    return x / largest[:, None] * LARGEST_CODE, largest / LARGEST_CODE


@operation(
    empty="B N",
    second=lambda codes, scale: (codes.to(scale.dtype).T * scale).T,
    shadow=lambda y, codes, scale: y.abs(),
    tiled="N",
    exact=linear(factors=2),
    relations=Relations(symmetric="B N", independent="B N", scalings=(additive("scale"),)),
)
def dequantize_int8(codes: Codes, scale: Scale) -> Rows:
    """Codes times the scale of their row."""
    return codes * scale[:, None]


def _fp8_by_norm(x: torch.Tensor, eps: float) -> _Pair:
    largest: torch.Tensor = torch.linalg.vector_norm(x, ord=torch.inf, dim=1)
    scale = largest.clamp(min=eps) / LARGEST_E4M3
    return x / scale[:, None], scale


@operation(
    eps=Scalar(1e-8, 1e-2, logarithmic=True),
    empty="B",
    second=_fp8_by_norm,
    shadow=_magnitudes,
    recipes=(*FINITE_RECIPES, "huge"),
    outputs=["codes", "scale"],
    relations=Relations(symmetric="B N", independent="B", padded={"N": 0.0}),
)
def quantize_fp8(x: Rows, eps: float) -> tuple[E4m3Codes, Float32Scale]:
    """x over its row's scale, in float8_e4m3fn, and that scale.

    It is the largest magnitude, or eps, over 448: so no value is beyond the format's largest.
    """
    largest = torch.maximum(x.amax(dim=1), -x.amin(dim=1))
    largest = torch.where(largest > eps, largest, eps)
    return x / largest[:, None] * LARGEST_E4M3, largest / LARGEST_E4M3


@operation(
    empty="B N",
    second=lambda codes, scale: (codes.T * scale).T,
    shadow=lambda y, codes, scale: y.abs(),
    tiled="N",
    exact=linear(factors=2),
    relations=Relations(symmetric="B N", independent="B N", scalings=(additive("scale"),)),
)
def dequantize_fp8(codes: E5m2Codes, scale: Scale) -> Rows:
    """float8_e5m2 values times the scale of their row."""
    return codes * scale[:, None]
