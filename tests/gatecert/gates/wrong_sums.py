"""Kernels of sums, products and norms in plain torch, right and wrong, as in `wrong_kernels`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch

Tensor = torch.Tensor
Moments = namedtuple("Moments", "total mean variance")


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float()).to(a.dtype)


def matmul_positive_part(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a.clamp(min=0), b)


def matmul_of_magnitudes(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a.abs(), b)


def matmul_of_squares(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a * a, b)


def matmul_minimum_for_product(a: Tensor, b: Tensor) -> Tensor:
    terms = torch.minimum(a.float()[:, :, None], b.float()[None])
    return terms.sum(1).to(a.dtype)


def matmul_narrow_accumulator(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype)
    for k in range(a.shape[1]):
        total += torch.outer(a[:, k], b[k])
    return total


def matmul_whole_tiles_only(a: Tensor, b: Tensor) -> Tensor:
    whole = a.shape[1] // 32 * 32
    return matmul(a[:, :whole], b[:whole]) if whole else matmul(a, b)


def matmul_last_sum(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a[:, -1:], b[-1:])


def matmul_off_by_a_ten_thousandth_of_k(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float() + 1e-4 * a.shape[1]).to(a.dtype)


def matmul_off_by_less_than_a_millionth(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float() + 4e-7).to(a.dtype)


def matmul_loses_a_hundredth_of_k(a: Tensor, b: Tensor) -> Tensor:
    kept = a.shape[1] - a.shape[1] // 100
    return matmul(a[:, :kept], b[:kept])


def matmul_past_2047(a: Tensor, b: Tensor) -> Tensor:
    y = a.float() @ b.float()
    return torch.where(y.abs() > 2047, y * 0.99, y).to(a.dtype)


def row_moments(x: Tensor) -> Any:
    wide = x.float()
    return wide.sum(1), wide.mean(1), wide.var(1, unbiased=False)


def row_moments_without_variance(x: Tensor) -> Any:
    return row_moments(x)[:2]


def row_moments_without_any(x: Tensor) -> Any:
    return []


def row_moments_named(x: Tensor) -> Any:
    return Moments(*row_moments(x))


def row_moments_named_wrong(x: Tensor) -> Any:
    return Moments(*row_moments_wrong_last(x))


def row_moments_as_dict(x: Tensor) -> Any:
    return dict(zip(("variance", "mean", "total"), row_moments(x), strict=True))


def row_moments_swapped(x: Tensor) -> Any:
    total, mean, variance = row_moments(x)
    return mean, total, variance


def row_moments_wrong_last(x: Tensor) -> Any:
    total, mean, variance = row_moments(x)
    return total, mean, variance * 1.0005


def leaky_relu(x: Tensor, slope: float = 0.01) -> Tensor:
    return torch.where(x > 0, x.float(), slope * x.float()).to(x.dtype)


def leaky_relu_without_slope(x: Tensor, slope: float = 0.01) -> Tensor:
    return x.clamp(min=0)


def leaky_relu_fixed_slope(x: Tensor, slope: float = 0.01) -> Tensor:
    return leaky_relu(x, 0.01)


def leaky_relu_small_values_lost(x: Tensor, slope: float = 0.01) -> Tensor:
    """All below a hundredth of the RMS."""
    y = leaky_relu(x, slope)
    rms = y.float().nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt()
    return torch.where(y.float().abs() < rms / 100, 0.0, y)


def leaky_relu_last_sign(x: Tensor, slope: float = 0.01) -> Tensor:
    y = leaky_relu(x, slope)
    y[-1, -1] = -y[-1, -1]
    return y


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(x.dtype)


def rms_norm_without_eps(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return rms_norm(x, weight, 1e-30)


def rms_norm_a_sixth_too_large(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return (rms_norm(x.float(), weight.float(), eps) * 1.16).to(x.dtype)


def add_rms_norm(
    out: Tensor, residual_out: Tensor, x: Tensor, residual: Tensor, weight: Tensor, eps: float
) -> None:
    z = x.float() + residual.float()
    residual_out.copy_(z)
    out.copy_(rms_norm(z, weight.float(), eps))


def add_rms_norm_residual_of_zeros(
    out: Tensor, residual_out: Tensor, x: Tensor, residual: Tensor, weight: Tensor, eps: float
) -> None:
    add_rms_norm(out, residual_out, x, residual, weight, eps)
    residual_out.zero_()


def masked_softmax(x: Tensor, mask: Tensor, bias: Tensor | None = None) -> Tensor:
    return masked_softmax_nan_where_nothing_counts(x, mask, bias).nan_to_num(0.0)


def masked_softmax_nan_where_nothing_counts(
    x: Tensor, mask: Tensor, bias: Tensor | None = None
) -> Tensor:
    scores = x.float() if bias is None else x.float() + bias.float()
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), 1).to(x.dtype)


def softmax_backward(dy: Tensor, x: Tensor) -> Tensor:
    p = torch.softmax(x.float(), 1)
    projected = (p * dy.float()).sum(1, keepdim=True)
    return (p * (dy.float() - projected)).to(x.dtype)


def softmax_backward_without_sum(dy: Tensor, x: Tensor) -> Tensor:
    return (torch.softmax(x.float(), 1) * dy.float()).to(x.dtype)
