"""Kernels of the self-test: reductions, loops and products. Imported with the interpreter on."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
import triton
import triton.language as tl

_ROWS, _COLUMNS, _INNER = 3, 37, 50


@triton.jit
def softmax_kernel(out, x, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    inside = lanes < columns
    values = tl.load(x + row * columns + lanes, mask=inside, other=-float("inf")).to(tl.float32)
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + lanes, weights / tl.sum(weights, 0), mask=inside)


@triton.jit
def matmul_kernel(out, a, b, rows, columns, inner: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, inner, BLOCK):
        k = start + tl.arange(0, BLOCK)
        left = (r[:, None] < rows) & (k[None, :] < inner)
        right = (k[:, None] < inner) & (c[None, :] < columns)
        x = tl.load(a + r[:, None] * inner + k[None, :], mask=left, other=0.0)
        y = tl.load(b + k[:, None] * columns + c[None, :], mask=right, other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    place = out + r[:, None] * columns + c[None, :]
    tl.store(place, total, mask=(r[:, None] < rows) & (c[None, :] < columns))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of the rows of a matrix."""
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](out, x, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Product of two matrices."""
    rows, columns, inner = a.shape[0], b.shape[1], a.shape[1]
    out = torch.empty(rows, columns, dtype=a.dtype)
    grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 16))
    matmul_kernel[grid](out, a, b, rows, columns, inner, BLOCK=16)
    return out


def float32_bits() -> dict[str, str]:
    """SHA-256 of each kernel's float32 result."""
    return {
        name: hashlib.sha256(function(*inputs).numpy().tobytes()).hexdigest()
        for name, function, inputs in _calls(torch.float32)
    }


def bf16_error() -> dict[str, float]:
    """Each kernel's largest bf16 error against torch in float64, over 2^-8 of the largest value."""
    errors = {}
    for name, function, inputs in _calls(torch.bfloat16):
        wide = [tensor.double() for tensor in inputs]
        right = torch.softmax(wide[0], -1) if len(wide) == 1 else wide[0] @ wide[1]
        error = (function(*inputs).double() - right).abs().max() / right.abs().max()
        errors[name] = float(error) * 256
    return errors


def _calls(
    dtype: torch.dtype,
) -> list[tuple[str, Callable[..., torch.Tensor], list[torch.Tensor]]]:
    random = torch.Generator().manual_seed(0)
    x = torch.randn(_ROWS, _COLUMNS, generator=random).to(dtype)
    a = torch.randn(_COLUMNS, _INNER, generator=random).to(dtype)
    b = torch.randn(_INNER, _ROWS, generator=random).to(dtype)
    return [("softmax", softmax, [x]), ("matmul", matmul, [a, b])]
