"""Attention, backward: gradients of queries, keys and values without stored weights.

A forward pass keeps each row's log-sum-exp and output; weights are computed again from them, by
tiles of keys for dk and dv and by tiles of queries for dq. Inputs may have any strides but that of
the head dim, which is 1; results and what passes between the kernels lie without gaps.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Queries per tile."""
BLOCK_N = 32
"""Keys per tile."""
BLOCK_ROWS = 64
"""Rows per program where rows are on their own."""
MIN_BLOCK_D = 16
"""The shortest contraction that `tl.dot` takes."""


@triton.jit
def _forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    n_heads,
    n_queries,
    n_keys,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_kb,
    stride_kh,
    stride_kt,
    stride_vb,
    stride_vh,
    stride_vt,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(1)
    batch = (pid // n_heads).to(tl.int64)
    head = (pid % n_heads).to(tl.int64)
    offs_m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_m = offs_m < n_queries
    mask_d = offs_d < head_dim
    mask_md = mask_m[:, None] & mask_d[None, :]
    q_rows = q_ptr + batch * stride_qb + head * stride_qh + offs_m[:, None] * stride_qs
    q = tl.load(q_rows + offs_d[None, :], mask=mask_md, other=0.0)
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh

    m = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    end = n_keys
    if CAUSAL:
        end = tl.minimum(n_keys, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask_nd = (offs_n[:, None] < n_keys) & mask_d[None, :]
        k_ptrs = k_base + offs_n[:, None] * stride_kt + offs_d[None, :]
        k = tl.load(k_ptrs, mask=mask_nd, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = offs_n[None, :] < n_keys
        if CAUSAL:
            visible = visible & (offs_n[None, :] <= offs_m[:, None])
        s = tl.where(visible, s, -float("inf"))

        m_new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - m_new[:, None])
        rescale = tl.exp(m - m_new)
        total = total * rescale + tl.sum(p, axis=1)
        v_ptrs = v_base + offs_n[:, None] * stride_vt + offs_d[None, :]
        v = tl.load(v_ptrs, mask=mask_nd, other=0.0).to(tl.float32)
        acc = tl.dot(p, v, acc * rescale[:, None], input_precision="ieee")
        m = m_new

    row = pid.to(tl.int64) * n_queries + offs_m
    tl.store(lse_ptr + row, m + tl.log(total), mask=mask_m)
    out_ptrs = out_ptr + row[:, None] * head_dim + offs_d[None, :]
    tl.store(out_ptrs, acc / total[:, None], mask=mask_md)


@triton.jit
def _delta_kernel(
    out_ptr,
    dout_ptr,
    delta_ptr,
    n_heads,
    n_queries,
    head_dim,
    stride_dob,
    stride_doh,
    stride_dos,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS).to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    mask = (rows[:, None] < n_queries) & (dims[None, :] < head_dim)
    row = pid.to(tl.int64) * n_queries + rows
    dout_base = dout_ptr + (pid // n_heads).to(tl.int64) * stride_dob
    dout_base += (pid % n_heads).to(tl.int64) * stride_doh

    out = tl.load(out_ptr + row[:, None] * head_dim + dims[None, :], mask=mask, other=0.0)
    dout_ptrs = dout_base + rows[:, None] * stride_dos + dims[None, :]
    dout = tl.load(dout_ptrs, mask=mask, other=0.0).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(out * dout, axis=1), mask=rows < n_queries)


@triton.jit
def _key_value_gradient_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    n_heads,
    n_queries,
    n_keys,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_kb,
    stride_kh,
    stride_kt,
    stride_vb,
    stride_vh,
    stride_vt,
    stride_dob,
    stride_doh,
    stride_dos,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(1)
    batch = (pid // n_heads).to(tl.int64)
    head = (pid % n_heads).to(tl.int64)
    first_key = tl.program_id(0) * BLOCK_N
    offs_n = (first_key + tl.arange(0, BLOCK_N)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_d = offs_d < head_dim
    mask_nd = (offs_n[:, None] < n_keys) & mask_d[None, :]
    k_rows = k_ptr + batch * stride_kb + head * stride_kh + offs_n[:, None] * stride_kt
    v_rows = v_ptr + batch * stride_vb + head * stride_vh + offs_n[:, None] * stride_vt
    k = tl.load(k_rows + offs_d[None, :], mask=mask_nd, other=0.0)
    v = tl.load(v_rows + offs_d[None, :], mask=mask_nd, other=0.0)
    q_base = q_ptr + batch * stride_qb + head * stride_qh
    dout_base = dout_ptr + batch * stride_dob + head * stride_doh
    lse_row = lse_ptr + pid.to(tl.int64) * n_queries
    delta_row = delta_ptr + pid.to(tl.int64) * n_queries

    dk = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, BLOCK_D], dtype=tl.float32)
    begin = 0
    if CAUSAL:
        # Earlier tiles of queries see none of these keys.
        begin = first_key // BLOCK_M * BLOCK_M
    for start in range(begin, n_queries, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M).to(tl.int64)
        mask_m = offs_m < n_queries
        mask_md = mask_m[:, None] & mask_d[None, :]
        q_ptrs = q_base + offs_m[:, None] * stride_qs + offs_d[None, :]
        q = tl.load(q_ptrs, mask=mask_md, other=0.0)
        dout_ptrs = dout_base + offs_m[:, None] * stride_dos + offs_d[None, :]
        dout = tl.load(dout_ptrs, mask=mask_md, other=0.0)
        lse = tl.load(lse_row + offs_m, mask=mask_m, other=0.0)
        delta = tl.load(delta_row + offs_m, mask=mask_m, other=0.0)

        # Transposed, [keys, queries]. Rows past the last query give 1 times a dout of 0.
        s_t = tl.dot(k, tl.trans(q), input_precision="ieee") * scale
        p_t = tl.exp(s_t - lse[None, :])
        if CAUSAL:
            p_t = tl.where(offs_n[:, None] <= offs_m[None, :], p_t, 0.0)
        dv += tl.dot(p_t, dout.to(tl.float32), input_precision="ieee")
        dp_t = tl.dot(v, tl.trans(dout), input_precision="ieee")
        ds_t = p_t * (dp_t - delta[None, :])
        dk += tl.dot(ds_t, q.to(tl.float32), input_precision="ieee")

    keys = pid.to(tl.int64) * n_keys + offs_n
    offsets = keys[:, None] * head_dim + offs_d[None, :]
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=mask_nd)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=mask_nd)


@triton.jit
def _query_gradient_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    dout_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    n_heads,
    n_queries,
    n_keys,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_kb,
    stride_kh,
    stride_kt,
    stride_vb,
    stride_vh,
    stride_vt,
    stride_dob,
    stride_doh,
    stride_dos,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(1)
    batch = (pid // n_heads).to(tl.int64)
    head = (pid % n_heads).to(tl.int64)
    first_query = tl.program_id(0) * BLOCK_M
    offs_m = first_query + tl.arange(0, BLOCK_M).to(tl.int64)
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_m = offs_m < n_queries
    mask_d = offs_d < head_dim
    mask_md = mask_m[:, None] & mask_d[None, :]
    q_ptr += batch * stride_qb + head * stride_qh
    dout_ptr += batch * stride_dob + head * stride_doh
    q = tl.load(q_ptr + offs_m[:, None] * stride_qs + offs_d[None, :], mask=mask_md, other=0.0)
    dout = tl.load(
        dout_ptr + offs_m[:, None] * stride_dos + offs_d[None, :],
        mask=mask_md,
        other=0.0,
    )
    row = pid.to(tl.int64) * n_queries + offs_m
    lse = tl.load(lse_ptr + row, mask=mask_m, other=0.0)
    delta = tl.load(delta_ptr + row, mask=mask_m, other=0.0)
    k_ptrs = k_ptr + batch * stride_kb + head * stride_kh
    k_ptrs += offs_n[None, :] * stride_kt + offs_d[:, None]
    v_ptrs = v_ptr + batch * stride_vb + head * stride_vh
    v_ptrs += offs_n[None, :] * stride_vt + offs_d[:, None]
    advance = tl.full([], BLOCK_N, dtype=tl.int64)

    dq = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    end = n_keys
    if CAUSAL:
        end = tl.minimum(n_keys, first_query + BLOCK_M)
    for start in range(0, end, BLOCK_N):
        keys = start + offs_n
        mask_dn = mask_d[:, None] & (keys[None, :] < n_keys)
        k_t = tl.load(k_ptrs, mask=mask_dn, other=0.0)
        v_t = tl.load(v_ptrs, mask=mask_dn, other=0.0)
        visible = keys[None, :] < n_keys
        if CAUSAL:
            visible = visible & (keys[None, :] <= offs_m[:, None])
        s = tl.where(visible, tl.dot(q, k_t, input_precision="ieee") * scale, -float("inf"))
        p = tl.exp(s - lse[:, None])
        dp = tl.dot(dout, v_t, input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds, tl.trans(k_t).to(tl.float32), dq, input_precision="ieee")
        k_ptrs += advance * stride_kt
        v_ptrs += advance * stride_vt

    tl.store(
        dq_ptr + row[:, None] * head_dim + offs_d[None, :],
        (dq * scale).to(dq_ptr.dtype.element_ty),
        mask=mask_md,
    )


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, causal: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients dq, dk, dv of softmax(q k^T / sqrt(D)) v for the gradient `dout` of its result.

    `q` and `dout` are [B, H, S, D], `k` and `v` [B, H, T, D]. With `causal` query i sees keys 0
    to i only.
    """
    q, k, v, dout = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v, dout))
    batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    pairs = batch * n_heads
    scale = 1.0 / math.sqrt(head_dim)
    block_d = max(MIN_BLOCK_D, triton.next_power_of_2(head_dim))
    out = torch.empty((pairs, n_queries, head_dim), dtype=torch.float32, device=q.device)
    lse = torch.empty((pairs, n_queries), dtype=torch.float32, device=q.device)
    delta = torch.empty_like(lse)
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    _forward_kernel[(triton.cdiv(n_queries, BLOCK_M), pairs)](
        q,
        k,
        v,
        out,
        lse,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        scale,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        CAUSAL=bool(causal),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=block_d,
    )
    _delta_kernel[(triton.cdiv(n_queries, BLOCK_ROWS), pairs)](
        out,
        dout,
        delta,
        n_heads,
        n_queries,
        head_dim,
        *dout.stride()[:3],
        BLOCK_ROWS=BLOCK_ROWS,
        BLOCK_D=block_d,
    )
    _key_value_gradient_kernel[(triton.cdiv(n_keys, BLOCK_N), pairs)](
        q,
        k,
        v,
        dout,
        lse,
        delta,
        dk,
        dv,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        scale,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        *dout.stride()[:3],
        CAUSAL=bool(causal),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=block_d,
    )
    _query_gradient_kernel[(triton.cdiv(n_queries, BLOCK_M), pairs)](
        q,
        k,
        v,
        dout,
        lse,
        delta,
        dq,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        scale,
        *q.stride()[:3],
        *k.stride()[:3],
        *v.stride()[:3],
        *dout.stride()[:3],
        CAUSAL=bool(causal),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=block_d,
    )
    return dq, dk, dv
