"""Leaky rectified linear unit."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 128
"""Columns per program."""


@triton.jit
def _leaky_relu_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    slope,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]).to(tl.int64)
    mask = (rows < n_rows) & (cols < n_cols)

    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(x >= 0.0, x, x * slope)

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def leaky_relu(x: torch.Tensor, slope: float) -> torch.Tensor:
    """`x` [B, N] where it is not negative, `slope * x` elsewhere."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _leaky_relu_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        x,
        y,
        n_rows,
        n_cols,
        slope,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
