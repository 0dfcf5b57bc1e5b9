"""Root-mean-square normalisation over the last dim of a matrix, in tiles of rows x columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 128
"""Columns per tile."""


@triton.jit
def _rms_norm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    n_rows,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_weight,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)
    row_mask = rows < n_rows
    x_rows = x_ptr + rows * stride_xb
    y_rows = y_ptr + rows * stride_yb

    squares = tl.zeros([BLOCK_B, BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = row_mask & (cols < n_cols)
        x = tl.load(x_rows + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
    mean_square = tl.sum(squares, axis=1, keep_dims=True) / n_cols
    inv_rms = tl.rsqrt(mean_square + eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        col_mask = cols < n_cols
        mask = row_mask & col_mask
        x = tl.load(x_rows + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols * stride_weight, mask=col_mask, other=0.0)
        y = x * inv_rms * weight.to(tl.float32)
        tl.store(y_rows + cols * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Divide each row of `x` [B, N] by its root mean square, then scale by `weight` [N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _rms_norm_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        x,
        weight,
        y,
        n_rows,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
