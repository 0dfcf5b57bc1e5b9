"""Rows as int8 with one scale each, and the way back."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

BLOCK = 32
"""Columns per tile."""


@triton.jit
def _quantize_kernel(
    x_ptr, codes_ptr, scale_ptr, n_cols, eps, stride_xb, stride_xn, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    x_row = x_ptr + row * stride_xb
    largest = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
    absmax = tl.maximum(tl.max(largest, axis=0), eps)
    scale = absmax / 127.0
    tl.store(scale_ptr + row, scale)

    for start in range(0, n_cols, BLOCK):
        cols = start + lanes
        again = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
        code = libdevice.rint(again / scale)
        code = tl.minimum(tl.maximum(code, -127.0), 127.0)
        tl.store(codes_ptr + row * n_cols + cols, code.to(tl.int8), mask=cols < n_cols)


def quantize(x, eps):
    """int8 codes [B, N] and float32 scales [B] with `x` [B, N] close to codes * scale."""
    n_rows, n_cols = x.shape
    codes = torch.empty((n_rows, n_cols), dtype=torch.int8, device=x.device)
    scale = torch.empty((n_rows,), dtype=torch.float32, device=x.device)
    _quantize_kernel[(n_rows,)](x, codes, scale, n_cols, eps, *x.stride(), BLOCK=BLOCK)
    return codes, scale


@triton.jit
def _dequantize_kernel(
    codes_ptr, scale_ptr, y_ptr, n_cols, stride_cb, stride_cn, stride_scale, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    codes = tl.load(codes_ptr + row * stride_cb + cols * stride_cn, mask=cols < n_cols, other=0)
    factor = tl.load(scale_ptr + row * stride_scale).to(tl.float32)
    y = codes.to(tl.float32) * factor
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=cols < n_cols)


def dequantize(codes, scale):
    """`codes` [B, N] times `scale` [B], in the dtype of the scales."""
    n_rows, n_cols = codes.shape
    y = torch.empty((n_rows, n_cols), dtype=scale.dtype, device=codes.device)
    grid = (n_rows, triton.cdiv(n_cols, BLOCK))
    strides = (*codes.stride(), scale.stride(0))
    _dequantize_kernel[grid](codes, scale, y, n_cols, *strides, BLOCK=BLOCK)
    return y
