"""Gradients of losses."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.rows import IGNORED, Logits, Target
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
    p = torch.softmax(logits, dim=1)
    size = logits.abs()
    error = p * (1 + size + (p * size).sum(dim=1, keepdim=True))
    return y.abs() + grad.abs()[:, None] * error


@operation(second=_by_autograd, shadow=_shadow, reduces="V", outputs=["dlogits"])
def cross_entropy_backward(logits: Logits, target: Target, grad: RowGradient) -> Logits:
    """Gradient of the logits where row i's loss has gradient grad[i]; target -100 has none."""
    valid = target != IGNORED
    hot = torch.zeros_like(logits)
    hot[valid, target[valid]] = 1.0
    return (torch.softmax(logits, dim=1) - hot) * torch.where(valid, grad, 0.0)[:, None]
