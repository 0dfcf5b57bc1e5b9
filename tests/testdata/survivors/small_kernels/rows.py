"""Rows by their number: rows of a table by index, and rows sent to slots."""

import torch
import triton
import triton.language as tl

BLOCK = 16
"""Places, and columns, per program."""


@triton.jit
def _embedding_kernel(
    weight_ptr, index_ptr, y_ptr, n_places, n_cols, stride_v, stride_n, BLOCK: tl.constexpr
):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = places < n_places
    index = tl.load(index_ptr + places, mask=there, other=0)
    # Indices from the end are not supported; what is below zero reads the first row.
    index = tl.maximum(index, 0)
    held = there[:, None] & (cols < n_cols)[None, :]
    rows = tl.load(
        weight_ptr + index[:, None] * stride_v + cols[None, :] * stride_n, mask=held, other=0.0
    )
    tl.store(y_ptr + places[:, None] * n_cols + cols[None, :], rows, mask=held)


def embedding(weight, index):
    """Row `index[b, s]` of `weight` [V, N] at every place of `index` [B, S]."""
    index = index.contiguous()
    n_places, n_cols = index.numel(), weight.shape[1]
    y = torch.empty((*index.shape, n_cols), dtype=weight.dtype, device=weight.device)
    grid = (triton.cdiv(n_places, BLOCK), triton.cdiv(n_cols, BLOCK))
    _embedding_kernel[grid](weight, index, y, n_places, n_cols, *weight.stride(), BLOCK=BLOCK)
    return y


@triton.jit
def _scatter_rows_kernel(
    x_ptr, slots_ptr, y_ptr, n_cols, stride_xt, stride_xn, stride_slots, BLOCK: tl.constexpr
):
    item = tl.program_id(0)
    slot = tl.load(slots_ptr + item * stride_slots)
    if slot < 0:
        return
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + item * stride_xt + cols * stride_xn, mask=inside)
    tl.store(y_ptr + slot * n_cols + cols, x, mask=inside)


def scatter_rows(x, slots, count):
    """`count` rows: row `slots[t]` is row t of `x` [T, N]; slot -1 is nowhere, others are 0."""
    n_items, n_cols = x.shape
    y = torch.zeros((count, n_cols), dtype=x.dtype, device=x.device)
    grid = (n_items, triton.cdiv(n_cols, BLOCK))
    _scatter_rows_kernel[grid](x, slots, y, n_cols, *x.stride(), slots.stride(0), BLOCK=BLOCK)
    return y
