"""Leaky ReLU in tiles of rows and columns."""

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 64
"""Columns per program."""


@triton.jit
def _leaky_relu_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    slope,
    x_row_stride,
    y_row_stride,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)

    x = tl.load(x_ptr + rows * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    y = tl.where(x > 0, x, slope * x)
    tl.store(y_ptr + rows * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def leaky_relu(x: torch.Tensor, slope: float = 0.01) -> torch.Tensor:
    """Values of contiguous `x` [B, N] where positive, `slope` times them elsewhere."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    grid = (triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))
    _leaky_relu_kernel[grid](
        x,
        y,
        n_rows,
        n_cols,
        slope,
        x.stride(0),
        y.stride(0),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
