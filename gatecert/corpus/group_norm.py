"""Group normalisation: statistics over the channels of a group and all their positions."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_SIZE = 256
"""Elements of a group per tile."""


@triton.jit
def _group_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    n_groups,
    channels_per_group,
    n_positions,
    eps,
    stride_xb,
    stride_xc,
    stride_xs,
    stride_weight,
    stride_bias,
    stride_yb,
    stride_yc,
    stride_ys,
    BLOCK_SIZE: tl.constexpr,
):
    batch = (tl.program_id(0) // n_groups).to(tl.int64)
    group = (tl.program_id(0) % n_groups).to(tl.int64)
    first_channel = group * channels_per_group
    x_group = x_ptr + batch * stride_xb + first_channel * stride_xc
    y_group = y_ptr + batch * stride_yb + first_channel * stride_yc
    lanes = tl.arange(0, BLOCK_SIZE).to(tl.int64)
    # A group is walked as one flat row: channel by channel, position by position.
    group_size = channels_per_group * n_positions

    total = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, group_size, BLOCK_SIZE):
        flat = start + lanes
        channels = flat // n_positions
        positions = flat % n_positions
        x_ptrs = x_group + channels * stride_xc + positions * stride_xs
        total += tl.load(x_ptrs, mask=flat < group_size, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / group_size

    squares = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for start in range(0, group_size, BLOCK_SIZE):
        flat = start + lanes
        mask = flat < group_size
        channels = flat // n_positions
        positions = flat % n_positions
        x_ptrs = x_group + channels * stride_xc + positions * stride_xs
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, x - mean, 0.0)
        squares += centred * centred
    inv_std = tl.rsqrt(tl.sum(squares, axis=0) / group_size + eps)

    for start in range(0, group_size, BLOCK_SIZE):
        flat = start + lanes
        mask = flat < group_size
        channels = flat // n_positions
        positions = flat % n_positions
        x_ptrs = x_group + channels * stride_xc + positions * stride_xs
        y_ptrs = y_group + channels * stride_yc + positions * stride_ys
        weight_ptrs = weight_ptr + (first_channel + channels) * stride_weight
        bias_ptrs = bias_ptr + (first_channel + channels) * stride_bias
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptrs, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptrs, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * inv_std * weight + bias
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def group_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, groups: int, eps: float = 1e-5
) -> torch.Tensor:
    """Normalise each group of channels of `x` [B, C, S]; `weight` and `bias` are [C].

    `groups` must divide C.
    """
    n_batch, n_channels, n_positions = x.shape
    y = torch.empty_like(x)
    _group_norm_kernel[(n_batch * groups,)](
        x,
        weight,
        bias,
        y,
        groups,
        n_channels // groups,
        n_positions,
        eps,
        *x.stride(),
        weight.stride(0),
        bias.stride(0),
        *y.stride(),
        BLOCK_SIZE=BLOCK_SIZE,
    )
    return y
