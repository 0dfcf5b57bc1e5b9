"""Dropout whose mask follows from a seed: nothing is stored for the backward pass."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 128
"""Columns per program."""


@triton.jit
def _dropout_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    p,
    seed,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)

    # One number per value, counted along the rows whatever the strides are.
    random = tl.rand(seed, rows * n_cols + cols)
    y = tl.where(random > p, x / (1.0 - p), 0.0)

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    """Zero each value of `x` [B, N] with probability `p`, divide the others by 1 - p.

    The same seed and shape drop the same values.
    """
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _dropout_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        x,
        y,
        n_rows,
        n_cols,
        p,
        seed,
        *x.stride(),
        *y.stride(),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
