"""Quantisation to eight-bit floats with one scale per row, and the way back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""
BLOCK_B = 4
"""Rows per program, dequantisation."""
EPS = 1e-10
"""What the largest magnitude of a row counts as at least: rows of zeros have a scale too."""


@triton.jit
def _quantize_fp8_kernel(
    x_ptr,
    codes_ptr,
    scale_ptr,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_cb,
    stride_cn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    largest = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_ptr + row * stride_xb + cols * stride_xn, mask=cols < n_cols, other=0.0)
        largest = tl.maximum(largest, tl.abs(x.to(tl.float32)))
    # 448 is the largest value of the format.
    scale = tl.maximum(tl.max(largest, axis=0), eps) / 448.0
    tl.store(scale_ptr + row, scale)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_xb + cols * stride_xn, mask=mask, other=0.0)
        codes = (x.to(tl.float32) / scale).to(codes_ptr.dtype.element_ty)
        tl.store(codes_ptr + row * stride_cb + cols * stride_cn, codes, mask=mask)


def quantize_fp8(x: torch.Tensor, eps: float = EPS) -> tuple[torch.Tensor, torch.Tensor]:
    """float8_e4m3fn values [B, N] and float32 scales [B] with `x` [B, N] close to their product."""
    n_rows, n_cols = x.shape
    codes = torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scale = torch.empty((n_rows,), dtype=torch.float32, device=x.device)
    _quantize_fp8_kernel[(n_rows,)](
        x, codes, scale, n_cols, eps, *x.stride(), *codes.stride(), BLOCK_N=BLOCK_N
    )
    return codes, scale


@triton.jit
def _dequantize_fp8_kernel(
    codes_ptr,
    scale_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_cb,
    stride_cn,
    stride_scale,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    codes = tl.load(codes_ptr + rows * stride_cb + cols * stride_cn, mask=mask, other=0.0)
    scale = tl.load(scale_ptr + rows * stride_scale, mask=rows < n_rows, other=0.0)
    y = codes.to(tl.float32) * scale.to(tl.float32)
    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def dequantize_fp8(codes: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """`codes` [B, N] in an eight-bit float format times `scale` [B], in the dtype of the scales."""
    n_rows, n_cols = codes.shape
    y = torch.empty_like(codes, dtype=scale.dtype)
    _dequantize_fp8_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        codes,
        scale,
        y,
        n_rows,
        n_cols,
        *codes.stride(),
        scale.stride(0),
        *y.stride(),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
