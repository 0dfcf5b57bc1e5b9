"""Scaled dot-product attention, backward."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import torch

from gatecert.oracle.operations.attention import (
    Key,
    Query,
    Value,
    attend_row_by_row,
    scaled_scores,
)
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, operation, tensor

Tensors: TypeAlias = tuple[torch.Tensor, ...]
# The gradient stays ordinary where a recipe shapes the scores along the keys.
Upstream: TypeAlias = Annotated[
    torch.Tensor,
    tensor(
        "B H S D",
        stand_ins=dict.fromkeys(("rising", "falling", "spike", "large_offset"), "normal"),
    ),
]
QueryGradient: TypeAlias = Annotated[torch.Tensor, tensor("B H S D")]
KeyGradient: TypeAlias = Annotated[torch.Tensor, tensor("B H T D")]

# Weights below 2^-126 are 0 in fp32: an error that is absolute, here over 2^-24.
_UNDERFLOW = 2.0**-102
# Below this float16 is spaced evenly: what is rounded to it errs as this would.
_FLOAT16_NORMAL = 2.0**-14


def _by_autograd(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, causal: int
) -> Tensors:
    q, k, v = (values.detach().clone().requires_grad_() for values in (q, k, v))
    return torch.autograd.grad(attend_row_by_row(q, k, v, bool(causal)), (q, k, v), dout)


def _shadow(
    gradients: Tensors,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    causal: int,
) -> Tensors:
    """Errors of the weights, carried through every product that they enter.

    A kernel's weight is exp(score - lse): it errs by the size of its score, by that of lse, and
    by what lse inherits from the scores of its row. delta inherits the errors of out, the
    gradient of the scores those of the weights, of dp and of delta. A rounding at the end of
    each step is smaller than what is there already.
    """
    scale = 1 / math.sqrt(q.shape[-1])
    scores = scaled_scores(q, k, bool(causal))
    visible = scores.isfinite()
    p = torch.softmax(scores, -1)
    lse = torch.logsumexp(scores, -1, keepdim=True)
    score_error = scale * q.abs() @ k.abs().mT + scores.where(visible, 0.0).abs()
    lse_error = lse.abs() + (p * score_error).sum(-1, keepdim=True)
    p_error = p * (1 + score_error + lse_error) + _UNDERFLOW * visible

    out, dp, dp_error = p @ v, dout @ v.mT, dout.abs() @ v.abs().mT
    delta = (out * dout).sum(-1, keepdim=True)
    out_size = (out * dout).abs().sum(-1, keepdim=True)
    delta_error = (p_error * dp_error).sum(-1, keepdim=True) + p_error.sum(-1, keepdim=True) * (
        out_size
    )
    ds_error = p_error * (dp - delta).abs() + p * (dp_error + delta_error)
    return (
        scale * ds_error @ k.abs(),
        scale * ds_error.mT @ q.abs(),
        p_error.mT @ dout.abs(),
    )


def _mid_shadow(
    gradients: Tensors,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    causal: int,
) -> Tensors:
    """Weights, their gradient and the forward output rounded before they meet the inputs."""
    scale = 1 / math.sqrt(q.shape[-1])
    scores = scaled_scores(q, k, bool(causal))
    floor = _FLOAT16_NORMAL * scores.isfinite()
    p = torch.softmax(scores, -1)
    rounded_out = ((p @ v) * dout).abs().sum(-1, keepdim=True)
    ds_error = _score_gradient(p, v, dout).abs() + p * rounded_out + floor
    return (
        scale * ds_error @ k.abs(),
        scale * ds_error.mT @ q.abs(),
        (p + floor).mT @ dout.abs(),
    )


def _score_gradient(p: torch.Tensor, v: torch.Tensor, dout: torch.Tensor) -> torch.Tensor:
    delta = ((p @ v) * dout).sum(-1, keepdim=True)
    return p * (dout @ v.mT - delta)


@operation(
    causal=Scalar(0, 1, integer=True),
    second=_by_autograd,
    shadow=_shadow,
    mid_shadow=_mid_shadow,
    reduces="S T D",
    contraction=True,
    tiled="S T",
    # Four kernels run per pair of batch and head: few pairs are tried.
    sizes={"D": (40, 16), "B": (1, 2), "H": (2, 1, 1)},
    outputs=["dq", "dk", "dv"],
    relations=Relations(symmetric="B H D", scalings=(additive("dout"),)),
)
def attention_backward(
    q: Query, k: Key, v: Value, dout: Upstream, causal: int = 1
) -> tuple[QueryGradient, KeyGradient, KeyGradient]:
    """Gradients of q, k and v in attention, for the gradient dout of its result."""
    scale = 1 / math.sqrt(q.shape[-1])
    p = torch.softmax(scaled_scores(q, k, bool(causal)), -1)
    ds = _score_gradient(p, v, dout)
    return scale * ds @ k, scale * ds.mT @ q, p.mT @ dout
