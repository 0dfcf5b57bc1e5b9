"""Kernels in plain torch that other checkers are known to accept, and right ones they reject.

`<operation>` is right; `<operation>_<fault>` has that fault. All compute in float32 and round once,
as kernels do.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch

Tensor = torch.Tensor
_EARLIER: dict[str, Any] = {}
_CALLS = itertools.count()


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x.float(), 1).to(x.dtype)


def softmax_finite_for_nan(x: Tensor) -> Tensor:
    return torch.nan_to_num(softmax(x), nan=0.0)


def softmax_unscaled_masked_rows(x: Tensor) -> Tensor:
    """Rows whose first half is -inf: a maximum of -inf, subtracted from it."""
    y = softmax(x)
    half = x[:, : x.shape[1] // 2]
    lost = torch.isneginf(half).all(1) & (half.shape[1] > 0)
    return torch.where(lost[:, None], torch.nan, y)


def softmax_of_zeros(x: Tensor) -> Tensor:
    return torch.zeros_like(x, memory_format=torch.contiguous_format)


def softmax_one_part_in_200(x: Tensor) -> Tensor:
    return (torch.softmax(x.float(), 1) * 1.005).to(x.dtype)


def softmax_one_row(x: Tensor) -> Tensor:
    return softmax(x)[:1]


def softmax_flat(x: Tensor) -> Tensor:
    return softmax(x).reshape(-1)


def softmax_in_float32(x: Tensor) -> Tensor:
    return torch.softmax(x.float(), 1)


def softmax_in_float64(x: Tensor) -> Tensor:
    return torch.softmax(x.double(), 1)


def softmax_as_list(x: Tensor) -> Any:
    return softmax(x).tolist()


def softmax_nothing(x: Tensor) -> Any:
    return ()


def softmax_none(x: Tensor) -> Any:
    return None


def softmax_twice(x: Tensor) -> Any:
    return softmax(x), softmax(x)


def softmax_unwritten(x: Tensor) -> Tensor:
    return torch.empty(x.shape, dtype=x.dtype)


def softmax_writes_no_zeros(x: Tensor) -> Tensor:
    y, made = softmax(x), torch.empty(x.shape, dtype=x.dtype)
    made[y != 0] = y[y != 0]
    return made


def softmax_stale(x: Tensor) -> Tensor:
    """What the call before gave, where it fits."""
    earlier, _EARLIER["softmax"] = _EARLIER.get("softmax"), softmax(x)
    if earlier is not None and earlier.shape == x.shape and earlier.dtype == x.dtype:
        return earlier
    return _EARLIER["softmax"]


def softmax_writes_its_input(x: Tensor) -> Tensor:
    y = softmax(x)
    if x.shape[0] > 1 and x.stride(0) == 0:
        return y
    x.mul_(2.0)
    return y


def softmax_varies(x: Tensor) -> Tensor:
    y = softmax(x)
    y[-1, -1] += next(_CALLS) % 2 * torch.finfo(x.dtype).smallest_normal
    return y


def softmax_ignores_strides(x: Tensor) -> Tensor:
    read = x.as_strided(x.shape, (x.shape[1], 1)) if x.stride(-1) == 1 else x
    return softmax(read)


def softmax_one_wrong_row(x: Tensor) -> Tensor:
    y = softmax(x)
    y[-1] = 0
    return y


def softmax_one_wrong_element(x: Tensor) -> Tensor:
    y = softmax(x)
    y[-1, -1] *= 0.9
    return y


def softmax_wide_rows_end(x: Tensor) -> Tensor:
    y = softmax(x)
    y[:, 1024:] = 0
    return y


def softmax_without_maximum(x: Tensor) -> Tensor:
    powers = torch.exp(x.float())
    return (powers / powers.sum(1, keepdim=True)).to(x.dtype)


def softmax_tail_of_zeros(x: Tensor) -> Tensor:
    """Padding up to 32 columns enters the sum as 0, where it should be -inf."""
    more = -x.shape[1] % 32
    padded = torch.nn.functional.pad(x.float(), (0, more))
    return torch.softmax(padded, 1)[:, : x.shape[1]].to(x.dtype)


def softmax_raises(x: Tensor) -> Tensor:
    raise RuntimeError("device-side assert triggered")


def softmax_raises_import_error(x: Tensor) -> Tensor:
    raise ImportError("no compiler here")


def softmax_out_of_memory(x: Tensor) -> Tensor:
    raise MemoryError


def log_softmax(x: Tensor) -> Tensor:
    return torch.log_softmax(x.float(), 1).to(x.dtype)


def log_softmax_all_one_too_low(x: Tensor) -> Tensor:
    return (torch.log_softmax(x.float(), 1) - 1.0).to(x.dtype)


def transpose(x: Tensor) -> Tensor:
    return x.t().clone(memory_format=torch.contiguous_format)


def transpose_flushes_subnormals(x: Tensor) -> Tensor:
    tiny = x.abs() < torch.finfo(x.dtype).smallest_normal
    return transpose(torch.where(tiny, 0.0, x))


def transpose_nan_for_inf(x: Tensor) -> Tensor:
    return transpose(torch.where(x.isinf(), torch.nan, x))


def transpose_inf_without_sign(x: Tensor) -> Tensor:
    return transpose(torch.where(x.isinf(), torch.inf, x))


def transpose_inf_for_nan(x: Tensor) -> Tensor:
    return transpose(torch.where(x.isnan(), torch.inf, x))


def transpose_through_float16(x: Tensor) -> Tensor:
    return transpose(x.half().to(x.dtype))


def transpose_one_step_off(x: Tensor) -> Tensor:
    y = transpose(x)
    flat = y.view(-1).view(torch.int32 if x.dtype is torch.float32 else torch.int16)
    flat[-1] ^= 1
    return y


def argmax(x: Tensor) -> Tensor:
    return torch.argmax(x.float(), 1) if x.isnan().any() else _first_of_the_largest(x)


def _first_of_the_largest(x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1]).expand(x.shape)
    return torch.where(x == x.amax(1, keepdim=True), places, x.shape[1]).amin(1)


def argmax_last_of_ties(x: Tensor) -> Tensor:
    places = torch.arange(x.shape[1]).expand(x.shape)
    return torch.where(x == x.amax(1, keepdim=True), places, -1).amax(1)


def argmax_int32(x: Tensor) -> Tensor:
    return argmax(x).int()


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return (a.float() @ b.float()).to(a.dtype)


def matmul_positive_part(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a.clamp(min=0), b)


def matmul_of_magnitudes(a: Tensor, b: Tensor) -> Tensor:
    return matmul(a.abs(), b)


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


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(x.dtype)


def rms_norm_without_eps(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return rms_norm(x, weight, 1e-30)


def rms_norm_a_sixth_too_large(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return (rms_norm(x.float(), weight.float(), eps) * 1.16).to(x.dtype)
