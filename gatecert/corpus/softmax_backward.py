"""Gradient of softmax over the last dim of a matrix; the probabilities are computed anew."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _softmax_backward_kernel(
    dy_ptr,
    x_ptr,
    dx_ptr,
    n_cols,
    stride_gb,
    stride_gn,
    stride_xb,
    stride_xn,
    stride_db,
    stride_dn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    x_ptrs = x_ptr + row * stride_xb + lanes * stride_xn
    dy_ptrs = dy_ptr + row * stride_gb + lanes * stride_gn
    dx_ptrs = dx_ptr + row * stride_db + lanes * stride_dn

    largest = tl.full([BLOCK_N], -float("inf"), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        inside = start + lanes < n_cols
        x = tl.load(x_ptrs + start * stride_xn, mask=inside, other=-float("inf"))
        largest = tl.maximum(largest, x.to(tl.float32), propagate_nan=tl.PropagateNan.ALL)
    row_max = tl.max(largest, axis=0)

    total = tl.zeros([BLOCK_N], dtype=tl.float32)
    product = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        inside = start + lanes < n_cols
        x = tl.load(x_ptrs + start * stride_xn, mask=inside, other=-float("inf")).to(tl.float32)
        dy = tl.load(dy_ptrs + start * stride_gn, mask=inside, other=0.0).to(tl.float32)
        weights = tl.exp(x - row_max)
        total += weights
        product += weights * dy
    row_sum = tl.sum(total, axis=0)
    projection = tl.sum(product, axis=0) / row_sum

    for start in range(0, n_cols, BLOCK_N):
        inside = start + lanes < n_cols
        x = tl.load(x_ptrs + start * stride_xn, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptrs + start * stride_gn, mask=inside, other=0.0).to(tl.float32)
        dx = tl.exp(x - row_max) / row_sum * (dy - projection)
        tl.store(dx_ptrs + start * stride_dn, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def softmax_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Gradient of the softmax of each row of `x` [B, N] for the upstream gradient `dy` [B, N]."""
    n_rows, n_cols = x.shape
    dx = torch.empty_like(x)
    _softmax_backward_kernel[(n_rows,)](
        dy, x, dx, n_cols, *dy.stride(), *x.stride(), *dx.stride(), BLOCK_N=BLOCK_N
    )
    return dx
