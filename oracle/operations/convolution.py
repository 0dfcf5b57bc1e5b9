"""Convolutions along a sequence."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch
from torch.nn import functional

from gatecert.oracle.exact import linear
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Tensor, operation, tensor
from gatecert.oracle.values import MODERATE_RECIPES, PROBES_AS_THEY_ARE

Sequences: TypeAlias = Annotated[torch.Tensor, Tensor["B C S"]]
# Weights stay ordinary while the recipe shapes the sequences that they act on.
# In exact mode they are integers too.
_WEIGHTS = {"*": "normal", "ternary": "ternary", "one_hot": "small_integers", **PROBES_AS_THEY_ARE}
Taps: TypeAlias = Annotated[torch.Tensor, tensor("C W", stand_ins=_WEIGHTS)]
Bias: TypeAlias = Annotated[torch.Tensor, tensor("C", stand_ins=_WEIGHTS)]

# Where exp(-z) overflows fp32 a kernel's sigmoid is 0 instead of something below 2^-127.
_SIGMOID_UNDERFLOW = 2.0**-102


def _convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    width, length = weight.shape[1], x.shape[2]
    padded = functional.pad(x, (width - 1, 0))
    total = bias[:, None].expand_as(x)
    for tap in range(width):
        total = total + weight[:, tap, None] * padded[:, :, tap : tap + length]
    return total


def _by_torch(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, silu: int) -> torch.Tensor:
    padded = functional.pad(x, (weight.shape[1] - 1, 0))
    y = functional.conv1d(padded, weight[:, None], bias, groups=x.shape[1])
    return y / (1.0 + torch.exp(-y)) if silu else y


def _shadow(
    y: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, silu: int
) -> torch.Tensor:
    size = _convolve(x.abs(), weight.abs(), bias.abs())
    if not silu:
        return size
    z = _convolve(x, weight, bias)
    # silu' is below sigmoid(z) (1 + |z|); the exponential errs by its argument's size.
    slope = torch.sigmoid(z) * (1 + z.abs())
    return slope * (size + z.abs()) + _SIGMOID_UNDERFLOW * z.abs()


@operation(
    silu=Scalar(0, 1, integer=True),
    second=_by_torch,
    shadow=_shadow,
    reduces="W",
    tiled="C S",
    sizes={"W": (4, 3, 2)},
    recipes=tuple(name for name in MODERATE_RECIPES if name != "masked_rows"),
    exact=linear(factors=2, more_terms=1, scalars={"silu": 0}),
    # A causal filter sees nothing later.
    relations=Relations(
        symmetric="B C",
        independent="B C",
        padded={"S": 1.0},
        scalings=(additive("weight", "bias", where={"silu": 0}),),
    ),
)
def causal_conv1d(x: Sequences, weight: Taps, bias: Bias, silu: int = 1) -> Sequences:
    """Each channel filtered by its own weights over the last W positions, then SiLU or nothing."""
    z = _convolve(x, weight, bias)
    return z * torch.sigmoid(z) if silu else z
