"""A row softmax as most Triton projects start with: one kernel, one launcher."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_softmax_kernel(x_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"))
    x = x.to(tl.float32)
    x_max = tl.max(x, axis=0)
    numerator = tl.exp(x - x_max)
    denominator = tl.sum(numerator, axis=0)
    y = numerator / denominator
    tl.store(y_ptr + row * stride_y + cols, y, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    rows, n_cols = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)
    row_softmax_kernel[(rows,)](x, y, x.stride(0), y.stride(0), n_cols, BLOCK=block)
    return y
