"""Reductions of rows: sum, mean and variance in one pass, and the place of the maximum."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""
ROWS = 2
"""Rows per program of the argmax kernel."""


@triton.jit
def _row_moments_kernel(
    x_ptr,
    sum_ptr,
    mean_ptr,
    variance_ptr,
    n_cols,
    stride_xb,
    stride_xn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + row * stride_xb + lanes.to(tl.int64) * stride_xn

    total = 0.0
    mean = 0.0
    # Sum of squared deviations from the mean of the columns so far.
    scatter = 0.0
    for start in range(0, n_cols, BLOCK_N):
        mask = lanes < n_cols - start
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        count = tl.minimum(n_cols - start, BLOCK_N)
        tile_sum = tl.sum(x, axis=0)
        tile_mean = tile_sum / count
        centred = tl.where(mask, x - tile_mean, 0.0)

        # Two sets of columns become one: `start` columns before, `count` columns here.
        distance = tile_mean - mean
        share = count / (start + count)
        scatter += tl.sum(centred * centred, axis=0) + distance * distance * (start * share)
        mean += distance * share
        total += tile_sum
        x_ptrs += tl.full([], BLOCK_N, dtype=tl.int64) * stride_xn

    tl.store(sum_ptr + row, total)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, scatter / n_cols)


def row_moments(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sum, mean and population variance of each row of finite `x` [B, N], in float32."""
    n_rows, n_cols = x.shape
    total, mean, variance = (
        torch.empty(n_rows, dtype=torch.float32, device=x.device) for _ in range(3)
    )
    _row_moments_kernel[(n_rows,)](
        x, total, mean, variance, n_cols, x.stride(0), x.stride(1), BLOCK_N=BLOCK_N
    )
    return total, mean, variance


@triton.jit
def _argmax_kernel(
    x_ptr,
    index_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    x_rows = x_ptr + rows[:, None] * stride_xb

    largest = tl.full([ROWS], -float("inf"), dtype=tl.float32)
    place = tl.zeros([ROWS], dtype=tl.int64)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes[None, :]
        mask = (rows[:, None] < n_rows) & (cols < n_cols)
        x = tl.load(x_rows + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
        tile_largest = tl.max(x, axis=1)
        # Only a strictly larger value moves the place: the first of equal ones stays.
        larger = tile_largest > largest
        place = tl.where(larger, start + tl.argmax(x, axis=1), place)
        largest = tl.where(larger, tile_largest, largest)

    tl.store(index_ptr + rows, place, mask=rows < n_rows)


def argmax(x: torch.Tensor) -> torch.Tensor:
    """Place of the largest value of each row of `x` [B, N] without NaN; of equal ones the first."""
    n_rows, n_cols = x.shape
    index = torch.empty(n_rows, dtype=torch.int64, device=x.device)
    _argmax_kernel[(triton.cdiv(n_rows, ROWS),)](
        x, index, n_rows, n_cols, x.stride(0), x.stride(1), ROWS=ROWS, BLOCK_N=BLOCK_N
    )
    return index
