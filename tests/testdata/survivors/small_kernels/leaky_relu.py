"""Leaky ReLU of all values of a tensor, one after the other; other layouts are copied."""

import torch
import triton
import triton.language as tl

BLOCK = 64
"""Values per program."""


@triton.jit
def _leaky_relu_kernel(x_ptr, y_ptr, n_values, slope, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n_values
    if EVEN:
        x = tl.load(x_ptr + places).to(tl.float32)
    else:
        x = tl.load(x_ptr + places, mask=inside, other=0.0).to(tl.float32)
    y = tl.where(x > 0.0, x, x * slope)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def leaky_relu(x, slope=0.01):
    """`x` where it is positive, `slope` times `x` elsewhere."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n_values = x.numel()
    even = n_values % BLOCK == 0
    grid = (triton.cdiv(n_values, BLOCK),)
    _leaky_relu_kernel[grid](x, y, n_values, slope, EVEN=even, BLOCK=BLOCK)
    return y
