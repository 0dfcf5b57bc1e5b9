"""Liger's public autograd functions under the signatures of gatecert's operations.

Nothing here computes: an adapter picks arguments and outputs, and copies what Liger overwrites.
"""

from __future__ import annotations

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of `x` [B, N]."""
    return LigerSoftmaxFunction.apply(x)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm of each row of `x` [B, N] in the llama casting mode, without offset."""
    return LigerRMSNormFunction.apply(x, weight, eps, 0.0, "llama")


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Layer norm of each row of `x` [B, N]."""
    return LigerLayerNormFunction.apply(x, weight, bias, eps)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """silu(a) * b for `a` and `b` [B, N]."""
    return LigerSiLUMulFunction.apply(a, b)


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gelu(a) * b, tanh form, for `a` and `b` [B, N]."""
    return LigerGELUMulFunction.apply(a, b)


def cross_entropy(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Mean loss over the rows of `logits` [B, V] whose `target` [B] is not -100.

    Liger writes gradients (zeros for ignored rows) over its logits, so it gets a copy with the
    same strides: its kernel takes padded rows as they are.
    """
    scratch = torch.empty_strided(
        logits.shape, logits.stride(), dtype=logits.dtype, device=logits.device
    ).copy_(logits)
    loss, _z_loss, _accuracy, _predicted = LigerCrossEntropyFunction.apply(scratch, target, None)
    return loss
