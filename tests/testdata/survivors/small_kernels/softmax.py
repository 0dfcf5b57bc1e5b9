"""Softmax of rows: a row at a time, and a row tile by tile."""

import torch
import triton
import triton.language as tl

BLOCK = 32
"""Columns per tile of the long kernel."""


@triton.jit
def _softmax_kernel(
    x_ptr, y_ptr, n_cols, stride_xb, stride_xn, stride_yb, stride_yn, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x_row = x_ptr + row * stride_xb
    x = tl.load(x_row + cols * stride_xn, mask=inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(x - tl.max(x, axis=0))
    y = powers / tl.sum(powers, axis=0)
    y_ptrs = y_ptr + row * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x):
    """Softmax of each row of `x` [B, N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    _softmax_kernel[(n_rows,)](x, y, n_cols, *x.stride(), *y.stride(), BLOCK=block)
    return y


@triton.jit
def _softmax_long_kernel(
    x_ptr, y_ptr, n_cols, stride_xb, stride_xn, stride_yb, stride_yn, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    x_tiles = x_ptr + row * stride_xb + lanes * stride_xn
    y_tiles = y_ptr + row * stride_yb + lanes * stride_yn

    top = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        held = start + lanes < n_cols
        x = tl.load(x_tiles + start * stride_xn, mask=held, other=-float("inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        # Of a row that begins with tiles of -inf: -inf less -inf would be NaN.
        shift = tl.where(new_top == -float("inf"), 0.0, new_top)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift), axis=0)
        top = new_top

    for start in range(0, n_cols, BLOCK):
        kept = start + lanes < n_cols
        again = tl.load(x_tiles + start * stride_xn, mask=kept, other=0.0).to(tl.float32)
        y = tl.exp(again - top) / total
        tl.store(y_tiles + start * stride_yn, y.to(y_ptr.dtype.element_ty), mask=kept)


def softmax_long(x):
    """Softmax of each row of `x` [B, N], of any length."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _softmax_long_kernel[(n_rows,)](x, y, n_cols, *x.stride(), *y.stride(), BLOCK=BLOCK)
    return y
