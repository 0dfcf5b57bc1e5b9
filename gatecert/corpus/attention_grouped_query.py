"""Grouped-query attention, forward: several query heads share the keys and values of one head.

Keys are walked by moving pointers; a block heuristic pads head dims that are no powers of two.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Queries per program."""
BLOCK_N = 32
"""Keys per tile."""


def _padded_head_dim(args: dict[str, Any]) -> int:
    return max(16, int(triton.next_power_of_2(args["head_dim"])))


@triton.heuristics({"BLOCK_D": _padded_head_dim})
@triton.jit
def _attention_grouped_query_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    group_size,
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
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    batch = tl.program_id(2).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    shared_head = head // group_size

    offs_m = start_m + tl.arange(0, BLOCK_M).to(tl.int64)
    offs_n = tl.arange(0, BLOCK_N).to(tl.int64)
    offs_d = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_d = offs_d < head_dim
    mask_q = (offs_m[:, None] < n_queries) & mask_d[None, :]

    q_ptrs = q_ptr + batch * stride_qb + head * stride_qh
    q_ptrs += offs_m[:, None] * stride_qs + offs_d[None, :] * stride_qd
    # Scaled once here, in float32, and not at every tile of scores.
    q = tl.load(q_ptrs, mask=mask_q, other=0.0).to(tl.float32) * scale

    # Keys are read transposed, [D, N].
    k_ptrs = k_ptr + batch * stride_kb + shared_head * stride_kh
    k_ptrs += offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kt
    v_ptrs = v_ptr + batch * stride_vb + shared_head * stride_vh
    v_ptrs += offs_n[:, None] * stride_vt + offs_d[None, :] * stride_vd
    advance = tl.full([], BLOCK_N, dtype=tl.int64)

    last_key = n_keys
    if CAUSAL:
        last_key = tl.minimum(n_keys, start_m + BLOCK_M)
    running_max = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    running_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start_n in range(0, last_key, BLOCK_N):
        cols = start_n + offs_n
        k = tl.load(k_ptrs, mask=mask_d[:, None] & (cols[None, :] < n_keys), other=0.0)
        scores = tl.dot(q, k.to(tl.float32), input_precision="ieee")
        scores = tl.where(cols[None, :] < n_keys, scores, float("-inf"))
        if CAUSAL:
            scores = tl.where(offs_m[:, None] >= cols[None, :], scores, float("-inf"))

        # Every query sees key 0, so the maximum is finite from the first tile on.
        new_max = tl.maximum(running_max, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_max[:, None])
        correction = tl.exp(running_max - new_max)
        running_sum = correction * running_sum + tl.sum(weights, axis=1)
        v = tl.load(v_ptrs, mask=(cols[:, None] < n_keys) & mask_d[None, :], other=0.0)
        acc = acc * correction[:, None]
        acc += tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        running_max = new_max
        k_ptrs += advance * stride_kt
        v_ptrs += advance * stride_vt

    out_ptrs = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs += offs_m[:, None] * stride_os + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / running_sum[:, None]).to(out_ptr.dtype.element_ty), mask=mask_q)


def attention_grouped_query(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True
) -> torch.Tensor:
    """Attention of `q` [B, G*H, S, D] to `k` and `v` [B, H, T, D]; query head i sees head i // G.

    With `causal` query i sees keys 0 to i only.
    """
    batch, n_heads, n_queries, head_dim = q.shape
    shared_heads, n_keys = k.shape[1:3]
    out = torch.empty_like(q)
    _attention_grouped_query_kernel[(triton.cdiv(n_queries, BLOCK_M), n_heads, batch)](
        q,
        k,
        v,
        out,
        n_heads // shared_heads,
        n_queries,
        n_keys,
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *out.stride(),
        CAUSAL=bool(causal),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
    )
    return out
