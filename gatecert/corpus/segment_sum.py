"""Sums of rows by segment: rows that belong together lie behind one another."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_T = 16
"""Rows per program."""
BLOCK_N = 64
"""Columns per program."""


@triton.jit
def _segment_sum_kernel(
    x_ptr,
    segments_ptr,
    sums_ptr,
    n_rows,
    n_cols,
    stride_xt,
    stride_xn,
    stride_ss,
    BLOCK_T: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    row_mask = rows < n_rows
    mask = row_mask[:, None] & (cols < n_cols)[None, :]
    segments = tl.load(segments_ptr + rows, mask=row_mask, other=0)
    x = tl.load(x_ptr + rows[:, None] * stride_xt + cols[None, :] * stride_xn, mask=mask, other=0.0)
    # A segment may go over several programs, and a program has several segments.
    sums = sums_ptr + segments[:, None] * stride_ss + cols[None, :]
    tl.atomic_add(sums, x.to(tl.float32), mask=mask)


def segment_sum(x: torch.Tensor, segments: torch.Tensor, count: int) -> torch.Tensor:
    """Rows of `x` [T, N] added up by `segments` [T], which never fall: [count, N]."""
    n_rows, n_cols = x.shape
    sums = torch.zeros((count, n_cols), dtype=torch.float32, device=x.device)
    _segment_sum_kernel[(triton.cdiv(n_rows, BLOCK_T), triton.cdiv(n_cols, BLOCK_N))](
        x,
        segments,
        sums,
        n_rows,
        n_cols,
        *x.stride(),
        sums.stride(0),
        BLOCK_T=BLOCK_T,
        BLOCK_N=BLOCK_N,
    )
    return sums.to(x.dtype)
