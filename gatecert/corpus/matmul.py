"""Matrix product with K tiles and masks on every edge: plain and grouped program order."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Rows of the output per program."""
BLOCK_N = 32
"""Columns of the output per program."""
BLOCK_K = 32
"""Length of a step along the contraction."""
GROUP_M = 4
"""Row tiles that share their columns of `b` in the cache (grouped order)."""


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m_size,
    n_size,
    k_size,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]).to(tl.int64)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]).to(tl.int64)
    steps = tl.arange(0, BLOCK_K).to(tl.int64)

    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    for start in range(0, k_size, BLOCK_K):
        ks = start + steps
        a = tl.load(
            a_ptr + rows * stride_am + ks[None, :] * stride_ak,
            mask=(rows < m_size) & (ks[None, :] < k_size),
            other=0.0,
        )
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols * stride_bn,
            mask=(ks[:, None] < k_size) & (cols < n_size),
            other=0.0,
        )
        acc += tl.dot(a, b, input_precision="ieee")

    tl.store(
        c_ptr + rows * stride_cm + cols * stride_cn,
        acc.to(c_ptr.dtype.element_ty),
        mask=(rows < m_size) & (cols < n_size),
    )


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a` [M, K] times `b` [K, N], summed in float32."""
    m_size, k_size = a.shape
    _, n_size = b.shape
    c = torch.empty((m_size, n_size), dtype=a.dtype, device=a.device)
    _matmul_kernel[(triton.cdiv(m_size, BLOCK_M), triton.cdiv(n_size, BLOCK_N))](
        a,
        b,
        c,
        m_size,
        n_size,
        k_size,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
    )
    return c


@triton.jit
def _matmul_grouped_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m_size,
    n_size,
    k_size,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m_size, BLOCK_M)
    tiles_n = tl.cdiv(n_size, BLOCK_N)

    # Programs walk down GROUP_M row tiles before they move one column tile to the right.
    tiles_in_group = GROUP_M * tiles_n
    first_m = (pid // tiles_in_group) * GROUP_M
    group_size = tl.minimum(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % tiles_in_group) % group_size
    pid_n = (pid % tiles_in_group) // group_size

    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K).to(tl.int64)
    mask_m = offs_m < m_size
    mask_n = offs_n < n_size
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    advance = tl.full([], BLOCK_K, dtype=tl.int64)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(k_size, BLOCK_K)):
        mask_k = offs_k < k_size - step * BLOCK_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += advance * stride_ak
        b_ptrs += advance * stride_bk

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptrs, c, mask=mask_m[:, None] & mask_n[None, :])


def matmul_grouped(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a` [M, K] times `b` [K, N], summed in float32; programs run in groups of row tiles."""
    m_size, k_size = a.shape
    _, n_size = b.shape
    c = torch.empty((m_size, n_size), dtype=a.dtype, device=a.device)
    _matmul_grouped_kernel[(triton.cdiv(m_size, BLOCK_M) * triton.cdiv(n_size, BLOCK_N),)](
        a,
        b,
        c,
        m_size,
        n_size,
        k_size,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP_M=GROUP_M,
    )
    return c
