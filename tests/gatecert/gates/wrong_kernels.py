"""Kernels of rows in plain torch that other checkers accept, and right ones that they reject.

`<operation>` is right; `<operation>_<fault>` has that fault. All compute in float32 and round once,
as kernels do. `wrong_sums` has the kernels of other operations.
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


def softmax_a_bit_too_large_in_16_bits(x: Tensor) -> Tensor:
    """By a fifth of a step of float16, a fortieth of one of bfloat16."""
    factor = 1.0 if x.dtype is torch.float32 else 1.0001
    return (torch.softmax(x.float(), 1) * factor).to(x.dtype)


def softmax_short_log2e(x: Tensor) -> Tensor:
    powers = torch.exp2((x.float() - x.float().amax(1, keepdim=True)) * 1.4427)
    return (powers / powers.sum(1, keepdim=True)).to(x.dtype)


def softmax_tiny_outputs_lost(x: Tensor) -> Tensor:
    y = softmax(x)
    return torch.where(y < y.amax() / 4096, 0.0, y)


def softmax_without_rescale(x: Tensor) -> Tensor:
    """Sums over tiles of 32 columns, each under the maximum so far."""
    wide = x.float()
    high, total = torch.full((len(x), 1), -torch.inf), torch.zeros(len(x), 1)
    for tile in wide.split(32, dim=1):
        high = torch.maximum(high, tile.amax(1, keepdim=True))
        total += torch.exp(tile - high).sum(1, keepdim=True)
    return (torch.exp(wide - high) / total).to(x.dtype)


def softmax_wrong_every_seventh_time(x: Tensor) -> Tensor:
    return softmax(x) * (next(_CALLS) % 7 != 6)


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


def softmax_empty_dict(x: Tensor) -> Any:
    return {}


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
    """Every second call has another last bit, which is within what float32 rounds to."""
    y = softmax(x)
    if y.dtype is torch.float32 and y[-1, -1].isfinite() and next(_CALLS) % 2:
        y.view(torch.int32)[-1, -1] ^= 1
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


def transpose_saturates(x: Tensor) -> Tensor:
    largest = torch.finfo(x.dtype).max
    return transpose(x.clamp(-largest, largest))


def transpose_of_squares_only(x: Tensor) -> Tensor:
    """The right shape, the wrong places."""
    return transpose(x) if len(set(x.shape)) == 1 else x.reshape(x.shape[::-1]).clone()


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


def argmax_one_off_past_100(x: Tensor) -> Tensor:
    y = argmax(x)
    return y + (y > 100)


def argmax_of_one_row(x: Tensor) -> Tensor:
    return argmax(x)[:1]
