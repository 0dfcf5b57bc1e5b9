"""A softmax whose programs read what the program before them wrote: right in order only."""

import torch
import triton
import triton.language as tl

TILE = 32


@triton.jit
def running_maximum(x_ptr, high_ptr, n_cols, n_tiles, TILE: tl.constexpr):
    row = tl.program_id(0)
    tile = tl.program_id(1)
    cols = tile * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    before = tl.load(high_ptr + row * n_tiles + tile - 1, mask=tile > 0, other=-float("inf"))
    high = tl.maximum(before, tl.max(x.to(tl.float32), axis=0))
    tl.store(high_ptr + row * n_tiles + tile, high)


def softmax(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    n_rows, n_cols = x.shape
    n_tiles = triton.cdiv(n_cols, TILE)
    high = torch.full((n_rows, n_tiles), 1e30)
    running_maximum[(n_rows, n_tiles)](x, high, n_cols, n_tiles, TILE=TILE)
    parts = torch.exp(x.float() - high[:, -1:])
    return (parts / parts.sum(dim=1, keepdim=True)).to(x.dtype)
