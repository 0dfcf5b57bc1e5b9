"""Softmax over the last dim of a matrix: a whole row at once, and tile by tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program of the one-block kernel."""
BLOCK_N = 128
"""Columns per tile of the online kernel."""


@triton.jit
def _softmax_one_block_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)
    mask = (rows < n_rows) & (cols < n_cols)

    x_ptrs = x_ptr + rows * stride_xb + cols * stride_xn
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)

    # Rows past the last one are all -inf and become NaN; the store leaves them out.
    shifted = x - tl.max(x, axis=1, keep_dims=True)
    numerator = tl.exp(shifted)
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    y = numerator / denominator

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax_one_block(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of `x` [B, N]; a row must hold at least one value above -inf."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _softmax_one_block_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        x,
        y,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=triton.next_power_of_2(n_cols),
    )
    return y


@triton.jit
def _softmax_online_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    x_row = x_ptr + row * stride_xb
    y_row = y_ptr + row * stride_yb

    # exp(x) is exp2(x * log2(e)), one instruction on a GPU; the running maximum is in that domain.
    log2e = 1.4426950408889634
    running_max = tl.full([1], -float("inf"), dtype=tl.float32)
    running_sum = tl.zeros([1], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=-float("inf"))
        scores = x.to(tl.float32) * log2e
        new_max = tl.maximum(running_max, tl.max(scores, axis=0))
        # A row may start with whole tiles of -inf: exp2(-inf - -inf) would be NaN.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        rescale = tl.exp2(running_max - shift)
        running_sum = running_sum * rescale + tl.sum(tl.exp2(scores - shift), axis=0)
        running_max = new_max

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0)
        scores = x.to(tl.float32) * log2e
        y = tl.exp2(scores - running_max) / running_sum
        tl.store(y_row + cols * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax_online(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of `x` [B, N]; a row must hold at least one value above -inf."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _softmax_online_kernel[(n_rows,)](
        x,
        y,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_N=BLOCK_N,
    )
    return y
