"""Cumulative sum along the rows of a matrix: a scan per tile and a carry from tile to tile."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 2
"""Rows per program."""
BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _cumsum_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
    REVERSE: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)

    carry = tl.zeros([BLOCK_B, 1], dtype=tl.float32)
    for step in range(tl.cdiv(n_cols, BLOCK_N)):
        tile = step
        if REVERSE:
            tile = tl.cdiv(n_cols, BLOCK_N) - 1 - step
        cols = tile * BLOCK_N + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0)
        x = x.to(tl.float32)
        y = carry + tl.cumsum(x, axis=1, reverse=REVERSE)
        tl.store(
            y_ptr + rows * stride_yb + cols * stride_yn,
            y.to(y_ptr.dtype.element_ty),
            mask=mask,
        )
        carry += tl.sum(x, axis=1, keep_dims=True)


def cumsum(x: torch.Tensor, reverse: bool = False) -> torch.Tensor:
    """Sums of the first 1, 2, ... N values of each row of `x` [B, N], added in float32.

    With `reverse` each value's sum runs from it to the row's end.
    """
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _cumsum_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        x,
        y,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
        REVERSE=bool(reverse),
    )
    return y
