"""Liger's public autograd functions under the signatures of the operations.

Nothing here computes: an adapter picks arguments and outputs, asks for gradients, and copies
what Liger overwrites.
"""

from __future__ import annotations

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.kl_div import LigerKLDivLossFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from liger_kernel.ops.tvd import LigerTVDLossFunction
from operations import IGNORED, gradients, leaf


def softmax(x: torch.Tensor, dy: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Softmax of each row of `x` [B, N], and the gradient of `x` for `dy` [B, N]."""
    x = leaf(x)
    y = LigerSoftmaxFunction.apply(x)
    return y.detach(), *gradients(y, (x,), (dy,))


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """RMS norm of each row of `x` [B, N] in the llama casting mode, without offset."""
    return LigerRMSNormFunction.apply(x, weight, eps, 0.0, "llama")


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Layer norm of each row of `x` [B, N]."""
    return LigerLayerNormFunction.apply(x, weight, bias, eps)


def swiglu(
    a: torch.Tensor, b: torch.Tensor, dc: torch.Tensor, gate: float
) -> tuple[torch.Tensor, ...]:
    """silu(gate a) * b for `a` and `b` [B, N], and their gradients for `dc` [B, N].

    Liger writes the gradients over its saved inputs.
    """
    a, b = leaf(a), leaf(b)
    c = LigerSiLUMulFunction.apply(a, b, gate)
    return c.detach(), *gradients(c, (a, b), (dc,))


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gelu(a) * b, tanh form, for `a` and `b` [B, N]."""
    return LigerGELUMulFunction.apply(a, b)


def add_rms_norm(
    x: torch.Tensor,
    r: torch.Tensor,
    weight: torch.Tensor,
    dy: torch.Tensor,
    ds: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """RMS norm of `x` + `r` [B, N] (llama casting mode), the sum, gradients of `x` and `weight`."""
    x, weight = leaf(x), leaf(weight)
    y, s = LigerFusedAddRMSNormFunction.apply(x, r, weight, eps)
    return y.detach(), s.detach(), *gradients((y, s), (x, weight), (dy, ds))


def kl_div(
    log_p: torch.Tensor, target: torch.Tensor, log_target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Each element from probabilities, the mean over rows from logarithms; all [B, V]."""
    log_p = leaf(log_p)
    each = LigerKLDivLossFunction.apply(log_p, target, "none", False)
    mean = LigerKLDivLossFunction.apply(log_p, log_target, "batchmean", True)
    (each_grad,), (grad,) = gradients(each.sum(), (log_p,)), gradients(mean, (log_p,))
    return each.detach(), each_grad, mean.detach(), grad


def total_variation(
    p: torch.Tensor, q: torch.Tensor, target: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Mean over the rows with a target, then each element without targets; `p`, `q` [B, V]."""
    p = leaf(p)
    mean = LigerTVDLossFunction.apply(p, q, target, "batchmean", IGNORED)
    each = LigerTVDLossFunction.apply(p, q, None, "none")
    (grad,), (each_grad,) = gradients(mean, (p,)), gradients(each.sum(), (p,))
    return mean.detach(), grad, each.detach(), each_grad


def cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor,
    smoothing: float,
    square: float,
    softcap: float,
) -> tuple[torch.Tensor, ...]:
    """Smoothed loss of `logits` [B, V], then with soft cap and class weights [V] (float32).

    Liger writes gradients over its logits, so each call gets a copy with the same strides: its
    kernel takes padded rows as they are.
    """
    plain, capped = leaf(logits), leaf(logits)
    loss, _, hits, best = LigerCrossEntropyFunction.apply(
        plain, target, None, IGNORED, square, smoothing, "mean", None, False, True, True
    )
    capped_loss, z_loss, _, _ = LigerCrossEntropyFunction.apply(
        capped, target, weight.float(), IGNORED, square, smoothing, "mean", softcap, True
    )
    (grad,), (capped_grad,) = gradients(loss, (plain,)), gradients(capped_loss, (capped,))
    return loss.detach(), grad, hits, best, capped_loss.detach(), capped_grad, z_loss.detach()
