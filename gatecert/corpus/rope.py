"""Rotary position embedding: each half of a head turns with the other, by tables of angles."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_S = 32
"""Positions per program."""


@triton.jit
def _rope_kernel(
    x_ptr,
    cos_ptr,
    sin_ptr,
    y_ptr,
    n_heads,
    seq_len,
    half_dim,
    stride_xb,
    stride_xh,
    stride_xs,
    stride_xd,
    stride_cs,
    stride_cd,
    stride_ss,
    stride_sd,
    stride_yb,
    stride_yh,
    stride_ys,
    stride_yd,
    BLOCK_S: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid_s = tl.program_id(0)
    batch = tl.program_id(1) // n_heads
    head = tl.program_id(1) % n_heads
    x_head = x_ptr + batch.to(tl.int64) * stride_xb + head.to(tl.int64) * stride_xh
    y_head = y_ptr + batch.to(tl.int64) * stride_yb + head.to(tl.int64) * stride_yh

    positions = (pid_s * BLOCK_S + tl.arange(0, BLOCK_S)).to(tl.int64)[:, None]
    dims = tl.arange(0, BLOCK_D).to(tl.int64)[None, :]
    mask = (positions < seq_len) & (dims < half_dim)

    # The tables are shared by all batches and heads.
    cos_ptrs = cos_ptr + positions * stride_cs + dims * stride_cd
    sin_ptrs = sin_ptr + positions * stride_ss + dims * stride_sd
    cos = tl.load(cos_ptrs, mask=mask, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptrs, mask=mask, other=0.0).to(tl.float32)

    lower = positions * stride_xs + dims * stride_xd
    upper = positions * stride_xs + (dims + half_dim) * stride_xd
    x1 = tl.load(x_head + lower, mask=mask, other=0.0).to(tl.float32)
    x2 = tl.load(x_head + upper, mask=mask, other=0.0).to(tl.float32)

    y1 = x1 * cos - x2 * sin
    y2 = x2 * cos + x1 * sin
    y_row = y_head + positions * stride_ys
    tl.store(y_row + dims * stride_yd, y1.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(y_row + (dims + half_dim) * stride_yd, y2.to(y_ptr.dtype.element_ty), mask=mask)


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate `x` [B, H, S, 2D] by the angles whose `cos` and `sin` are [S, D].

    Dim d of a head turns with dim d + D.
    """
    batch, n_heads, seq_len, head_dim = x.shape
    y = torch.empty_like(x)
    half_dim = head_dim // 2
    _rope_kernel[(triton.cdiv(seq_len, BLOCK_S), batch * n_heads)](
        x,
        cos,
        sin,
        y,
        n_heads,
        seq_len,
        half_dim,
        *x.stride(),
        *cos.stride(),
        *sin.stride(),
        *y.stride(),
        BLOCK_S=BLOCK_S,
        BLOCK_D=triton.next_power_of_2(half_dim),
    )
    return y
