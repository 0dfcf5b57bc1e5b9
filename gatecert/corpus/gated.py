"""SiLU, and the gated activations that multiply it, or the tanh form of GELU, by a second input."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 128
"""Values per turn of the grid-stride kernel."""
MAX_PROGRAMS = 4
"""Programs of the grid-stride kernel at most: the device is filled, the rest are turns."""


@triton.jit
def _sigmoid_weighted(x):
    return x / (1.0 + tl.exp(-x))


@triton.jit
def _silu_kernel(
    x_ptr,
    y_ptr,
    n_cols,
    n_values,
    stride_xb,
    stride_xn,
    stride_yb,
    stride_yn,
    BLOCK: tl.constexpr,
):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    for start in range(first, n_values, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        mask = offsets < n_values
        row = offsets // n_cols
        col = offsets % n_cols
        x = tl.load(x_ptr + row * stride_xb + col * stride_xn, mask=mask, other=0.0)
        y = _sigmoid_weighted(x.to(tl.float32))
        y_ptrs = y_ptr + row * stride_yb + col * stride_yn
        tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def silu(x: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(x) for each value of `x` [B, N]."""
    y = torch.empty_like(x)
    n_values = x.numel()

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (min(triton.cdiv(n_values, meta["BLOCK"]), MAX_PROGRAMS),)

    _silu_kernel[grid](x, y, x.shape[1], n_values, *x.stride(), *y.stride(), BLOCK=BLOCK)
    return y


@triton.jit
def _swiglu_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    n_cols,
    stride_ab,
    stride_an,
    stride_bb,
    stride_bn,
    stride_yb,
    stride_yn,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    a_ptr += row * stride_ab
    b_ptr += row * stride_bb
    y_ptr += row * stride_yb

    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    mask = cols < n_cols
    # The exponential needs float32; the product is formed there too and rounded once.
    gate = tl.load(a_ptr + cols * stride_an, mask=mask, other=0.0).to(tl.float32)
    value = tl.load(b_ptr + cols * stride_bn, mask=mask, other=0.0).to(tl.float32)
    sigmoid = 1.0 / (1.0 + tl.exp(-gate))
    y = gate * sigmoid * value
    tl.store(y_ptr + cols * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """silu(a) * b for `a` and `b` [B, N]; a program takes a whole row."""
    n_rows, n_cols = a.shape
    y = torch.empty_like(a)
    block_n = triton.next_power_of_2(n_cols)
    _swiglu_kernel[(n_rows,)](
        a,
        b,
        y,
        n_cols,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_N=block_n,
        num_warps=8 if block_n >= 2048 else 4,
    )
    return y


@triton.jit
def _tanh(x):
    # Of |x|, so that the exponential never overflows.
    shrunk = tl.exp(-2.0 * tl.abs(x))
    size = (1.0 - shrunk) / (1.0 + shrunk)
    return tl.where(x < 0.0, -size, size)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_B": 4, "BLOCK_N": 128}, num_warps=4),
        triton.Config({"BLOCK_B": 2, "BLOCK_N": 256}, num_warps=4),
        triton.Config({"BLOCK_B": 8, "BLOCK_N": 64}, num_warps=8),
    ],
    key=["n_rows", "n_cols"],
)
@triton.jit
def _geglu_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    n_rows,
    n_cols,
    stride_ab,
    stride_an,
    stride_bb,
    stride_bn,
    stride_yb,
    stride_yn,
    BLOCK_B: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    # A flat grid: column tiles of the same rows follow each other.
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(n_cols, BLOCK_N)
    offs_b = (pid // tiles_n * BLOCK_B + tl.arange(0, BLOCK_B)).to(tl.int64)
    offs_n = (pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    mask = (offs_b < n_rows)[:, None] & (offs_n < n_cols)[None, :]

    a_ptrs = a_ptr + offs_b[:, None] * stride_ab + offs_n[None, :] * stride_an
    b_ptrs = b_ptr + offs_b[:, None] * stride_bb + offs_n[None, :] * stride_bn
    a = tl.load(a_ptrs, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptrs, mask=mask, other=0.0).to(tl.float32)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    y = 0.5 * a * (1.0 + _tanh(inner)) * b
    y_ptrs = y_ptr + offs_b[:, None] * stride_yb + offs_n[None, :] * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """gelu(a) * b for `a` and `b` [B, N], gelu in its tanh form."""
    n_rows, n_cols = a.shape
    y = torch.empty_like(a)
    grid = lambda meta: (  # noqa: E731
        triton.cdiv(n_rows, meta["BLOCK_B"]) * triton.cdiv(n_cols, meta["BLOCK_N"]),
    )
    _geglu_kernel[grid](a, b, y, n_rows, n_cols, *a.stride(), *b.stride(), *y.stride())
    return y
