"""Softmax of rows under a mask of booleans, tile by tile, with or without a bias."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _scores(
    x_ptr,
    mask_ptr,
    bias_ptr,
    cols,
    n_cols,
    stride_x,
    stride_mask,
    stride_bias,
    HAS_BIAS: tl.constexpr,
):
    """Scores of a tile, -inf where nothing is let through."""
    inside = cols < n_cols
    scores = tl.load(x_ptr + cols * stride_x, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        scores += tl.load(bias_ptr + cols * stride_bias, mask=inside, other=0.0).to(tl.float32)
    seen = tl.load(mask_ptr + cols * stride_mask, mask=inside, other=0)
    return tl.where(seen != 0, scores, -float("inf"))


@triton.jit
def _masked_softmax_kernel(
    x_ptr,
    mask_ptr,
    bias_ptr,
    y_ptr,
    n_cols,
    stride_xb,
    stride_xn,
    stride_mb,
    stride_mn,
    stride_bias,
    stride_yb,
    stride_yn,
    HAS_BIAS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_xb
    mask_row = mask_ptr + row * stride_mb
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    largest = tl.full([BLOCK_N], -float("inf"), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        scores = _scores(
            x_row, mask_row, bias_ptr, cols, n_cols, stride_xn, stride_mn, stride_bias, HAS_BIAS
        )
        largest = tl.maximum(largest, scores)
    row_max = tl.max(largest, axis=0)
    # Of a row that is hidden as a whole: -inf less -inf would be NaN.
    row_max = tl.where(row_max == -float("inf"), 0.0, row_max)

    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        scores = _scores(
            x_row, mask_row, bias_ptr, cols, n_cols, stride_xn, stride_mn, stride_bias, HAS_BIAS
        )
        total += tl.exp(scores - row_max)
    row_sum = tl.sum(total, axis=0)
    row_sum = tl.where(row_sum == 0.0, 1.0, row_sum)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        scores = _scores(
            x_row, mask_row, bias_ptr, cols, n_cols, stride_xn, stride_mn, stride_bias, HAS_BIAS
        )
        y = tl.exp(scores - row_max) / row_sum
        y_ptrs = y_ptr + row * stride_yb + cols * stride_yn
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def masked_softmax(
    x: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Softmax of `x` [B, N], plus `bias` [N], where `mask` [B, N] is true; 0 elsewhere."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _masked_softmax_kernel[(n_rows,)](
        x,
        mask,
        bias,
        y,
        n_cols,
        *x.stride(),
        *mask.stride(),
        0 if bias is None else bias.stride(0),
        *y.stride(),
        HAS_BIAS=bias is not None,
        BLOCK_N=BLOCK_N,
    )
    return y
