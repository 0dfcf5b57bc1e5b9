"""Row-wise operations: softmax, log-softmax, layer norm, RMS norm, cross-entropy."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.normalised import normalised
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import FINITE_RECIPES, MODERATE_RECIPES

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
# Weights stay ordinary while the recipe shapes the data they act on.
Weight: TypeAlias = Annotated[torch.Tensor, tensor("N", stand_ins={"*": "normal"})]
Logits: TypeAlias = Annotated[torch.Tensor, Tensor["B V"]]
Target: TypeAlias = Annotated[torch.Tensor, Tensor.int("B", high="V", marker=-100, all_marked=True)]
Loss: TypeAlias = Annotated[torch.Tensor, Tensor[""]]

_EPSILON = Scalar(1e-6, 1e-4, logarithmic=True)
_NOT_MASKED = tuple(name for name in MODERATE_RECIPES if name != "masked_rows")
IGNORED = -100
_SHIFTED_ROWS = Relations(symmetric="B N", independent="B", padded={"N": -math.inf}, shifted=("x",))
_SHIFT_INVARIANT = (*MODERATE_RECIPES, "far_below")
LOGIT_RECIPES = (*FINITE_RECIPES, "masked_rows", "far_below")
"""Those of a loss: classes may be banned by -inf, but not the target's."""


def _softmax_by_powers(x: torch.Tensor) -> torch.Tensor:
    shifted = x - x.amax(dim=1, keepdim=True)
    powers = torch.exp2(shifted * 1.4426950408889634074)
    return powers / powers.sum(dim=1, keepdim=True)


def _softmax_shadow(p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return p * (1 + x.abs() + (p * x.abs()).sum(dim=1, keepdim=True))


@operation(
    empty="B",
    second=_softmax_by_powers,
    shadow=_softmax_shadow,
    reduces="N",
    recipes=_SHIFT_INVARIANT,
    relations=_SHIFTED_ROWS,
)
def softmax(x: Rows) -> Rows:
    """exp(x) over its sum, along each row."""
    return torch.softmax(x, dim=1)


def _log_softmax_by_powers(x: torch.Tensor) -> torch.Tensor:
    shifted = x - x.amax(dim=1, keepdim=True)
    powers = torch.exp2(shifted * 1.4426950408889634074)
    return shifted - powers.sum(dim=1, keepdim=True).log2() * 0.69314718055994530942


def _log_softmax_shadow(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    lse = torch.logsumexp(x, dim=1, keepdim=True)
    leaned = (torch.softmax(x, dim=1) * x.abs()).sum(dim=1, keepdim=True)
    return 1 + y.abs() + x.abs() + lse.abs() + leaned


@operation(
    empty="B",
    second=_log_softmax_by_powers,
    shadow=_log_softmax_shadow,
    reduces="N",
    recipes=_SHIFT_INVARIANT,
    relations=_SHIFTED_ROWS,
)
def log_softmax(x: Rows) -> Rows:
    """x less the logarithm of the sum of exp(x), along each row."""
    return torch.log_softmax(x, dim=1)


def _layer_norm_by_moments(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    deviation = x - x.sum(dim=1, keepdim=True) / x.shape[1]
    variance = (deviation**2).sum(dim=1, keepdim=True) / x.shape[1]
    return deviation * torch.rsqrt(variance + eps) * weight + bias


def _layer_norm_shadow(
    y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    return y.abs() + bias.abs() + weight.abs() * normalised(x, eps).error


@operation(
    eps=_EPSILON,
    empty="B",
    second=_layer_norm_by_moments,
    shadow=_layer_norm_shadow,
    reduces="N",
    recipes=_NOT_MASKED,
    relations=Relations(
        symmetric="B N",
        independent="B",
        shifted=("x",),
        scalings=(additive("weight", "bias"),),
    ),
)
def layer_norm(x: Rows, weight: Weight, bias: Weight, eps: float = 1e-5) -> Rows:
    """Rows less their mean, over their standard deviation, times weight, plus bias."""
    y: torch.Tensor = torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, eps)
    return y


def _rms_norm_by_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    mean_square: torch.Tensor = torch.linalg.vector_norm(x, dim=1, keepdim=True) ** 2 / x.shape[1]
    return weight * (x / (mean_square + eps).sqrt())


@operation(
    eps=_EPSILON,
    empty="B",
    second=_rms_norm_by_norm,
    shadow=lambda y, x, weight, eps: 3 * y.abs(),
    reduces="N",
    recipes=_NOT_MASKED,
    relations=Relations(symmetric="B N", independent="B", scalings=(additive("weight"),)),
)
def rms_norm(x: Rows, weight: Weight, eps: float = 1e-6) -> Rows:
    """Rows over their root mean square, times weight."""
    return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + eps) * weight


def _cross_entropy_of_torch(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits, target, ignore_index=IGNORED)


def _cross_entropy_shadow(
    y: torch.Tensor, logits: torch.Tensor, target: torch.Tensor
) -> torch.Tensor:
    valid = target != IGNORED
    if not valid.any():
        return torch.ones_like(y)
    x, chosen = logits[valid], target[valid]
    lse = torch.logsumexp(x, dim=1)
    picked = x.gather(1, chosen[:, None])[:, 0]
    leaned = (torch.softmax(x, dim=1) * x.abs()).sum(dim=1)
    return (1 + (lse - picked).abs() + picked.abs() + lse.abs() + leaned).mean()


@operation(
    second=_cross_entropy_of_torch,
    shadow=_cross_entropy_shadow,
    reduces="V B",
    recipes=LOGIT_RECIPES,
    outputs=["loss"],
    relations=Relations(symmetric="B V", padded={"V": -math.inf}, shifted=("logits",)),
)
def cross_entropy(logits: Logits, target: Target) -> Loss:
    """Mean over rows of log-sum-exp less the target's logit; target -100 is left out.

    Where all are, the mean of no rows is NaN.
    """
    valid = target != IGNORED
    x = logits[valid]
    picked = x.gather(1, target[valid][:, None])[:, 0]
    return (torch.logsumexp(x, dim=1) - picked).mean()
