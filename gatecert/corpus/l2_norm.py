"""Rows over their Euclidean length, by a fixed number of programs that share the rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

MAX_PROGRAMS = 4
"""Programs of a launch; each takes every such row."""
BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _l2_norm_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_N: tl.constexpr,
):
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    for index in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        row = tl.cast(index, tl.int64)
        squares = tl.zeros([BLOCK_N], dtype=tl.float32)
        for start in range(0, n_cols, BLOCK_N):
            cols = start + lanes
            x_ptrs = x_ptr + row * stride_xb + cols * stride_xn
            x = tl.load(x_ptrs, mask=cols < n_cols, other=0.0).to(tl.float32)
            squares += x * x
        length = tl.sqrt(tl.sum(squares, axis=0))
        divisor = tl.maximum(length, eps)

        for start in range(0, n_cols, BLOCK_N):
            cols = start + lanes
            x_ptrs = x_ptr + row * stride_xb + cols * stride_xn
            y_ptrs = y_ptr + row * stride_yb + cols * stride_yn
            x = tl.load(x_ptrs, mask=cols < n_cols, other=0.0).to(tl.float32)
            y = x / divisor
            tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def l2_norm(x: torch.Tensor, eps: float = 1e-12) -> torch.Tensor:
    """Each row of finite `x` [B, N] over its length, or over `eps` where that is larger."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _l2_norm_kernel[(min(n_rows, MAX_PROGRAMS),)](
        x,
        y,
        n_rows,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_N=BLOCK_N,
    )
    return y
