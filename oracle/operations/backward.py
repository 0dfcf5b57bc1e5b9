"""Gradients of normalisations and of softmax, given the upstream gradient; autograd is one of two
formulations of each."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch
from torch.nn import functional

from gatecert.oracle.exact import linear
from gatecert.oracle.gradients import grad_of
from gatecert.oracle.operations.normalised import UNIT, normalised
from gatecert.oracle.operations.rows import softmax
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import MODERATE_RECIPES, PROBES_AS_THEY_ARE

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
# Upstream gradients and weights stay ordinary while the recipe shapes the data they act on;
# in exact mode the gradients are integers, for their sum.
_GRADIENTS = {"*": "normal", "ternary": "ternary", **PROBES_AS_THEY_ARE}
Upstream: TypeAlias = Annotated[torch.Tensor, tensor("B N", stand_ins=_GRADIENTS)]
Weight: TypeAlias = Annotated[torch.Tensor, tensor("N", stand_ins={"*": "normal"})]
Pair: TypeAlias = tuple[torch.Tensor, torch.Tensor]
Triple: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

_EPSILON = Scalar(1e-6, 1e-4, logarithmic=True)
_NOT_MASKED = tuple(name for name in MODERATE_RECIPES if name != "masked_rows")


def _layer_norm_by_autograd(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, ...]:
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    bias = torch.zeros_like(weight, requires_grad=True)
    y = functional.layer_norm(x, weight.shape, weight, bias, eps)
    return torch.autograd.grad(y, (x, weight, bias), dy)


def _layer_norm_shadow(
    y: Triple, dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> Triple:
    z = normalised(x, eps)
    m = (dy * weight).abs()
    projection = (m * z.size).mean(dim=1, keepdim=True)
    unsure = (m * z.error).mean(dim=1, keepdim=True)
    # Where z is 0 its error alone meets that of the projection.
    terms = m + m.mean(dim=1, keepdim=True) + z.error * projection
    terms = terms + (z.size + UNIT * z.error) * unsure
    dx = y[0].abs() * z.relative + terms / z.spread
    return dx, (dy.abs() * z.error).sum(dim=0), dy.abs().sum(dim=0)


@operation(
    eps=_EPSILON,
    second=_layer_norm_by_autograd,
    shadow=_layer_norm_shadow,
    reduces="N B",
    recipes=_NOT_MASKED,
    outputs=("dx", "dweight", "dbias"),
    exact=linear(outputs=["dbias"], tensors=["dy"]),
    relations=Relations(symmetric="B N", shifted=("x",), scalings=(additive("dy"),)),
)
def layer_norm_backward(
    dy: Upstream, x: Rows, weight: Weight, eps: float = 1e-5
) -> tuple[Rows, Weight, Weight]:
    """Gradients of layer norm's input, weight and bias for the upstream gradient dy."""
    variance, mean = torch.var_mean(x, dim=1, correction=0, keepdim=True)
    scale = torch.rsqrt(variance + eps)
    z = (x - mean) * scale
    m = dy * weight
    projection = (m * z).mean(dim=1, keepdim=True)
    dx = scale * (m - m.mean(dim=1, keepdim=True) - z * projection)
    return dx, (dy * z).sum(dim=0), dy.sum(dim=0)


def _rms_norm_by_autograd(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, ...]:
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    y = functional.rms_norm(x, weight.shape, weight, eps)
    return torch.autograd.grad(y, (x, weight), dy)


def _rms_norm_shadow(
    y: Pair, dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float
) -> Pair:
    scale = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + eps)
    z, m = (x * scale).abs(), (dy * weight).abs()
    pulled = z * (m * z).mean(dim=1, keepdim=True)
    return (2 * m + 4 * pulled) * scale, 3 * (dy.abs() * z).sum(dim=0)


@operation(
    eps=_EPSILON,
    second=_rms_norm_by_autograd,
    shadow=_rms_norm_shadow,
    reduces="N B",
    recipes=_NOT_MASKED,
    outputs=("dx", "dweight"),
    relations=Relations(symmetric="B N", scalings=(additive("dy"),)),
)
def rms_norm_backward(
    dy: Upstream, x: Rows, weight: Weight, eps: float = 1e-6
) -> tuple[Rows, Weight]:
    """Gradients of RMS norm's input and weight for the upstream gradient dy."""
    scale = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + eps)
    m = dy * weight
    z = x * scale
    dx = scale * (m - z * (m * z).mean(dim=1, keepdim=True))
    return dx, (dy * z).sum(dim=0)


def _softmax_backward_by_hand(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    p = torch.softmax(x, dim=1)
    return p * (dy - (p * dy).sum(dim=1, keepdim=True))


def _softmax_backward_shadow(dx: torch.Tensor, dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    p, size = torch.softmax(x, dim=1), dy.abs()
    # Of a probability: what the softmax itself may be off.
    unsure = 1 + x.abs() + (p * x.abs()).sum(dim=1, keepdim=True)
    projected = (p * size * unsure).sum(dim=1, keepdim=True)
    return p * (unsure * (size + (p * size).sum(dim=1, keepdim=True)) + projected + size)


softmax_backward = grad_of(
    softmax, wrt="x", second=_softmax_backward_by_hand, shadow=_softmax_backward_shadow
)
