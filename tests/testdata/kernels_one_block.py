"""A softmax whose launcher cuts rows into one block, and what can go wrong there."""

import torch
import triton
import triton.language as tl

LARGEST_BLOCK = 4096


@triton.jit
def softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    y = x / tl.sum(x, axis=0)
    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    n_rows, n_cols = x.shape
    block = min(triton.next_power_of_2(n_cols), LARGEST_BLOCK)
    softmax_kernel[(n_rows,)](x, y, n_cols, BLOCK=block)
    return y
