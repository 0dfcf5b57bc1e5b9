"""Element-wise operations: activations and gated activations."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.exact import linear
from gatecert.oracle.relations import Relations, additive, homogeneous
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import MODERATE_RECIPES

# Of factors 0 and infinity, or far from 1 both, another order of products makes NaN or infinity.
_FINITE = {"nan_injected": "normal", "adversarial": "normal"}

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
Factor: TypeAlias = Annotated[torch.Tensor, tensor("B N", stand_ins=_FINITE)]

_NOT_MASKED = tuple(name for name in MODERATE_RECIPES if name != "masked_rows")
_EACH_ALONE = Relations(symmetric="B N", independent="B N", padded={"B": 1.0, "N": 1.0})
_LINEAR_IN_B = replace(_EACH_ALONE, scalings=(additive("b"),))
_INNER = math.sqrt(2.0 / math.pi)
# Where exp(-x) overflows fp32 a kernel's sigmoid is 0 instead of something below 2^-127.
_SIGMOID_UNDERFLOW = 2.0**-102


@operation(
    empty="B N",
    # erfc keeps the lower tail that 1 + erf cancels.
    second=lambda x: 0.5 * x * torch.special.erfc(-x / math.sqrt(2.0)),
    shadow=lambda y, x: x.abs() + y.abs(),
    recipes=_NOT_MASKED,
    relations=_EACH_ALONE,
)
def gelu_erf(x: Rows) -> Rows:
    """x times the normal distribution function of x."""
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))


def _gelu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(_INNER * (x + 0.044715 * x**3)))


def _gelu_by_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(2.0 * _INNER * (x + 0.044715 * x**3))


@operation(
    empty="B N",
    second=_gelu_by_sigmoid,
    shadow=lambda y, x: x.abs() + y.abs(),
    recipes=_NOT_MASKED,
    relations=_EACH_ALONE,
)
def gelu_tanh(x: Rows) -> Rows:
    """The tanh form of gelu."""
    return _gelu_by_tanh(x)


@operation(
    empty="B N",
    slope=Scalar(0.01, 0.5),
    second=lambda x, slope: torch.clamp(x, min=0.0) + slope * torch.clamp(x, max=0.0),
    shadow=lambda y, x, slope: y.abs(),
    # No output is larger than its input.
    recipes=(*_NOT_MASKED, "huge"),
    exact=linear(scalars={"slope": 0.25}),
    relations=replace(_EACH_ALONE, scalings=(homogeneous("x"),)),
)
def leaky_relu(x: Rows, slope: float = 0.01) -> Rows:
    """x where positive, slope times x elsewhere."""
    return torch.where(x > 0, x, slope * x)


def _silu_shadow(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return y.abs() * (1 + x.abs()) + _SIGMOID_UNDERFLOW * x.abs()


@operation(
    empty="B N",
    second=lambda x: x / (1.0 + torch.exp(-x)),
    shadow=_silu_shadow,
    recipes=_NOT_MASKED,
    relations=_EACH_ALONE,
)
def silu(x: Rows) -> Rows:
    """x times its sigmoid."""
    return x * torch.sigmoid(x)


def _swiglu_shadow(y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return y.abs() * (1 + a.abs()) + _SIGMOID_UNDERFLOW * (a * b).abs()


@operation(
    empty="B N",
    second=lambda a, b: a / (1.0 + torch.exp(-a)) * b,
    shadow=_swiglu_shadow,
    recipes=_NOT_MASKED,
    relations=_LINEAR_IN_B,
)
def swiglu(a: Rows, b: Factor) -> Rows:
    """silu(a) times b."""
    return a * torch.sigmoid(a) * b


def _geglu_shadow(y: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.abs() * b.abs() + 2 * y.abs()


@operation(
    empty="B N",
    second=lambda a, b: _gelu_by_sigmoid(a) * b,
    shadow=_geglu_shadow,
    recipes=_NOT_MASKED,
    relations=_LINEAR_IN_B,
)
def geglu(a: Rows, b: Factor) -> Rows:
    """gelu in its tanh form of a, times b."""
    return _gelu_by_tanh(a) * b
