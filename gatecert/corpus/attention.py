"""Flash attention, forward: online softmax over tiles of keys, with and without a causal mask.

Head dims need not be powers of two: a tile holds the next power of two and masks the rest.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Queries per program."""
BLOCK_N = 32
"""Keys per tile."""
MIN_BLOCK_D = 16
"""The shortest contraction that `tl.dot` takes."""


@triton.jit
def _attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    n_heads,
    n_queries,
    n_keys,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kt,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vt,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_os,
    stride_od,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    batch = (tl.program_id(1) // n_heads).to(tl.int64)
    head = (tl.program_id(1) % n_heads).to(tl.int64)
    queries = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    lanes = tl.arange(0, BLOCK_N).to(tl.int64)
    query_mask = (queries[:, None] < n_queries) & (dims[None, :] < head_dim)

    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    out_base = out_ptr + batch * stride_ob + head * stride_oh

    q_ptrs = q_base + queries[:, None] * stride_qs + dims[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=query_mask, other=0.0)

    # exp(x) is exp2(x * log2(e)), one instruction on a GPU; the scale carries the factor.
    scale_log2 = scale * 1.4426950408889634
    row_max = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    for start in range(0, n_keys, BLOCK_N):
        keys = start + lanes
        key_mask = (keys[:, None] < n_keys) & (dims[None, :] < head_dim)
        k_ptrs = k_base + keys[:, None] * stride_kt + dims[None, :] * stride_kd
        k = tl.load(k_ptrs, mask=key_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale_log2
        scores = tl.where(keys[None, :] < n_keys, scores, -float("inf"))

        new_max = tl.maximum(row_max, tl.max(scores, axis=1))
        rescale = tl.exp2(row_max - new_max)
        weights = tl.exp2(scores - new_max[:, None])
        row_sum = row_sum * rescale + tl.sum(weights, axis=1)
        row_max = new_max

        v_ptrs = v_base + keys[:, None] * stride_vt + dims[None, :] * stride_vd
        v = tl.load(v_ptrs, mask=key_mask, other=0.0)
        acc = acc * rescale[:, None]
        # The one step in lower precision: weights take the dtype of the inputs.
        acc += tl.dot(weights.to(v.dtype), v, input_precision="ieee")

    out = acc / row_sum[:, None]
    out_ptrs = out_base + queries[:, None] * stride_os + dims[None, :] * stride_od
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=query_mask)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T / sqrt(D)) v for `q` [B, H, S, D], `k` and `v` [B, H, T, D]."""
    batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    out = torch.empty_like(q)
    _attention_kernel[(triton.cdiv(n_queries, BLOCK_M), batch * n_heads)](
        q,
        k,
        v,
        out,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *out.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(MIN_BLOCK_D, triton.next_power_of_2(head_dim)),
    )
    return out


@triton.jit
def _attention_causal_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    n_heads,
    seq_len,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qs,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_ks,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vs,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_os,
    stride_od,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid_m = tl.program_id(0)
    batch = (tl.program_id(1) // n_heads).to(tl.int64)
    head = (tl.program_id(1) % n_heads).to(tl.int64)
    q_ptr += batch * stride_qb + head * stride_qh
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh
    out_ptr += batch * stride_ob + head * stride_oh

    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_m = offs_m < seq_len
    mask_d = offs_d < head_dim
    q = tl.load(
        q_ptr + offs_m[:, None] * stride_qs + offs_d[None, :] * stride_qd,
        mask=mask_m[:, None] & mask_d[None, :],
        other=0.0,
    )

    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    # Tiles wholly above the diagonal are never visited. Key 0 is visible to every query, so
    # the running maximum is finite after the first tile.
    for start in range(0, tl.minimum(seq_len, (pid_m + 1) * BLOCK_M), BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N).to(tl.int64)
        mask_n = offs_n < seq_len
        k_t = tl.load(
            k_ptr + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_ks,
            mask=mask_d[:, None] & mask_n[None, :],
            other=0.0,
        )
        v = tl.load(
            v_ptr + offs_n[:, None] * stride_vs + offs_d[None, :] * stride_vd,
            mask=mask_n[:, None] & mask_d[None, :],
            other=0.0,
        )
        s = tl.dot(q, k_t, input_precision="ieee")
        s *= scale
        visible = (offs_n[None, :] <= offs_m[:, None]) & mask_n[None, :]
        s = tl.where(visible, s, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        # The weights stay in float32, so the values are widened to meet them.
        acc = tl.dot(p, v.to(tl.float32), acc * alpha[:, None], input_precision="ieee")
        m_i = m_new

    acc = acc / l_i[:, None]
    tl.store(
        out_ptr + offs_m[:, None] * stride_os + offs_d[None, :] * stride_od,
        acc.to(out_ptr.dtype.element_ty),
        mask=mask_m[:, None] & mask_d[None, :],
    )


def attention_causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """`attention` of `q`, `k`, `v` [B, H, S, D] where no query sees a later key."""
    batch, n_heads, seq_len, head_dim = q.shape
    out = torch.empty_like(q)
    _attention_causal_kernel[(triton.cdiv(seq_len, BLOCK_M), batch * n_heads)](
        q,
        k,
        v,
        out,
        n_heads,
        seq_len,
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *out.stride(),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(MIN_BLOCK_D, triton.next_power_of_2(head_dim)),
    )
    return out
