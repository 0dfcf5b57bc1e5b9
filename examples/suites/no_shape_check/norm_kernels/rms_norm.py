"""RMS normalisation of the rows of a matrix, in tiles of rows and columns."""

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _rms_norm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    n_rows,
    n_cols,
    eps,
    x_row_stride,
    y_row_stride,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)[None, :]

    squares = tl.zeros([BLOCK_B, BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=1, keep_dims=True) / n_cols + eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        y = x * scale * weight
        tl.store(y_ptr + rows * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows of contiguous `x` [B, N] over their root mean square, times `weight` [N]."""
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
        y.stride(0),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
