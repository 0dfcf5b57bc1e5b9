"""Random numbers that are the same bits on every machine.

Only the raw words of Philox are used (its stream is fixed by definition) and only arithmetic
that is exact or correctly rounded: no logarithm or sine of a maths library enters an input.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from gatecert.oracle.formats import Array


class Stream:
    """One stream of numbers, keyed by text."""

    __slots__ = ("_bits",)

    def __init__(self, key: str) -> None:
        digest = hashlib.sha256(key.encode()).digest()
        self._bits = np.random.Philox(key=int.from_bytes(digest[:16], "little"))

    def uniform(self, shape: tuple[int, ...]) -> Array:
        """Multiples of 2^-53 in [0, 1)."""
        words = self._bits.random_raw(int(np.prod(shape, dtype=np.int64)))
        whole = np.asarray(words, np.uint64) >> np.uint64(11)
        return np.asarray(whole.reshape(shape) * 2.0**-53)

    def normal(self, shape: tuple[int, ...]) -> Array:
        """Nearly N(0, 1): the sum of twelve uniforms less six (|value| < 6)."""
        return np.asarray(self.uniform((12, *shape)).sum(axis=0) - 6.0)

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Whole numbers in [low, high)."""
        return low + np.floor(self.uniform(shape) * (high - low)).astype(np.int64)

    def log_uniform(self, low: int, high: int, shape: tuple[int, ...]) -> Array:
        """Magnitudes spread evenly over the powers of two in [2^low, 2^high), random signs."""
        exponent = self.integers(low, high, shape)
        mantissa = 1.0 + self.uniform(shape)
        sign = np.where(self.uniform(shape) < 0.5, -1.0, 1.0)
        return np.asarray(sign * np.ldexp(mantissa, exponent))
