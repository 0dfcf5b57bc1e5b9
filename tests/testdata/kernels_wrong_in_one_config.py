"""An autotuned softmax that is wrong under the last of its three configurations only."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 4096, "PAD": 1.0}),
        triton.Config({"BLOCK": 8192, "PAD": 1.0}),
        triton.Config({"BLOCK": 4096, "PAD": 0.0}),
    ],
    key=["n_cols"],
)
@triton.jit
def row_softmax(x_ptr, y_ptr, n_cols, BLOCK: tl.constexpr, PAD: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.where(mask, x, -float("inf") if PAD == 1.0 else 0.0)
    parts = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * n_cols + cols, parts / tl.sum(parts, axis=0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    y = torch.empty_like(x)
    row_softmax[(x.shape[0],)](x, y, x.shape[1])
    return y
