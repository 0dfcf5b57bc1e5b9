"""Gradients of losses."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.rows import IGNORED, LOGIT_RECIPES, Logits, Target
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import operation, tensor

RowGradient: TypeAlias = Annotated[torch.Tensor, tensor("B", stand_ins={"*": "normal"})]


def _by_autograd(logits: torch.Tensor, target: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(
            leaf, target, ignore_index=IGNORED, reduction="none"
        )
        (found,) = torch.autograd.grad(loss, leaf, grad)
    return found


def _shadow(
    y: torch.Tensor, logits: torch.Tensor, target: torch.Tensor, grad: torch.Tensor
) -> torch.Tensor:
    # What banned classes leave of p is read off the result: here they are 0, not -inf.
    p = (y / torch.where(grad == 0, 1.0, grad)[:, None] + _hot(logits, target)).abs()
    size = logits.abs()
    error = p * (1 + size + (p * size).sum(dim=1, keepdim=True))
    return y.abs() + grad.abs()[:, None] * error


def _hot(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """1 at the target of every row that counts."""
    valid = target != IGNORED
    hot = torch.zeros_like(logits)
    hot[valid, target[valid]] = 1.0
    return hot


@operation(
    empty="B",
    second=_by_autograd,
    shadow=_shadow,
    reduces="V",
    recipes=LOGIT_RECIPES,
    outputs=["dlogits"],
    relations=Relations(
        symmetric="B V",
        independent="B",
        padded={"V": -math.inf},
        shifted=("logits",),
        scalings=(additive("grad"),),
    ),
)
def cross_entropy_backward(logits: Logits, target: Target, grad: RowGradient) -> Logits:
    """Gradient of the logits where row i's loss has gradient grad[i]; target -100 has none."""
    counted = torch.where(target != IGNORED, grad, 0.0)[:, None]
    return (torch.softmax(logits, dim=1) - _hot(logits, target)) * counted
