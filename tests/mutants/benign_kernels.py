"""Kernels with launchers for the benign rewrites: what may be rewritten, and what may not."""

HEADER = """\
import torch
import triton
import triton.language as tl

BLOCK = 32
CHUNK = 16


"""

ROWS = (
    HEADER
    + """\
@triton.jit
def _rows_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    top = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row + cols, mask=cols < n, other=0.0).to(tl.float32)
        total += x * 0.5 * x
        top = tl.maximum(top, x)
    tl.store(y_ptr + tl.program_id(0), tl.exp(-tl.sum(total, axis=0) / n))


def rows(x):
    y = torch.empty(x.shape[0])
    _rows_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK)
    return y
"""
)

TILES = (
    HEADER
    + """\
@triton.jit
def _tiles_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + cols, tl.exp2(x) + 1.0, mask=cols < n)


def tiles(x):
    y = torch.empty_like(x)
    _tiles_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y
"""
)
