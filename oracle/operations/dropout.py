"""Dropout by a counter: Philox-4x32-10 (Salmon et al., SC 2011) as `tl.rand` runs it.

The counter is (low word, high word, 0, 0) of an offset, the key the two words of the seed. The
first word of the result, read as signed and folded to its magnitude, is scaled into [0, 1) in
float32.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from gatecert.oracle.exact import linear
from gatecert.oracle.relations import Relations, additive
from gatecert.oracle.schema import Scalar, Seed, Tensor, operation

Rows: TypeAlias = Annotated[torch.Tensor, Tensor["B N"]]
Words: TypeAlias = npt.NDArray[np.uint64]
"""32-bit words in 64-bit lanes: products do not overflow."""

_ROUNDS = 10
_WORD = 2**32
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_TO_UNIT = np.float32(4.6566127342e-10)
"""Just below 2^-31: the largest magnitude stays below 1."""


def uniform(seed: int, offsets: Words) -> npt.NDArray[np.float32]:
    """What `tl.rand(seed, offsets)` gives, in [0, 1)."""
    mask, shift = np.uint64(_WORD - 1), np.uint64(32)
    first, second = (np.uint64(multiplier) for multiplier in _MULTIPLIERS)
    a, b = offsets & mask, offsets >> shift
    c, d = np.zeros_like(a), np.zeros_like(a)
    keys = (seed % _WORD, seed // _WORD % _WORD)
    for turn in range(_ROUNDS):
        k0, k1 = (
            np.uint64((key + turn * step) % _WORD)
            for key, step in zip(keys, _KEY_STEPS, strict=True)
        )
        left, right = a * first, c * second
        a, b, c, d = (right >> shift) ^ b ^ k0, right & mask, (left >> shift) ^ d ^ k1, left & mask
    signed = a.astype(np.uint32).view(np.int32)
    magnitude = np.where(signed < 0, ~signed, signed)
    return np.asarray(magnitude.astype(np.float32) * _TO_UNIT)


def _uniform_of_one(seed: int, offset: int) -> np.float32:
    """The same in Python's whole numbers, a value at a time."""
    words = [offset % _WORD, offset // _WORD, 0, 0]
    key = [seed % _WORD, seed // _WORD % _WORD]
    for _ in range(_ROUNDS):
        high0, low0 = divmod(_MULTIPLIERS[0] * words[0], _WORD)
        high1, low1 = divmod(_MULTIPLIERS[1] * words[2], _WORD)
        words = [high1 ^ words[1] ^ key[0], low1, high0 ^ words[3] ^ key[1], low0]
        key = [(part + step) % _WORD for part, step in zip(key, _KEY_STEPS, strict=True)]
    magnitude = words[0] if words[0] < _WORD // 2 else _WORD - 1 - words[0]
    return np.float32(magnitude) * _TO_UNIT


def _value_by_value(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    limit = np.float32(p)
    kept = [
        value if _uniform_of_one(seed, offset) > limit else 0.0
        for offset, value in enumerate(x.reshape(-1).tolist())
    ]
    values: torch.Tensor = torch.tensor(kept, dtype=x.dtype).reshape(x.shape) / (1 - p)
    return values


def _shadow(y: torch.Tensor, x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    # p itself is rounded to float32 before it is taken from 1.
    return y.abs() * (1 + 1 / (1 - p))


@operation(
    p=Scalar(0.05, 0.9),
    seed=Seed(),
    second=_value_by_value,
    shadow=_shadow,
    exact=linear(scalars={"p": 0.5}),
    # Which values stay goes with the flat place: rows may be added at the end.
    relations=Relations(padded={"B": 1.0}, scalings=(additive("x"),)),
)
def dropout(x: Rows, p: float, seed: int) -> Rows:
    """x over 1 - p where the number of its place exceeds p, zero elsewhere."""
    numbers = uniform(seed, np.arange(x.numel(), dtype=np.uint64)).reshape(x.shape)
    return torch.where(torch.from_numpy(numbers > np.float32(p)), x / (1 - p), 0.0)
