"""Gaussian error linear unit: the exact form (erf) and the tanh approximation."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_B = 4
"""Rows per program."""
BLOCK_N = 128
"""Columns per program."""


@triton.jit
def _gelu_erf_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]).to(tl.int64)
    mask = (rows < n_rows) & (cols < n_cols)

    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    inv_sqrt2 = 0.7071067811865476
    y = 0.5 * x * (1.0 + tl.erf(x * inv_sqrt2))

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    """x * Phi(x) for each value of `x` [B, N], Phi the normal distribution function."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _gelu_erf_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        x,
        y,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y


@triton.jit
def _gelu_tanh_kernel(
    x_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)[:, None]).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]).to(tl.int64)
    mask = (rows < n_rows) & (cols < n_cols)

    x = tl.load(x_ptr + rows * stride_xb + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
    sqrt_2_over_pi = 0.7978845608028654
    inner = sqrt_2_over_pi * (x + 0.044715 * x * x * x)
    # tanh(u) = 2 sigmoid(2u) - 1, so (1 + tanh(u)) / 2 is sigmoid(2u).
    y = x * tl.sigmoid(2.0 * inner)

    y_ptrs = y_ptr + rows * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) for each value of `x` [B, N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _gelu_tanh_kernel[(triton.cdiv(n_rows, BLOCK_B), triton.cdiv(n_cols, BLOCK_N))](
        x,
        y,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return y
