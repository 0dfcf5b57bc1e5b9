"""Softmax of rows over the places that a mask lets through, with or without a bias."""

import torch
import triton
import triton.language as tl


@triton.jit
def _masked_softmax_kernel(
    x_ptr,
    mask_ptr,
    bias_ptr,
    y_ptr,
    n_cols,
    stride_xb,
    stride_xn,
    stride_mb,
    stride_mn,
    stride_yb,
    stride_yn,
    HAS_BIAS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x_ptrs = x_ptr + row * stride_xb + cols * stride_xn
    mask_ptrs = mask_ptr + row * stride_mb + cols * stride_mn
    seen = tl.load(mask_ptrs, mask=inside, other=0)
    scores = tl.load(x_ptrs, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        scores += tl.load(bias_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    scores = tl.where(seen != 0, scores, -float("inf"))

    top = tl.max(scores, axis=0)
    # Of a row that is hidden as a whole: -inf less -inf would be NaN, and 0 over 0 too.
    top = tl.where(top == -float("inf"), 0.0, top)
    powers = tl.exp(scores - top)
    total = tl.sum(powers, axis=0)
    total = tl.where(total == 0.0, 1.0, total)
    y = powers / total
    y_ptrs = y_ptr + row * stride_yb + cols * stride_yn
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=inside)


def masked_softmax(x, mask, bias=None):
    """Softmax of `x` [B, N], plus `bias` [N], where `mask` [B, N] is true; 0 elsewhere."""
    n_rows, n_cols = x.shape
    y = torch.empty_like(x)
    strides = (*x.stride(), *mask.stride(), *y.stride())
    _masked_softmax_kernel[(n_rows,)](
        x,
        mask,
        bias,
        y,
        n_cols,
        *strides,
        HAS_BIAS=bias is not None,
        BLOCK=triton.next_power_of_2(n_cols),
    )
    return y
