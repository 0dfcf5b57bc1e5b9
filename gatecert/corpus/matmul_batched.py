"""A batch of matrix products, with block sizes that an autotuner picks."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=4),
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=2),
    ],
    key=["m_size", "n_size", "k_size"],
)
@triton.jit
def _matmul_batched_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m_size,
    n_size,
    k_size,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_cb,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * stride_ab
    b_ptr += batch * stride_bb
    c_ptr += batch * stride_cb

    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    offs_n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)[None, :]
    in_m = offs_m < m_size
    in_n = offs_n < n_size

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first in range(0, k_size, BLOCK_K):
        offs_k = (first + tl.arange(0, BLOCK_K)).to(tl.int64)
        in_k = offs_k < k_size
        a_ptrs = a_ptr + offs_m * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n * stride_bn
        a = tl.load(a_ptrs, mask=in_m & in_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=in_k[:, None] & in_n, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")

    c_ptrs = c_ptr + offs_m * stride_cm + offs_n * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_m & in_n)


def matmul_batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a` [B, M, K] times `b` [B, K, N], each product summed in float32."""
    batch, m_size, k_size = a.shape
    n_size = b.shape[2]
    c = torch.empty((batch, m_size, n_size), dtype=a.dtype, device=a.device)

    _matmul_batched_kernel[
        lambda meta: (
            triton.cdiv(m_size, meta["BLOCK_M"]),
            triton.cdiv(n_size, meta["BLOCK_N"]),
            batch,
        )
    ](
        a,
        b,
        c,
        m_size,
        n_size,
        k_size,
        *a.stride(),
        *b.stride(),
        *c.stride(),
    )
    return c
