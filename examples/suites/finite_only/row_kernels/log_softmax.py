"""Logarithm of the softmax of the rows of a matrix, with a running maximum."""

import torch
import triton
import triton.language as tl

BLOCK_N = 32
"""Columns per tile."""


@triton.jit
def _log_softmax_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    x_row_stride,
    y_row_stride,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_row_stride
    y_row = y_ptr + row * y_row_stride

    largest = tl.full([1], -float("inf"), dtype=tl.float32)
    total = tl.zeros([1], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        new_largest = tl.maximum(largest, tl.max(x, axis=0))
        # While all values so far are -inf there is nothing to shift by.
        shift = tl.where(new_largest == -float("inf"), 0.0, new_largest)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), axis=0)
        largest = new_largest
    log_total = tl.log(total)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = cols < n_cols
        x = tl.load(x_row + cols, mask=mask, other=0.0).to(tl.float32)
        y = x - largest - log_total
        tl.store(y_row + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Log-softmax of each row of contiguous `x` [B, N]; a row holds a value above -inf."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _log_softmax_kernel[(n_rows,)](x, y, n_cols, x.stride(0), y.stride(0), BLOCK_N=BLOCK_N)
    return y
