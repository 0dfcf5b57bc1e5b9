"""Reductions tile by tile whose running maximum starts where not every row lies above it."""

import torch
import triton
import triton.language as tl

BLOCK = 32
INFINITE = -float("inf")


@triton.jit
def softmax_tiles(x_ptr, y_ptr, n, START: tl.constexpr, GUARD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = tl.full((), START, tl.float32)
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=START).to(tl.float32)
        new = tl.maximum(largest, tl.max(x, 0))
        shift = tl.where(GUARD & (new == -float("inf")), 0.0, new)
        total = total * tl.exp(largest - shift) + tl.sum(tl.exp(x - shift), 0)
        largest = new
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0).to(tl.float32)
        y = tl.exp(x - largest) / total
        tl.store(y_ptr + row * n + cols, y.to(y_ptr.dtype.element_ty), mask=cols < n)


@triton.jit
def argmax_tiles(x_ptr, place_ptr, n, START: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    largest = tl.full((), START, tl.float32)
    place = tl.full((), 0, tl.int64)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
        high = tl.max(x, 0)
        found = start + tl.argmax(x, 0)
        place = tl.where(high > largest, found, place)
        largest = tl.maximum(high, largest)
    tl.store(place_ptr + row, place)


def _softmax(x, start, guard=True):
    x = x.contiguous()
    y = torch.empty_like(x)
    softmax_tiles[(x.shape[0],)](x, y, x.shape[1], START=start, GUARD=guard, BLOCK=BLOCK)
    return y


def _argmax(x, start):
    x = x.contiguous()
    place = torch.empty(x.shape[0], dtype=torch.int64)
    argmax_tiles[(x.shape[0],)](x, place, x.shape[1], START=start, BLOCK=BLOCK)
    return place


def softmax(x):
    return _softmax(x, INFINITE)


def softmax_without_a_guard(x):
    return _softmax(x, INFINITE, guard=False)


def softmax_from_minus_1000(x):
    return _softmax(x, -1e3)


def softmax_from_minus_10000(x):
    return _softmax(x, -1e4)


def argmax(x):
    return _argmax(x, INFINITE)


def argmax_from_minus_1000(x):
    return _argmax(x, -1e3)


def argmax_from_minus_10000(x):
    return _argmax(x, -1e4)
