"""Normalisations by a length or over groups of channels."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.normalised import normalised
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES, MODERATE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
# 1, 2 and 3 groups all divide 6C channels.
Images: TypeAlias = Annotated[torch.Tensor, Tensor["B 6C S"]]
PerChannel: TypeAlias = Annotated[torch.Tensor, tensor("6C", stand_ins={"*": "normal"})]
Weight: TypeAlias = Annotated[torch.Tensor, tensor("N", stand_ins={"*": "normal"})]
Destination: TypeAlias = Annotated[torch.Tensor, Tensor.out("B N")]
_Sums: TypeAlias = tuple[torch.Tensor, torch.Tensor]


def _l2_norm_by_clamp(x: torch.Tensor, eps: float) -> torch.Tensor:
    return torch.nn.functional.normalize(x, dim=1, eps=eps)


@operation(
    eps=Scalar(1e-12, 1e-3, logarithmic=True),
    empty="B",
    second=_l2_norm_by_clamp,
    shadow=lambda y, x, eps: 3 * y.abs(),
    reduces="N",
    recipes=FINITE_RECIPES,
    relations=Relations(symmetric="B N", independent="B", padded={"N": 0.0}),
)
def l2_norm(x: Rows, eps: float = 1e-12) -> Rows:
    """Rows over their Euclidean length, or over eps where that is larger."""
    length = x.square().sum(dim=1, keepdim=True).sqrt()
    return x / torch.where(length > eps, length, eps)


def _by_group(x: torch.Tensor, groups: int) -> torch.Tensor:
    """`x` [B, C, S] with one row per group of an image."""
    return x.reshape(x.shape[0] * groups, -1)


def _group_norm_by_moments(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int, eps: float
) -> torch.Tensor:
    rows = _by_group(x, groups)
    deviation = rows - rows.sum(dim=1, keepdim=True) / rows.shape[1]
    variance = (deviation**2).sum(dim=1, keepdim=True) / rows.shape[1]
    z = (deviation * torch.rsqrt(variance + eps)).reshape(x.shape)
    return z * weight[:, None] + bias[:, None]


def _group_norm_shadow(
    y: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    groups: int,
    eps: float,
) -> torch.Tensor:
    error = normalised(_by_group(x, groups), eps).error.reshape(x.shape)
    return y.abs() + bias.abs()[:, None] + weight.abs()[:, None] * error


@operation(
    groups=Scalar(1, 3, integer=True),
    eps=Scalar(1e-6, 1e-4, logarithmic=True),
    second=_group_norm_by_moments,
    shadow=_group_norm_shadow,
    reduces="S C",
    recipes=tuple(name for name in MODERATE_RECIPES if name != "masked_rows"),
    relations=Relations(
        symmetric="B S",
        independent="B",
        shifted=("x",),
        scalings=(additive("weight", "bias"),),
    ),
)
def group_norm(
    x: Images, weight: PerChannel, bias: PerChannel, groups: int = 2, eps: float = 1e-5
) -> Images:
    """Groups of channels less their mean, over their deviation; weight and bias per channel."""
    y: torch.Tensor = torch.nn.functional.group_norm(x, groups, weight, bias, eps)
    return y


def _add_rms_norm_by_norm(
    out: None,
    residual_out: None,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float,
) -> _Sums:
    z = torch.stack([x, residual]).sum(dim=0)
    mean_square = torch.linalg.vector_norm(z, dim=1, keepdim=True) ** 2 / z.shape[1]
    return weight * (z / (mean_square + eps).sqrt()), z


@operation(
    eps=Scalar(1e-6, 1e-4, logarithmic=True),
    second=_add_rms_norm_by_norm,
    shadow=lambda y, out, residual_out, x, residual, weight, eps: (4 * y[0].abs(), y[1].abs()),
    reduces="N",
    tiled="N",
    recipes=tuple(name for name in MODERATE_RECIPES if name != "masked_rows"),
    relations=Relations(symmetric="B N", independent="B"),
)
def add_rms_norm(
    out: Destination,
    residual_out: Destination,
    x: Rows,
    residual: Rows,
    weight: Weight,
    eps: float = 1e-6,
) -> tuple[Rows, Rows]:
    """RMS norm of x plus residual, and that sum, into buffers of the caller.

    The sum is normalised as it is, before it is rounded.
    """
    z = x + residual
    return z * torch.rsqrt(z.square().mean(dim=1, keepdim=True) + eps) * weight, z
