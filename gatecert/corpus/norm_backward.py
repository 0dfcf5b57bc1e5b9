"""Gradients of layer norm and RMS norm; the statistics are computed again from the input.

A weight's gradient is a sum over rows. Layer norm: each program leaves its own partial sum, and a
second kernel adds those. RMS norm: programs add to one float32 buffer by atomics.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

MAX_PROGRAMS = 4
"""Programs of the layer norm kernel, each with a run of rows; also the number of partial sums."""
BLOCK_P = 2
"""Partial sums per tile of the kernel that adds them."""
BLOCK_B = 4
"""Rows per program of the RMS norm kernel."""
BLOCK_N = 64
"""Columns per tile."""


@triton.heuristics({"BLOCK_N": lambda args: triton.next_power_of_2(args["n_cols"])})
@triton.jit
def _layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    dx_ptr,
    partial_dweight_ptr,
    partial_dbias_ptr,
    n_rows,
    n_cols,
    rows_per_program,
    eps,
    stride_dyb,
    stride_dyn,
    stride_xb,
    stride_xn,
    stride_weight,
    stride_dxb,
    stride_dxn,
    BLOCK_N: tl.constexpr,
):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols * stride_weight, mask=mask, other=0.0).to(tl.float32)

    dweight = tl.zeros([BLOCK_N], dtype=tl.float32)
    dbias = tl.zeros([BLOCK_N], dtype=tl.float32)
    first = pid * rows_per_program
    for index in range(first, tl.minimum(first + rows_per_program, n_rows)):
        row = tl.cast(index, tl.int64)
        dy_ptrs = dy_ptr + row * stride_dyb + cols * stride_dyn
        x_ptrs = x_ptr + row * stride_xb + cols * stride_xn
        dy = tl.load(dy_ptrs, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)

        mean = tl.sum(x, axis=0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        variance = tl.sum(centred * centred, axis=0) / n_cols
        inv_std = tl.rsqrt(variance + eps)
        normalised = centred * inv_std

        scaled = dy * weight
        mean_scaled = tl.sum(scaled, axis=0) / n_cols
        projection = tl.sum(scaled * normalised, axis=0) / n_cols
        dx = (scaled - mean_scaled - normalised * projection) * inv_std
        dx_ptrs = dx_ptr + row * stride_dxb + cols * stride_dxn
        tl.store(dx_ptrs, dx.to(dx_ptr.dtype.element_ty), mask=mask)

        dweight += dy * normalised
        dbias += dy

    partials = pid.to(tl.int64) * n_cols + cols
    tl.store(partial_dweight_ptr + partials, dweight, mask=mask)
    tl.store(partial_dbias_ptr + partials, dbias, mask=mask)


@triton.jit
def _add_partials_kernel(
    partial_dweight_ptr,
    partial_dbias_ptr,
    dweight_ptr,
    dbias_ptr,
    n_partials,
    n_cols,
    BLOCK_P: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    cols = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    steps = tl.arange(0, BLOCK_P).to(tl.int64)

    dweight = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    dbias = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for start in range(0, n_partials, BLOCK_P):
        parts = start + steps[:, None]
        mask = (parts < n_partials) & (cols[None, :] < n_cols)
        offsets = parts * n_cols + cols[None, :]
        dweight += tl.load(partial_dweight_ptr + offsets, mask=mask, other=0.0)
        dbias += tl.load(partial_dbias_ptr + offsets, mask=mask, other=0.0)

    col_mask = cols < n_cols
    dtype = dweight_ptr.dtype.element_ty
    tl.store(dweight_ptr + cols, tl.sum(dweight, axis=0).to(dtype), mask=col_mask)
    tl.store(dbias_ptr + cols, tl.sum(dbias, axis=0).to(dtype), mask=col_mask)


def layer_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients of layer norm's input [B, N], weight [N] and bias [N], given that of its output."""
    n_rows, n_cols = x.shape
    n_programs = min(n_rows, MAX_PROGRAMS)
    dx = torch.empty_like(x)
    # Every program writes its whole partial sum, one without rows zeros.
    partial_dweight = torch.empty((n_programs, n_cols), dtype=torch.float32, device=x.device)
    partial_dbias = torch.empty_like(partial_dweight)
    _layer_norm_backward_kernel[(n_programs,)](
        dy,
        x,
        weight,
        dx,
        partial_dweight,
        partial_dbias,
        n_rows,
        n_cols,
        triton.cdiv(n_rows, n_programs),
        eps,
        dy.stride(0),
        dy.stride(1),
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        dx.stride(0),
        dx.stride(1),
    )
    dweight = torch.empty(n_cols, dtype=weight.dtype, device=x.device)
    dbias = torch.empty_like(dweight)
    _add_partials_kernel[(triton.cdiv(n_cols, BLOCK_N),)](
        partial_dweight,
        partial_dbias,
        dweight,
        dbias,
        n_programs,
        n_cols,
        BLOCK_P=BLOCK_P,
        BLOCK_N=BLOCK_N,
    )
    return dx, dweight, dbias


@triton.jit
def _rms_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    dx_ptr,
    dweight_ptr,
    n_rows,
    n_cols,
    eps,
    stride_dyb,
    stride_dyn,
    stride_xb,
    stride_xn,
    stride_weight,
    stride_dxb,
    stride_dxn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    row_mask = (rows < n_rows)[:, None]
    dy_rows = dy_ptr + rows[:, None] * stride_dyb
    x_rows = x_ptr + rows[:, None] * stride_xb
    dx_rows = dx_ptr + rows[:, None] * stride_dxb

    squares = tl.zeros([BLOCK_B], dtype=tl.float32)
    products = tl.zeros([BLOCK_B], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        col_mask = cols < n_cols
        mask = row_mask & col_mask[None, :]
        x = tl.load(x_rows + cols[None, :] * stride_xn, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_rows + cols[None, :] * stride_dyn, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols * stride_weight, mask=col_mask, other=0.0)
        squares += tl.sum(x * x, axis=1)
        products += tl.sum(dy * weight.to(tl.float32)[None, :] * x, axis=1)
    inv_rms = tl.rsqrt(squares / n_cols + eps)[:, None]
    projection = (products / n_cols)[:, None] * inv_rms * inv_rms

    for start in range(0, n_cols, BLOCK_N):
        cols = start + lanes
        col_mask = cols < n_cols
        mask = row_mask & col_mask[None, :]
        x = tl.load(x_rows + cols[None, :] * stride_xn, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_rows + cols[None, :] * stride_dyn, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols * stride_weight, mask=col_mask, other=0.0)
        dx = (dy * weight.to(tl.float32)[None, :] - x * projection) * inv_rms
        dx_ptrs = dx_rows + cols[None, :] * stride_dxn
        tl.store(dx_ptrs, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight = tl.sum(dy * x * inv_rms, axis=0)
        tl.atomic_add(dweight_ptr + cols, dweight, mask=col_mask, sem="relaxed")


def rms_norm_backward(
    dy: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of RMS norm's input [B, N] and weight [N], given that of its output [B, N]."""
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    dweight = torch.zeros(n_cols, dtype=torch.float32, device=x.device)
    _rms_norm_backward_kernel[(triton.cdiv(n_rows, BLOCK_B),)](
        dy,
        x,
        weight,
        dx,
        dweight,
        n_rows,
        n_cols,
        eps,
        dy.stride(0),
        dy.stride(1),
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        dx.stride(0),
        dx.stride(1),
        BLOCK_B=BLOCK_B,
        BLOCK_N=BLOCK_N,
    )
    return dx, dweight.to(weight.dtype)
