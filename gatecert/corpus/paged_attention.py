"""Decoding: one query per sequence against keys and values in pages, found by a block table."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _paged_attention_kernel(
    q_ptr,
    keys_ptr,
    values_ptr,
    table_ptr,
    lengths_ptr,
    out_ptr,
    group_size,
    head_dim,
    scale,
    stride_qb,
    stride_qh,
    stride_qd,
    stride_kp,
    stride_kz,
    stride_kh,
    stride_kd,
    stride_vp,
    stride_vz,
    stride_vh,
    stride_vd,
    stride_tb,
    stride_tp,
    stride_ob,
    stride_oh,
    stride_od,
    PAGE: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    shared_head = head // group_size
    length = tl.load(lengths_ptr + sequence)
    slots = tl.arange(0, PAGE)
    dims = tl.arange(0, BLOCK_D)
    mask_d = dims < head_dim

    q = tl.load(
        q_ptr + sequence * stride_qb + head * stride_qh + dims * stride_qd, mask=mask_d, other=0.0
    )
    q = q.to(tl.float32) * scale
    table_row = table_ptr + sequence * stride_tb
    running_max = -float("inf")
    running_sum = 0.0
    acc = tl.zeros([BLOCK_D], dtype=tl.float32)
    for place in range(tl.cdiv(length, PAGE)):
        # 64 bits: a page's number times its size leaves 32 in a large cache.
        page = tl.load(table_row + place * stride_tp).to(tl.int64)
        live = place * PAGE + slots < length
        mask = live[:, None] & mask_d[None, :]
        k_page = keys_ptr + page * stride_kp + shared_head * stride_kh
        k = tl.load(
            k_page + slots[:, None] * stride_kz + dims[None, :] * stride_kd, mask=mask, other=0.0
        )
        scores = tl.sum(q[None, :] * k.to(tl.float32), axis=1)
        scores = tl.where(live, scores, -float("inf"))
        new_max = tl.maximum(running_max, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_max)
        rescale = tl.exp(running_max - new_max)
        running_sum = running_sum * rescale + tl.sum(weights, axis=0)
        v_page = values_ptr + page * stride_vp + shared_head * stride_vh
        v = tl.load(
            v_page + slots[:, None] * stride_vz + dims[None, :] * stride_vd, mask=mask, other=0.0
        )
        acc = acc * rescale + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)
        running_max = new_max

    # A sequence that holds nothing yet gets zeros.
    out = acc / tl.where(running_sum == 0.0, 1.0, running_sum)
    out_row = out_ptr + sequence * stride_ob + head * stride_oh
    tl.store(out_row + dims * stride_od, out.to(out_ptr.dtype.element_ty), mask=mask_d)


def paged_attention(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    table: torch.Tensor,
    lengths: torch.Tensor,
) -> torch.Tensor:
    """Attention of `q` [B, G*H, D] to pages [pages, page size, H, D] of `keys` and `values`.

    Row b of `table` [B, P] names the pages that hold the first lengths[b] keys of sequence b.
    """
    n_sequences, n_heads, head_dim = q.shape
    out = torch.empty_like(q)
    _paged_attention_kernel[(n_sequences, n_heads)](
        q,
        keys,
        values,
        table,
        lengths,
        out,
        n_heads // keys.shape[2],
        head_dim,
        1.0 / math.sqrt(head_dim),
        *q.stride(),
        *keys.stride(),
        *values.stride(),
        *table.stride(),
        *out.stride(),
        PAGE=keys.shape[1],
        BLOCK_D=triton.next_power_of_2(head_dim),
    )
    return out
