"""Softmax of the rows of a matrix of any strides, with a running maximum."""

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _softmax_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    x_row_stride,
    x_col_stride,
    y_row_stride,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N)[None, :].to(tl.int64)

    largest = tl.full([BLOCK_B, 1], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_B, 1], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x_ptrs = x_ptr + rows * x_row_stride + cols * x_col_stride
        x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=1, keep_dims=True))
        # While all values so far are -inf there is nothing to shift by.
        shift = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - shift)
        total += tl.sum(tl.exp(x - shift), axis=1, keep_dims=True)
        largest = new_largest

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = (rows < n_rows) & (cols < n_cols)
        x_ptrs = x_ptr + rows * x_row_stride + cols * x_col_stride
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
        # Rows past the last one have total 0 and become NaN; the store leaves them out.
        y = tl.exp(x - largest) / total
        y_ptrs = y_ptr + rows * y_row_stride + cols
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of `x` [B, N]; a row holds a value above -inf."""
    n_rows, n_cols = x.shape
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    _softmax_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        x,
        y,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
