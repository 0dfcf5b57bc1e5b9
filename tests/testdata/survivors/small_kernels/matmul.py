"""Matrix products: a tile of the result per program, and the sum over K split over programs."""

import torch
import triton
import triton.language as tl

BLOCK = 16
"""Rows and columns of a tile, and the step along K."""
SPLITS = 2
"""Programs that share the sum of one tile in the split kernel."""


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    n_m,
    n_n,
    n_k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    EVEN_K: tl.constexpr,
    BLOCK: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    lanes = tl.arange(0, BLOCK)
    m_in = (m < n_m)[:, None]
    n_in = (n < n_n)[None, :]
    acc = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for step in range(tl.cdiv(n_k, BLOCK)):
        k = step * BLOCK + lanes
        a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
        b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
        if EVEN_K:
            a = tl.load(a_ptrs, mask=m_in, other=0.0)
            b = tl.load(b_ptrs, mask=n_in, other=0.0)
        else:
            k_in = k < n_k
            a = tl.load(a_ptrs, mask=m_in & k_in[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=k_in[:, None] & n_in, other=0.0)
        acc += tl.dot(a, b)
    c_ptrs = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=m_in & n_in)


def matmul(a, b):
    """The product of `a` [M, K] and `b` [K, N], added up in float32."""
    (n_m, n_k), n_n = a.shape, b.shape[1]
    c = torch.empty((n_m, n_n), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n_m, BLOCK), triton.cdiv(n_n, BLOCK))
    strides = (*a.stride(), *b.stride(), *c.stride())
    _matmul_kernel[grid](a, b, c, n_m, n_n, n_k, *strides, EVEN_K=n_k % BLOCK == 0, BLOCK=BLOCK)
    return c


@triton.jit
def _matmul_split_kernel(
    a_ptr,
    b_ptr,
    sums_ptr,
    n_m,
    n_n,
    n_k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    split = tl.program_id(2)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    rows_in = (rows < n_m)[:, None]
    cols_in = (cols < n_n)[None, :]
    part = tl.zeros([BLOCK, BLOCK], dtype=tl.float32)
    for step in range(split, tl.cdiv(n_k, BLOCK), SPLITS):
        inner = step * BLOCK + tl.arange(0, BLOCK)
        inner_in = inner < n_k
        a_tile = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
        b_tile = b_ptr + inner[:, None] * stride_bk + cols[None, :] * stride_bn
        left = tl.load(a_tile, mask=rows_in & inner_in[None, :], other=0.0)
        right = tl.load(b_tile, mask=inner_in[:, None] & cols_in, other=0.0)
        part += tl.dot(left, right)
    places = sums_ptr + rows[:, None] * n_n + cols[None, :]
    tl.atomic_add(places, part, mask=rows_in & cols_in)


def matmul_split(a, b):
    """The product of `a` [M, K] and `b` [K, N], its sums over K shared by two programs each."""
    (n_m, n_k), n_n = a.shape, b.shape[1]
    sums = torch.zeros((n_m, n_n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(n_m, BLOCK), triton.cdiv(n_n, BLOCK), SPLITS)
    strides = (*a.stride(), *b.stride())
    _matmul_split_kernel[grid](a, b, sums, n_m, n_n, n_k, *strides, SPLITS=SPLITS, BLOCK=BLOCK)
    return sums.to(a.dtype)
