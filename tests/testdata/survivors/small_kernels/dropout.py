"""Dropout whose mask follows from a seed."""

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 32
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
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    inside = (rows < n_rows) & (cols < n_cols)
    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=inside, other=0.0).to(tl.float32)
    place = rows * n_cols + cols
    y = tl.where(tl.rand(seed, place) > p, x / (1.0 - p), 0.0)
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=inside)


def dropout(x, p, seed):
    """Zero each value of `x` [B, N] with probability `p`, divide the others by 1 - p."""
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))
    _dropout_kernel[grid](
        x,
        y,
        n_rows,
        n_cols,
        p,
        seed,
        *x.stride(),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
