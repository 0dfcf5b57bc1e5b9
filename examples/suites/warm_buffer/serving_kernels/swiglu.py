"""SiLU of one matrix, times another, into a buffer of the caller's."""

import torch
import triton
import triton.language as tl

BLOCK_B = 2
"""Rows per program."""
BLOCK_N = 64
"""Columns per program."""


@triton.jit
def _swiglu_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    n_rows,
    n_cols,
    a_row_stride,
    b_row_stride,
    out_row_stride,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)).to(tl.int64)[:, None]
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N))[None, :]
    mask = (rows < n_rows) & (cols < n_cols)

    a = tl.load(a_ptr + rows * a_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + rows * b_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    silu = a / (1.0 + tl.exp(-a))
    out_ptrs = out_ptr + rows * out_row_stride + cols
    tl.store(out_ptrs, (silu * b).to(out_ptr.dtype.element_ty), mask=mask)


def swiglu(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """silu(a) * b for contiguous `a` and `b` [B, N], written to `out` where there is one."""
    n_rows, n_cols = a.shape
    if out is None:
        out = torch.empty_like(a)
    grid = (triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))
    _swiglu_kernel[grid](
        a,
        b,
        out,
        n_rows,
        n_cols,
        a.stride(0),
        b.stride(0),
        out.stride(0),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return out
