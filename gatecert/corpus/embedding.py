"""Embedding lookup: rows of a table, gathered by token."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK_T = 4
"""Tokens per program."""
MAX_BLOCK_N = 64
"""Columns per program at most."""


@triton.heuristics(
    {"BLOCK_N": lambda args: min(triton.next_power_of_2(args["n_cols"]), MAX_BLOCK_N)}
)
@triton.jit
def _embedding_kernel(
    weight_ptr,
    index_ptr,
    out_ptr,
    n_tokens,
    seq_len,
    n_cols,
    stride_wv,
    stride_wn,
    stride_ib,
    stride_is,
    BLOCK_T: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    tokens = tl.program_id(0).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    cols = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    token_mask = tokens < n_tokens
    mask = token_mask[:, None] & (cols[None, :] < n_cols)

    batch = tokens // seq_len
    place = tokens % seq_len
    index = tl.load(index_ptr + batch * stride_ib + place * stride_is, mask=token_mask, other=0)
    # The index is int64, so a table of more than 2^31 values is addressed rightly.
    rows = weight_ptr + index[:, None] * stride_wv
    values = tl.load(rows + cols[None, :] * stride_wn, mask=mask, other=0.0)

    # The output is contiguous: [batch, place] is one dim, of tokens.
    tl.store(out_ptr + tokens[:, None] * n_cols + cols[None, :], values, mask=mask)


def embedding(weight: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Rows of `weight` [V, N] in the order of `index` [B, S]: [B, S, N]."""
    n_cols = weight.shape[1]
    batch, seq_len = index.shape
    out = torch.empty((batch, seq_len, n_cols), dtype=weight.dtype, device=weight.device)

    def grid(meta: dict[str, int]) -> tuple[int, int]:
        return (triton.cdiv(index.numel(), meta["BLOCK_T"]), triton.cdiv(n_cols, meta["BLOCK_N"]))

    _embedding_kernel[grid](
        weight,
        index,
        out,
        index.numel(),
        seq_len,
        n_cols,
        *weight.stride(),
        *index.stride(),
        BLOCK_T=BLOCK_T,
    )
    return out
