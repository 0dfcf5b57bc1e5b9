"""Sum, mean and variance of rows, tile by tile in two passes."""

import torch
import triton
import triton.language as tl

BLOCK = 32
"""Columns per tile."""


@triton.jit
def _row_moments_kernel(
    x_ptr, sum_ptr, mean_ptr, variance_ptr, n_cols, stride_xb, stride_xn, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_xb
    sums = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        sums += tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
    total = tl.sum(sums, axis=0)
    mean = total / n_cols

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for first in range(0, n_cols, BLOCK):
        cols = first + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
        distance = tl.where(cols < n_cols, x - mean, 0.0)
        squares += distance * distance
    variance = tl.sum(squares, axis=0) / n_cols

    tl.store(sum_ptr + row, total)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, variance)


def row_moments(x):
    """Sum, mean and population variance of each row of `x` [B, N], in float32."""
    n_rows, n_cols = x.shape
    total, mean, variance = (
        torch.empty((n_rows,), dtype=torch.float32, device=x.device) for _ in range(3)
    )
    _row_moments_kernel[(n_rows,)](x, total, mean, variance, n_cols, *x.stride(), BLOCK=BLOCK)
    return total, mean, variance
