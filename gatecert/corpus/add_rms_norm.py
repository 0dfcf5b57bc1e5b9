"""RMS norm of a sum, and the sum itself, into buffers that the caller owns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _add_rms_norm_kernel(
    out_ptr,
    residual_out_ptr,
    x_ptr,
    residual_ptr,
    weight_ptr,
    n_cols,
    eps,
    stride_ob,
    stride_on,
    stride_sb,
    stride_sn,
    stride_xb,
    stride_xn,
    stride_rb,
    stride_rn,
    stride_w,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * stride_xb
    residual_row = residual_ptr + row * stride_rb
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)

    squares = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        residual = tl.load(residual_row + cols * stride_rn, mask=mask, other=0.0).to(tl.float32)
        z = x + residual
        squares += z * z
        sum_ptrs = residual_out_ptr + row * stride_sb + cols * stride_sn
        tl.store(sum_ptrs, z.to(residual_out_ptr.dtype.element_ty), mask=mask)
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n_cols + eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        mask = cols < n_cols
        # Added again: what was stored is rounded.
        x = tl.load(x_row + cols * stride_xn, mask=mask, other=0.0).to(tl.float32)
        residual = tl.load(residual_row + cols * stride_rn, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols * stride_w, mask=mask, other=0.0).to(tl.float32)
        y = (x + residual) * scale * weight
        out_ptrs = out_ptr + row * stride_ob + cols * stride_on
        tl.store(out_ptrs, y.to(out_ptr.dtype.element_ty), mask=mask)


def add_rms_norm(
    out: torch.Tensor,
    residual_out: torch.Tensor,
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    eps: float = 1e-6,
) -> None:
    """RMS norm of `x` + `residual` [B, N] into `out`, and the sum into `residual_out`."""
    n_rows, n_cols = x.shape
    _add_rms_norm_kernel[(n_rows,)](
        out,
        residual_out,
        x,
        residual,
        weight,
        n_cols,
        eps,
        *out.stride(),
        *residual_out.stride(),
        *x.stride(),
        *residual.stride(),
        weight.stride(0),
        BLOCK_N=BLOCK_N,
    )
