"""Transpose of a matrix, tile by tile, so that reads and writes both run along rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Rows of a tile."""
BLOCK_N = 32
"""Columns of a tile."""
GROUP_M = 2
"""Row tiles that programs finish before they move one column tile to the right."""


@triton.jit
def _transpose_kernel(
    x_ptr,
    y_ptr,
    m_size,
    n_size,
    stride_xm,
    stride_xn,
    stride_yn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m_size, BLOCK_M)
    tiles_n = tl.cdiv(n_size, BLOCK_N)
    if pid >= tiles_m * tiles_n:
        return

    group = pid // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    rows_in_group = min(tiles_m - first_m, GROUP_M)
    within = pid % (GROUP_M * tiles_n)
    pid_m = first_m + within % rows_in_group
    pid_n = within // rows_in_group

    rm = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    rn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    tile = tl.load(
        x_ptr + rm[:, None] * stride_xm + rn[None, :] * stride_xn,
        mask=(rm[:, None] < m_size) & (rn[None, :] < n_size),
        other=0.0,
    )
    tl.store(
        y_ptr + rn[:, None] * stride_yn + rm[None, :],
        tl.trans(tile),
        mask=(rn[:, None] < n_size) & (rm[None, :] < m_size),
    )


def transpose(x: torch.Tensor) -> torch.Tensor:
    """`x` [M, N] as a new, contiguous [N, M]."""
    m_size, n_size = x.shape
    y = torch.empty((n_size, m_size), dtype=x.dtype, device=x.device)
    tiles = triton.cdiv(m_size, BLOCK_M) * triton.cdiv(n_size, BLOCK_N)
    # Clusters of two programs need an even grid; the kernel sends the one too many home.
    _transpose_kernel[(tiles + tiles % 2,)](
        x,
        y,
        m_size,
        n_size,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        GROUP_M=GROUP_M,
    )
    return y
