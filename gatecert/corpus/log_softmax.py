"""Log-softmax over the last dim of a matrix: one pass for the normaliser, one for the output."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 2
"""Rows per program."""
BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _log_softmax_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_xb: tl.int64,
    stride_xn: tl.int64,
    stride_yb: tl.int64,
    stride_yn: tl.int64,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    cols = tl.arange(0, BLOCK_N)
    row_mask = rows[:, None] < n_rows
    x_start = x_ptr + rows[:, None] * stride_xb + cols[None, :] * stride_xn

    largest = tl.full([BLOCK_B], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_B], dtype=tl.float32)
    x_ptrs = x_start
    for start in range(0, n_cols, BLOCK_N):
        mask = row_mask & (cols[None, :] < n_cols - start)
        x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=1))
        # A row may start with whole tiles of -inf: exp(-inf - -inf) would be NaN.
        shift = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)
        largest = new_largest
        x_ptrs += BLOCK_N * stride_xn
    log_total = tl.log(total)

    x_ptrs = x_start
    y_ptrs = y_ptr + rows[:, None] * stride_yb + cols[None, :] * stride_yn
    for start in range(0, n_cols, BLOCK_N):
        mask = row_mask & (cols[None, :] < n_cols - start)
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        y = x - largest[:, None] - log_total[:, None]
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)
        x_ptrs += BLOCK_N * stride_xn
        y_ptrs += BLOCK_N * stride_yn


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Logarithm of the softmax of each row of `x` [B, N]; a row must hold a value above -inf."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)

    def grid(meta):
        return (triton.cdiv(n_rows, meta["BLOCK_B"]),)

    _log_softmax_kernel[grid](
        x, y, n_rows, n_cols, *x.stride(), *y.stride(), BLOCK_B=BLOCK_B, BLOCK_N=BLOCK_N
    )
    return y
