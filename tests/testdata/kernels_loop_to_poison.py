"""A softmax whose loop ends where a table says, of which its last row reads the entry past the end.

The interpreter's guard gives a large number there, and the loop would take hours.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, ends_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    end = tl.load(ends_ptr + row + 1)
    lanes = tl.arange(0, BLOCK)
    total = 0.0
    highest = -float("inf")
    for start in range(0, end, BLOCK):
        mask = start + lanes < n_cols
        x = tl.load(x_ptr + row * n_cols + start + lanes, mask=mask, other=-float("inf"))
        higher = tl.maximum(highest, tl.max(x.to(tl.float32), axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(x.to(tl.float32) - higher), axis=0)
        highest = higher
    for start in range(0, n_cols, BLOCK):
        mask = start + lanes < n_cols
        at = row * n_cols + start + lanes
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (tl.exp(x - highest) / total).to(y_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    n_rows, n_cols = x.shape
    ends = torch.full((n_rows,), n_cols, dtype=torch.int32)
    softmax_kernel[(n_rows,)](x, y, ends, n_cols, BLOCK=16)
    return y
