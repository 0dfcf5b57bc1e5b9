"""Attention in which some query heads share a head of keys and values, causal or not."""

import torch
import triton
import triton.language as tl

BLOCK = 16
"""Queries per program, and keys per tile."""


@triton.jit
def _attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    y_ptr,
    n_queries,
    n_keys,
    n_heads,
    group,
    head_size,
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
    stride_yb,
    stride_yh,
    stride_ys,
    stride_yd,
    CAUSAL: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    batch = tl.program_id(1) // n_heads
    head = tl.program_id(1) % n_heads
    shared = head // group
    queries = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, BLOCK_D)
    d_in = (d < head_size)[None, :]
    q_in = (queries < n_queries)[:, None] & d_in

    q_head = q_ptr + batch * stride_qb + head * stride_qh
    k_head = k_ptr + batch * stride_kb + shared * stride_kh
    v_head = v_ptr + batch * stride_vb + shared * stride_vh
    q_ptrs = q_head + queries[:, None] * stride_qs + d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=q_in, other=0.0).to(tl.float32) * scale

    top = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    acc = tl.zeros([BLOCK, BLOCK_D], dtype=tl.float32)
    stop = n_keys
    if CAUSAL:
        stop = tl.minimum(n_keys, (tl.program_id(0) + 1) * BLOCK)
    for start in range(0, stop, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        kv_in = (keys < n_keys)[:, None] & d_in
        k_ptrs = k_head + keys[:, None] * stride_kt + d[None, :] * stride_kd
        v_ptrs = v_head + keys[:, None] * stride_vt + d[None, :] * stride_vd
        k = tl.load(k_ptrs, mask=kv_in, other=0.0).to(tl.float32)
        v = tl.load(v_ptrs, mask=kv_in, other=0.0).to(tl.float32)

        visible = (keys < n_keys)[None, :]
        if CAUSAL:
            visible = visible & (queries[:, None] >= keys[None, :])
        scores = tl.where(visible, tl.dot(q, tl.trans(k)), -float("inf"))
        # The first tile holds a key that every query sees, so the maximum is finite.
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        weights = tl.where(visible, weights, 0.0)
        rescale = tl.exp(top - new_top)
        total = total * rescale + tl.sum(weights, axis=1)
        acc = acc * rescale[:, None] + tl.dot(weights, v)
        top = new_top

    y_head = y_ptr + batch * stride_yb + head * stride_yh
    y_ptrs = y_head + queries[:, None] * stride_ys + d[None, :] * stride_yd
    tl.store(y_ptrs, (acc / total[:, None]).to(y_ptr.dtype.element_ty), mask=q_in)


def attention(q, k, v, causal=1):
    """softmax(q k^T / sqrt(D)) v of `q` [B, G*H, S, D] and `k`, `v` [B, H, T, D]."""
    batch, n_heads, n_queries, head_size = q.shape
    y = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    _attention_kernel[(triton.cdiv(n_queries, BLOCK), batch * n_heads)](
        q,
        k,
        v,
        y,
        n_queries,
        k.shape[2],
        n_heads,
        n_heads // k.shape[1],
        head_size,
        head_size**-0.5,
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *y.stride(),
        CAUSAL=bool(causal),
        BLOCK=BLOCK,
        BLOCK_D=max(16, triton.next_power_of_2(head_size)),
    )
    return y
