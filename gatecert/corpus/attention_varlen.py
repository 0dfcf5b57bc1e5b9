"""Attention of packed sequences: one tensor holds all of them, offsets say where each begins."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

BLOCK_M = 32
"""Queries per program."""
BLOCK_N = 32
"""Keys per tile."""


@triton.jit
def _attention_varlen_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    offsets_ptr,
    out_ptr,
    lse_ptr,
    group_size,
    head_dim,
    scale,
    stride_qt,
    stride_qh,
    stride_qd,
    stride_kt,
    stride_kh,
    stride_kd,
    stride_vt,
    stride_vh,
    stride_vd,
    stride_ot,
    stride_oh,
    stride_od,
    stride_lt,
    CAUSAL: tl.constexpr,
    WITH_LSE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64)
    sequence = tl.program_id(2)
    begin = tl.load(offsets_ptr + sequence).to(tl.int64)
    length = (tl.load(offsets_ptr + sequence + 1) - begin).to(tl.int32)
    # The grid is as long as the longest sequence.
    if start_m >= length:
        return

    rows = start_m + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    mask_d = dims < head_dim
    mask_q = (rows < length)[:, None] & mask_d[None, :]
    q_rows = q_ptr + head * stride_qh + (begin + rows)[:, None] * stride_qt
    q = tl.load(q_rows + dims[None, :] * stride_qd, mask=mask_q, other=0.0).to(tl.float32) * scale

    k_head = k_ptr + (head // group_size) * stride_kh
    v_head = v_ptr + (head // group_size) * stride_vh
    running_max = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    running_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, BLOCK_D], dtype=tl.float32)
    last = length
    if CAUSAL:
        last = tl.minimum(length, start_m + BLOCK_M)
    for start_n in range(0, last, BLOCK_N):
        cols = start_n + tl.arange(0, BLOCK_N)
        mask_n = cols < length
        mask_kv = mask_n[:, None] & mask_d[None, :]
        k_rows = k_head + (begin + cols)[:, None] * stride_kt
        k = tl.load(k_rows + dims[None, :] * stride_kd, mask=mask_kv, other=0.0)
        scores = tl.dot(q, tl.trans(k.to(tl.float32)), input_precision="ieee")
        seen = mask_n[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= cols[None, :])
        scores = tl.where(seen, scores, float("-inf"))

        # Key 0 is seen by all, so that the maximum is finite from the first tile on.
        new_max = tl.maximum(running_max, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_max[:, None])
        rescale = tl.exp(running_max - new_max)
        running_sum = running_sum * rescale + tl.sum(weights, axis=1)
        v_rows = v_head + (begin + cols)[:, None] * stride_vt
        v = tl.load(v_rows + dims[None, :] * stride_vd, mask=mask_kv, other=0.0)
        acc = acc * rescale[:, None]
        acc += tl.dot(weights, v.to(tl.float32), input_precision="ieee")
        running_max = new_max

    out_rows = out_ptr + head * stride_oh + (begin + rows)[:, None] * stride_ot
    out = (acc / running_sum[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_rows + dims[None, :] * stride_od, out, mask=mask_q)
    if WITH_LSE:
        lse = running_max + tl.log(running_sum)
        tl.store(lse_ptr + (begin + rows) * stride_lt + head, lse, mask=rows < length)


def attention_varlen(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    offsets: torch.Tensor,
    causal: bool = True,
    return_lse: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention of `q` [T, G*H, D] to `k` and `v` [T, H, D], each sequence to itself.

    Sequence b is rows offsets[b] to offsets[b + 1]. With `return_lse` also the logarithm of the
    sum of exponentials of the scores, float32 [T, G*H].
    """
    total, n_heads, head_dim = q.shape
    longest = int((offsets[1:] - offsets[:-1]).max())
    out = torch.empty_like(q)
    lse = None
    if return_lse:
        lse = torch.empty((total, n_heads), dtype=torch.float32, device=q.device)
    _attention_varlen_kernel[(triton.cdiv(longest, BLOCK_M), n_heads, offsets.numel() - 1)](
        q,
        k,
        v,
        offsets,
        out,
        lse,
        n_heads // k.shape[1],
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        *out.stride(),
        n_heads,
        CAUSAL=bool(causal),
        WITH_LSE=bool(return_lse),
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_D=max(16, triton.next_power_of_2(head_dim)),
    )
    return out, lse
