"""Symmetric int8 quantisation with one scale per row, and the way back."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

BLOCK_N = 128
"""Columns per tile."""
BLOCK_B = 4
"""Rows per program, dequantisation."""
EPS = 1e-10
"""What the largest magnitude of a row counts as at least: rows of zeros have a scale too."""


@triton.jit
def _quantize_int8_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    n_cols,
    eps,
    stride_xb,
    stride_xn,
    stride_qb,
    stride_qn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    x_row = x_ptr + row * stride_xb
    q_row = q_ptr + row * stride_qb

    largest = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.abs(x))
    absmax = tl.maximum(tl.max(largest, axis=0), eps)
    scale = absmax / 127.0
    tl.store(scale_ptr + row, scale)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        # To the nearest even; a conversion alone would cut towards zero.
        q = libdevice.rint(x / scale)
        tl.store(q_row + cols * stride_qn, q.to(tl.int8), mask=mask)


def quantize_int8(x: torch.Tensor, eps: float = EPS) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 values [B, N] and float32 scales [B] with `x` [B, N] close to values * scale."""
    n_rows, n_cols = x.shape
    q = torch.empty_like(x, dtype=torch.int8)
    scale = torch.empty((n_rows,), dtype=torch.float32, device=x.device)
    _quantize_int8_kernel[(n_rows,)](
        x,
        q,
        scale,
        n_cols,
        eps,
        x.stride(0),
        x.stride(1),
        q.stride(0),
        q.stride(1),
        BLOCK_N=BLOCK_N,
    )
    return q, scale


@triton.jit
def _dequantize_int8_kernel(
    q_ptr,
    scale_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_qb,
    stride_qn,
    stride_scale,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    offs_b = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask_b = offs_b < n_rows
    mask = mask_b[:, None] & (offs_n < n_cols)[None, :]
    offs_b = tl.cast(offs_b, tl.int64)
    offs_n = tl.cast(offs_n, tl.int64)

    q = tl.load(
        q_ptr + offs_b[:, None] * stride_qb + offs_n[None, :] * stride_qn, mask=mask, other=0
    )
    scale = tl.load(scale_ptr + offs_b * stride_scale, mask=mask_b, other=0.0)
    y = q.to(tl.float32) * scale.to(tl.float32)[:, None]
    tl.store(
        y_ptr + offs_b[:, None] * stride_yb + offs_n[None, :] * stride_yn,
        y.to(y_ptr.dtype.element_ty),
        mask=mask,
    )


def dequantize_int8(q: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """`q` [B, N] times `scale` [B], in the dtype of the scales."""
    n_rows, n_cols = q.shape
    y = torch.empty_like(q, dtype=scale.dtype)
    _dequantize_int8_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        q,
        scale,
        y,
        n_rows,
        n_cols,
        *q.stride(),
        scale.stride(0),
        *y.stride(),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
