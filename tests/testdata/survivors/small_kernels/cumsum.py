"""Cumulative sums of rows, from either end: a scan per tile, and a carry from tile to tile."""

import torch
import triton
import triton.language as tl

BLOCK = 32
"""Columns per tile."""


@triton.jit
def _cumsum_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    REVERSE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    n_tiles = tl.cdiv(n_cols, BLOCK)
    carry = 0.0
    for step in range(n_tiles):
        tile = step
        if REVERSE:
            tile = n_tiles - 1 - step
        cols = tile * BLOCK + tl.arange(0, BLOCK)
        inside = cols < n_cols
        x = tl.load(x_ptr + row * stride_xb + cols * stride_xn, mask=inside, other=0.0)
        x = x.to(tl.float32)
        y = carry + tl.cumsum(x, axis=0, reverse=REVERSE)
        y_ptrs = y_ptr + row * stride_yb + cols * stride_yn
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=inside)
        carry += tl.sum(x, axis=0)


def cumsum(x, reverse=0):
    """Sums of the first 1, 2, ... values of each row of `x` [B, N]; reversed, of the last."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    strides = (*x.stride(), *y.stride())
    _cumsum_kernel[(n_rows,)](x, y, n_cols, *strides, REVERSE=bool(reverse), BLOCK=BLOCK)
    return y
