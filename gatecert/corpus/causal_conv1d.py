"""Depthwise causal convolution over a sequence, with an optional SiLU, as state-space models have.

Channels are tiled too, and neighbours read each other's elements again: the cache serves them.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_C = 8
"""Channels per program."""
BLOCK_S = 64
"""Positions per program."""


@triton.jit
def _causal_conv1d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    n_channels,
    seq_len,
    stride_xb,
    stride_xc,
    stride_xs,
    stride_wc,
    stride_ww,
    stride_bias,
    stride_yb,
    stride_yc,
    stride_ys,
    WIDTH: tl.constexpr,
    SILU: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    batch = tl.program_id(2).to(tl.int64)
    channels = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)[:, None].to(tl.int64)
    positions = tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)[None, :].to(tl.int64)
    in_channels = channels < n_channels
    mask = in_channels & (positions < seq_len)

    x_rows = x_ptr + batch * stride_xb + channels * stride_xc
    bias = tl.load(bias_ptr + channels * stride_bias, mask=in_channels, other=0.0)
    acc = tl.zeros((BLOCK_C, BLOCK_S), dtype=tl.float32) + bias.to(tl.float32)
    for tap in range(WIDTH):
        weight = tl.load(
            weight_ptr + channels * stride_wc + tap * stride_ww, mask=in_channels, other=0.0
        )
        source = positions - (WIDTH - 1) + tap
        # Before the start of the sequence there are zeros.
        x = tl.load(x_rows + source * stride_xs, mask=mask & (source >= 0), other=0.0)
        acc += weight.to(tl.float32) * x.to(tl.float32)

    if SILU:
        acc = acc / (1.0 + tl.exp(-acc))
    y_ptrs = y_ptr + batch * stride_yb + channels * stride_yc + positions * stride_ys
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=mask)


def causal_conv1d(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, silu: bool = True
) -> torch.Tensor:
    """y[b, c, s] = bias[c] + sum over w of weight[c, w] x[b, c, s - W + 1 + w], then SiLU.

    `x` is [B, C, S], `weight` [C, W], `bias` [C]; `x` is zero before its start.
    """
    batch, n_channels, seq_len = x.shape
    y = torch.empty_like(x)
    _causal_conv1d_kernel[(triton.cdiv(seq_len, BLOCK_S), triton.cdiv(n_channels, BLOCK_C), batch)](
        x,
        weight,
        bias,
        y,
        n_channels,
        seq_len,
        *x.stride(),
        *weight.stride(),
        bias.stride(0),
        *y.stride(),
        WIDTH=weight.shape[1],
        SILU=bool(silu),
        BLOCK_C=BLOCK_C,
        BLOCK_S=BLOCK_S,
    )
    return y
