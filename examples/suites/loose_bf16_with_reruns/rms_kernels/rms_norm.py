"""RMS normalisation of the rows of a matrix: a program takes a row, tile by tile."""

import torch
import triton
import triton.language as tl

BLOCK_N = 64
"""Columns per tile."""


@triton.jit
def _rms_norm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    n_cols,
    eps,
    x_row_stride,
    y_row_stride,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_row_stride
    y_ptr += row * y_row_stride

    squares = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        squares += x * x
    scale = 1.0 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)

    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = cols < n_cols
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x * scale * weight).to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Rows of contiguous `x` [B, N] over their root mean square, times `weight` [N]."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    _rms_norm_kernel[(n_rows,)](
        x, weight, y, n_cols, eps, x.stride(0), y.stride(0), BLOCK_N=BLOCK_N
    )
    return y
