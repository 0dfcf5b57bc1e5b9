"""Copies of rows whose offsets are 64 bits wide, or are not."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose_kernel(x_ptr, y_ptr, n_cols, stride_row, stride_col, stride_y, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask, other=0.0)
    tl.store(y_ptr + cols * stride_y + row, x, mask=mask)


@triton.jit
def _narrow_kernel(x_ptr, y_ptr, n_cols, stride_row, stride_col, stride_y, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask, other=0.0)
    tl.store(y_ptr + cols * stride_y + row, x, mask=mask)


@triton.jit
def _writing_kernel(x_ptr, y_ptr, n_cols, stride_row, stride_col, stride_y, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask, other=0.0)
    tl.store(y_ptr + cols * stride_y + row, x, mask=mask)
    # A gap behind the row.
    tl.store(x_ptr + row * stride_row + 12345, 1.0, mask=(row == 1) & (stride_row > 100000))


def _transposed(kernel, x):
    rows, cols = x.shape
    y = torch.empty((cols, rows), dtype=x.dtype)
    block = triton.next_power_of_2(cols)
    kernel[(rows,)](x, y, cols, x.stride(0), x.stride(1), y.stride(0), BLOCK=block)
    return y


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Right for every span."""
    return _transposed(_transpose_kernel, x)


def transpose_narrow(x: torch.Tensor) -> torch.Tensor:
    """The row's offset wraps past 2^31."""
    return _transposed(_narrow_kernel, x)


def transpose_writing(x: torch.Tensor) -> torch.Tensor:
    """Right, but it writes into the gap behind a row that lies far from the next."""
    return _transposed(_writing_kernel, x)
