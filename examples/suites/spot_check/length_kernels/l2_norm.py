"""Rows over their Euclidean length, tile by tile."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _l2_norm_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    eps,
    x_row_stride,
    y_row_stride,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)

    squares = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=cols < n_cols, other=0.0)
        squares += x.to(tl.float32) * x.to(tl.float32)
    length = tl.maximum(tl.sqrt(tl.sum(squares, axis=0)), eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=cols < n_cols, other=0.0)
        y = x.to(tl.float32) / length
        y_ptrs = y_ptr + row * y_row_stride + cols
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def l2_norm(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Rows of contiguous `x` [B, N] over their length, or over `eps` where that is larger."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _l2_norm_kernel[(n_rows,)](x, y, n_cols, eps, x.stride(0), y.stride(0), BLOCK_N=BLOCK_N)
    return y
