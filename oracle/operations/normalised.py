"""How rounding acts on rows less their mean, over their standard deviation."""

from __future__ import annotations

from dataclasses import dataclass

import torch

UNIT = 2.0**-24


@dataclass(frozen=True, slots=True)
class Normalised:
    """Sizes behind z = (x - mean) / spread, each in units of one float32 rounding.

    `size` is |z|, `error` what rounding may do to z, `relative` what it may do to the spread,
    relative to it.
    """

    size: torch.Tensor
    error: torch.Tensor
    spread: torch.Tensor
    relative: torch.Tensor


def normalised(x: torch.Tensor, eps: float) -> Normalised:
    """The sizes for each row of `x` [B, N]; the spread is the root of variance plus eps."""
    spread = torch.sqrt(x.var(dim=1, keepdim=True, unbiased=False) + eps)
    z = ((x - x.mean(dim=1, keepdim=True)) / spread).abs()
    level = x.abs().mean(dim=1, keepdim=True)
    centring = (x.abs() + level) / spread
    # Where the true variance is 0 a kernel still finds about (4 u level)^2.
    second_order = 8 * UNIT * (level / spread) ** 2
    relative = 1 + (z * x.abs()).mean(dim=1, keepdim=True) / spread + second_order
    return Normalised(z, z * relative + centring * (1 + second_order), spread, relative)
