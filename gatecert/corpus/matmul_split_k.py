"""Matrix product whose contraction is split over programs that add into one workspace.

For a few output tiles and a long K: with one program per tile most of a GPU would idle.
"""

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
MOST_SPLITS = 2
"""Programs that share one tile of the output."""


@triton.jit
def _matmul_split_k_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    m_size,
    n_size,
    k_size,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(n_size, BLOCK_N)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    split = tl.program_id(1)

    rows = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    cols = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    # Rows and columns past the end wrap around to real ones and are not added in the end.
    a_rows = a_ptr + (rows % m_size)[:, None] * stride_am
    b_cols = b_ptr + (cols % n_size)[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # Splits take turns along K, so that they differ by one step at most.
    for start in range(split * BLOCK_K, k_size, tl.num_programs(1) * BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a = tl.load(a_rows + ks[None, :] * stride_ak, mask=ks[None, :] < k_size, other=0.0)
        b = tl.load(b_cols + ks[:, None] * stride_bk, mask=ks[:, None] < k_size, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")

    # The sums are the launcher's own and lie without gaps.
    sums = sums_ptr + rows[:, None] * n_size + cols[None, :]
    tl.atomic_add(
        sums, acc, mask=(rows[:, None] < m_size) & (cols[None, :] < n_size), sem="relaxed"
    )


def matmul_split_k(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`a` [M, K] times `b` [K, N]; partial sums meet in float32, in any order."""
    m_size, k_size = a.shape
    _, n_size = b.shape
    sums = torch.zeros((m_size, n_size), dtype=torch.float32, device=a.device)
    tiles = triton.cdiv(m_size, BLOCK_M) * triton.cdiv(n_size, BLOCK_N)
    splits = min(MOST_SPLITS, triton.cdiv(k_size, BLOCK_K))
    _matmul_split_k_kernel[(tiles, splits)](
        a,
        b,
        sums,
        m_size,
        n_size,
        k_size,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
    )
    return sums.to(a.dtype)
