"""Sums of rows by segment: each row is added to its segment by atomics."""

import torch
import triton
import triton.language as tl

BLOCK = 32
"""Columns per program."""


@triton.jit
def _segment_sum_kernel(
    x_ptr, segments_ptr, sums_ptr, n_cols, stride_xt, stride_xn, stride_seg, BLOCK: tl.constexpr
):
    item = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < n_cols
    segment = tl.load(segments_ptr + item * stride_seg)
    x = tl.load(x_ptr + item * stride_xt + cols * stride_xn, mask=inside, other=0.0)
    tl.atomic_add(sums_ptr + segment * n_cols + cols, x.to(tl.float32), mask=inside)


def segment_sum(x, segments, count):
    """Rows of `x` [T, N] added up by `segments` [T], which never fall: [count, N]."""
    n_items, n_cols = x.shape
    sums = torch.zeros((count, n_cols), dtype=torch.float32, device=x.device)
    grid = (n_items, triton.cdiv(n_cols, BLOCK))
    _segment_sum_kernel[grid](x, segments, sums, n_cols, *x.stride(), segments.stride(0), BLOCK)
    return sums.to(x.dtype)
