"""Softmaxes whose maximum takes in what nobody wrote: a lane that is masked off without `other`, or
a workspace from `torch.empty`. `tl.maximum` and `tl.max` drop NaN, so NaN alone is not seen.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, start_ptr, n_cols, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    if MASKED:
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask).to(tl.float32)
        high = tl.max(x, axis=0)
    else:
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
        high = tl.maximum(tl.load(start_ptr + row), tl.max(x, axis=0))
    x = tl.where(mask, tl.exp(x - high), 0.0)
    y = x / tl.sum(x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def _softmax(x: torch.Tensor, start: torch.Tensor, masked: bool) -> torch.Tensor:
    y = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block = triton.next_power_of_2(n_cols)
    row_kernel[(n_rows,)](x, y, start, n_cols, MASKED=masked, BLOCK=block)
    return y


def softmax_over_masked_off_lanes(x: torch.Tensor) -> torch.Tensor:
    return _softmax(x, torch.full((len(x),), -float("inf")), masked=True)


def softmax_over_fresh_memory(x: torch.Tensor) -> torch.Tensor:
    return _softmax(x, torch.empty(len(x)), masked=False)


def softmax_over_memory_that_it_fills(x: torch.Tensor) -> torch.Tensor:
    return _softmax(x, torch.empty(len(x)).fill_(-float("inf")), masked=False)
