"""Matrix product in tiles, with masks on every edge."""

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Rows of the product per program."""
BLOCK_N = 32
"""Columns of the product per program."""
BLOCK_K = 32
"""Length of a step along the contraction."""


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m_size,
    n_size,
    k_size,
    a_stride_m,
    a_stride_k,
    b_stride_k,
    b_stride_n,
    c_stride_m,
    c_stride_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    in_m = (offs_m < m_size)[:, None]
    in_n = (offs_n < n_size)[None, :]

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k_size, BLOCK_K):
        offs_k = (start + tl.arange(0, BLOCK_K)).to(tl.int64)
        a_ptrs = a_ptr + offs_m[:, None] * a_stride_m + offs_k[None, :] * a_stride_k
        b_ptrs = b_ptr + offs_k[:, None] * b_stride_k + offs_n[None, :] * b_stride_n
        a = tl.load(a_ptrs, mask=in_m & (offs_k < k_size)[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k < k_size)[:, None] & in_n, other=0.0)
        total += tl.dot(a, b, input_precision="ieee")

    c_ptrs = c_ptr + offs_m[:, None] * c_stride_m + offs_n[None, :] * c_stride_n
    tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty), mask=in_m & in_n)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a` [M, K] times `b` [K, N], summed in float32."""
    m_size, k_size = a.shape
    n_size = b.shape[1]
    c = torch.empty((m_size, n_size), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(m_size, BLOCK_M), triton.cdiv(n_size, BLOCK_N))
    _matmul_kernel[grid](
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
