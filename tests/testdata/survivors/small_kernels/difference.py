"""Each value's right neighbour less the value itself; past the end of a row there is 0."""

import torch
import triton
import triton.language as tl

BLOCK = 32
"""Columns per program."""


@triton.jit
def _difference_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    here = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    beside = tl.load(x_ptr + row * n_cols + cols + 1, mask=cols + 1 < n_cols, other=0.0)
    y = beside.to(tl.float32) - here.to(tl.float32)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def difference(x):
    """`x[b, n + 1] - x[b, n]` for each place of `x` [B, N], with 0 past the end."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n_rows, n_cols = x.shape
    _difference_kernel[(n_rows, triton.cdiv(n_cols, BLOCK))](x, y, n_cols, BLOCK=BLOCK)
    return y
