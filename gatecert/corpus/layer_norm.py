"""Layer normalisation over the last dim of a matrix: a whole row at once, and tile by tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program of the one-block kernel."""
BLOCK_N = 128
"""Columns per tile of the looped kernel."""


@triton.jit
def _layer_norm_one_block_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    n_rows,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_weight,
    stride_bias,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)
    col_mask = cols < n_cols
    mask = (rows < n_rows) & col_mask

    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / n_cols
    # Padding lanes hold -mean after centring and must not enter the variance.
    centred = tl.where(col_mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=1, keep_dims=True) / n_cols
    inv_std = 1.0 / tl.sqrt(variance + eps)

    weight = tl.load(weight_ptr + cols * stride_weight, mask=col_mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols * stride_bias, mask=col_mask, other=0.0).to(tl.float32)
    y = centred * inv_std * weight + bias

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm_one_block(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalise each row of `x` [B, N], then scale by `weight` [N] and add `bias` [N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _layer_norm_one_block_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        x,
        weight,
        bias,
        y,
        n_rows,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        bias.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=triton.next_power_of_2(n_cols),
    )
    return y


@triton.jit
def _layer_norm_looped_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_weight,
    stride_bias,
    stride_yb,
    stride_yn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    x_row = x_ptr + row * stride_xb
    y_row = y_ptr + row * stride_yb

    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        total += tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols

    squares = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        centred = tl.where(mask, x - mean, 0.0)
        squares += centred * centred
    variance = tl.sum(squares, axis=0) / n_cols
    inv_std = tl.rsqrt(variance + eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols * stride_weight, mask=mask, other=0.0).to(tl.float32)
        bias = tl.load(bias_ptr + cols * stride_bias, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * inv_std * weight + bias
        tl.store(y_row + cols * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm_looped(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Normalise each row of `x` [B, N], then scale by `weight` [N] and add `bias` [N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _layer_norm_looped_kernel[(n_rows,)](
        x,
        weight,
        bias,
        y,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        bias.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_N=BLOCK_N,
    )
    return y
