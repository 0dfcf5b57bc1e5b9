"""GELU of one matrix, times another."""

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 64
"""Columns per program."""


@triton.jit
def _geglu_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    n_rows,
    n_cols,
    a_row_stride,
    b_row_stride,
    y_row_stride,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)

    a = tl.load(a_ptr + rows * a_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + rows * b_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    # (1 + tanh(u)) / 2 is the sigmoid of 2u.
    u = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    y = a * b / (1.0 + tl.exp(-2.0 * u))
    tl.store(y_ptr + rows * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gelu(a) * b, tanh form, for contiguous `a` and `b` [B, N]."""
    n_rows, n_cols = a.shape
    y = torch.empty_like(a)
    grid = (triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))
    _geglu_kernel[grid](
        a,
        b,
        y,
        n_rows,
        n_cols,
        a.stride(0),
        b.stride(0),
        y.stride(0),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
