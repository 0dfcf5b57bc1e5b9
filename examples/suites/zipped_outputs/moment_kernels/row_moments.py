"""Sum, mean and variance of the rows of a matrix, in two passes."""

import torch
import triton
import triton.language as tl

BLOCK_N = 32
"""Columns per tile."""


@triton.jit
def _row_moments_kernel(
    x_ptr,
    total_ptr,
    mean_ptr,
    variance_ptr,
    n_cols,
    x_row_stride,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_row_stride

    sums = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        sums += tl.load(x_row + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    total = tl.sum(sums, axis=0)
    mean = total / n_cols

    squares = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        deviation = tl.where(mask, x - mean, 0.0)
        squares += deviation * deviation

    tl.store(total_ptr + row, total)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, tl.sum(squares, axis=0) / n_cols)


def row_moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sum, mean and population variance of each row of contiguous `x` [B, N], in float32."""
    n_rows, n_cols = x.shape
    total, mean, variance = (
        torch.empty(n_rows, dtype=torch.float32, device=x.device) for _ in range(3)
    )
    _row_moments_kernel[(n_rows,)](x, total, mean, variance, n_cols, x.stride(0), BLOCK_N=BLOCK_N)
    return total, mean, variance
