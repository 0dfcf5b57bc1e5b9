"""Sums of the columns of a matrix: every program adds its rows to the whole by atomics."""

import torch
import triton
import triton.language as tl

BLOCK_B = 16
"""Rows per program."""
BLOCK_N = 32
"""Columns per program."""


@triton.jit
def _column_sum_kernel(
    x_ptr,
    sums_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    EVEN: tl.constexpr,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    cols_in = cols < n_cols
    x_ptrs = x_ptr + rows[:, None] * stride_xb + cols[None, :] * stride_xn
    if EVEN:
        x = tl.load(x_ptrs).to(tl.float32)
    else:
        inside = (rows < n_rows)[:, None] & cols_in[None, :]
        x = tl.load(x_ptrs, mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(sums_ptr + cols, tl.sum(x, axis=0), mask=cols_in)


def column_sum(x):
    """Sums of the columns of `x` [B, N], added up in float32."""
    n_rows, n_cols = x.shape
    sums = torch.zeros((n_cols,), dtype=torch.float32, device=x.device)
    grid = (triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))
    even = n_rows % BLOCK_B == 0 and n_cols % BLOCK_N == 0
    _column_sum_kernel[grid](
        x, sums, n_rows, n_cols, *x.stride(), EVEN=even, BLOCK_B=BLOCK_B, BLOCK_N=BLOCK_N
    )
    return sums.to(x.dtype)
