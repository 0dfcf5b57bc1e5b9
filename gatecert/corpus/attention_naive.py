"""Attention with the scores written out: one kernel each for scores, softmax and the product."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK_S = 32
"""Queries per program of the scores and of the product."""
BLOCK_T = 32
"""Keys per tile."""
BLOCK_D = 32
"""Part of a head dim that one step of a score takes."""
MIN_BLOCK_D = 16
"""The shortest row that `tl.dot` gives."""
BLOCK_ROWS = 32
"""Rows of scores per program of the softmax."""


@triton.jit
def _scores_kernel(
    q_ptr,
    k_ptr,
    scores_ptr,
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
    BLOCK_S: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(2)
    batch = (pid // n_heads).to(tl.int64)
    head = (pid % n_heads).to(tl.int64)
    queries = tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S).to(tl.int64)
    keys = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T).to(tl.int64)
    query_mask = queries < n_queries
    key_mask = keys < n_keys
    q_rows = q_ptr + batch * stride_qb + head * stride_qh + queries[:, None] * stride_qs
    k_cols = k_ptr + batch * stride_kb + head * stride_kh + keys[None, :] * stride_kt

    acc = tl.zeros((BLOCK_S, BLOCK_T), dtype=tl.float32)
    for start in range(0, head_dim, BLOCK_D):
        dims = start + tl.arange(0, BLOCK_D).to(tl.int64)
        dim_mask = dims < head_dim
        q = tl.load(
            q_rows + dims[None, :] * stride_qd,
            mask=query_mask[:, None] & dim_mask[None, :],
            other=0.0,
        )
        k = tl.load(
            k_cols + dims[:, None] * stride_kd,
            mask=dim_mask[:, None] & key_mask[None, :],
            other=0.0,
        )
        acc += tl.dot(q, k, input_precision="ieee")

    # The scores are the launcher's own and lie without gaps.
    row = pid.to(tl.int64) * n_queries + queries
    tl.store(
        scores_ptr + row[:, None] * n_keys + keys[None, :],
        acc * scale,
        mask=query_mask[:, None] & key_mask[None, :],
    )


@triton.jit
def _softmax_kernel(
    scores_ptr,
    n_rows,
    n_keys,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_T: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    keys = tl.arange(0, BLOCK_T)[None, :]
    row_mask = rows < n_rows
    key_mask = keys < n_keys
    ptrs = scores_ptr + rows * n_keys + keys

    # Rows past the last one hold zeros, so that no lane makes a NaN.
    scores = tl.load(ptrs, mask=row_mask & key_mask, other=0.0)
    scores = tl.where(key_mask, scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weights = weights / tl.sum(weights, axis=1)[:, None]
    tl.store(ptrs, weights, mask=row_mask & key_mask)


@triton.jit
def _weighted_values_kernel(
    weights_ptr,
    v_ptr,
    out_ptr,
    n_heads,
    n_queries,
    n_keys,
    head_dim,
    stride_vb,
    stride_vh,
    stride_vt,
    stride_vd,
    stride_ob,
    stride_oh,
    stride_os,
    stride_od,
    BLOCK_S: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    pid = tl.program_id(1)
    batch = (pid // n_heads).to(tl.int64)
    head = (pid % n_heads).to(tl.int64)
    queries = (tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)).to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    keys = tl.arange(0, BLOCK_T).to(tl.int64)
    query_mask = queries[:, None] < n_queries
    dim_mask = dims[None, :] < head_dim

    rows = pid.to(tl.int64) * n_queries + queries[:, None]
    weight_ptrs = weights_ptr + rows * n_keys + keys[None, :]
    v_ptrs = v_ptr + batch * stride_vb + head * stride_vh
    v_ptrs += keys[:, None] * stride_vt + dims[None, :] * stride_vd
    acc = tl.zeros((BLOCK_S, BLOCK_D), dtype=tl.float32)
    advance = tl.full([], BLOCK_T, dtype=tl.int64)
    for _ in range(tl.cdiv(n_keys, BLOCK_T)):
        weights = tl.load(weight_ptrs, mask=query_mask & (keys[None, :] < n_keys), other=0.0)
        v = tl.load(v_ptrs, mask=(keys[:, None] < n_keys) & dim_mask, other=0.0)
        acc = tl.dot(weights, v.to(tl.float32), acc, input_precision="ieee")
        weight_ptrs += BLOCK_T
        v_ptrs += advance * stride_vt
        keys += BLOCK_T

    out_rows = out_ptr + batch * stride_ob + head * stride_oh + queries[:, None] * stride_os
    tl.store(
        out_rows + dims[None, :] * stride_od,
        acc.to(out_ptr.dtype.element_ty),
        mask=query_mask & dim_mask,
    )


def attention_naive(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """softmax(q k^T / sqrt(D)) v for `q` [B, H, S, D], `k` and `v` [B, H, T, D].

    Scores and weights are kept in float32, [B, H, S, T].
    """
    batch, n_heads, n_queries, head_dim = q.shape
    n_keys = k.shape[2]
    scores = torch.empty(
        (batch * n_heads * n_queries, n_keys), dtype=torch.float32, device=q.device
    )
    out = torch.empty_like(q)
    tiles_s = triton.cdiv(n_queries, BLOCK_S)
    _scores_kernel[(tiles_s, triton.cdiv(n_keys, BLOCK_T), batch * n_heads)](
        q,
        k,
        scores,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *k.stride(),
        BLOCK_S=BLOCK_S,
        BLOCK_T=BLOCK_T,
        BLOCK_D=BLOCK_D,
    )
    n_rows = scores.shape[0]
    _softmax_kernel[(triton.cdiv(n_rows, BLOCK_ROWS),)](
        scores,
        n_rows,
        n_keys,
        BLOCK_ROWS=BLOCK_ROWS,
        BLOCK_T=triton.next_power_of_2(n_keys),
    )
    _weighted_values_kernel[(tiles_s, batch * n_heads)](
        scores,
        v,
        out,
        n_heads,
        n_queries,
        n_keys,
        head_dim,
        *v.stride(),
        *out.stride(),
        BLOCK_S=BLOCK_S,
        BLOCK_T=BLOCK_T,
        BLOCK_D=max(MIN_BLOCK_D, triton.next_power_of_2(head_dim)),
    )
    return out
