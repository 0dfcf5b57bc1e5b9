"""A magnitude shadow for operations that bring none: noise at the size of fp32 rounding.

The reference is run some times with every input, and the result of every step inside, scaled by
1 + u * noise. Twice the spread of its results, in units of u, and their own size stand for what
rounding does: a difference of equal numbers moves by what they are rounded by.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gatecert.oracle.answers import ask
from gatecert.oracle.case import Case
from gatecert.oracle.formats import Array, to_float64
from gatecert.oracle.schema import Operation
from gatecert.oracle.streams import Stream

_RUNS = 16
"""So many that no element's spread is small by chance: with 4 it was, in one of 1,000."""
_SPREADS = 2.0
_STEP = 2.0**-24
_WIDTH = 3.0**0.5
"""Uniform noise of this width has variance 1."""


def noise_shadow(
    operation: Operation, case: Case, exact: list[Any], results: tuple[torch.Tensor, ...]
) -> list[Array]:
    """Per output: twice the root mean square of its change over u under noise, plus |y|.

    Raises:
        EnvironmentFailure: the reference raised.
    """
    squares = [np.zeros(tuple(result.shape)) for result in results]
    for run in range(_RUNS):
        noise = _Noise(f"{case.id}#noise{run}")
        noisy = [noise.on(arg) for arg in exact]
        with _RoundedSteps(noise):
            moved = ask(operation, "reference", operation.reference, noisy, case)
        for at, (new, old) in enumerate(
            zip(operation.returned(noisy, moved), results, strict=True)
        ):
            with np.errstate(invalid="ignore"):
                change = (to_float64(new) - to_float64(old)) / _STEP
            squares[at] += np.where(np.isfinite(change), change, 0.0) ** 2
    return [
        _SPREADS * np.sqrt(square / _RUNS)
        + np.nan_to_num(np.abs(to_float64(result)), nan=0.0, posinf=0.0)
        for square, result in zip(squares, results, strict=True)
    ]


class _Noise:
    """A change of each element by about u, another one each time it is asked for."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._turn = 0

    def on(self, value: Any) -> Any:
        """The value changed, if it is a tensor of numbers that are rounded."""
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        self._turn += 1
        stream = Stream(f"{self._key}.{self._turn}")
        noise = _WIDTH * (2.0 * stream.uniform(tuple(value.shape)) - 1.0)
        return value * (1.0 + _STEP * torch.from_numpy(np.asarray(noise)))


class _RoundedSteps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Changes what every step makes of floats, but for views of them."""

    def __init__(self, noise: _Noise) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._noise = noise

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not _computes(func, args):
            return result
        if isinstance(result, (tuple, list)):
            return type(result)(self._noise.on(part) for part in result)
        return self._noise.on(result)


def _computes(func: Any, args: tuple[Any, ...]) -> bool:
    """Does it take floats and give new memory?"""
    returned = func._schema.returns
    if any(one.alias_info is not None for one in returned):
        return False
    return any(isinstance(arg, torch.Tensor) and arg.is_floating_point() for arg in _flat(args))


def _flat(args: Any) -> list[Any]:
    if isinstance(args, (tuple, list)):
        return [part for arg in args for part in _flat(arg)]
    return [args]
