"""What autotuned kernels may be tuned to. Imports no Triton."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from gatecert.lanes.interpreter.kernels import is_kernel

_TILES = range(8, 513)
_MOST_WRAPPERS = 16


@dataclass(frozen=True, slots=True)
class Tuning:
    """Over some kernels: the most configurations that one has, and all sizes they tile by."""

    configs: int = 1
    tiles: tuple[int, ...] = ()


def tuning_of(kernels: Collection[str] | None = None) -> Tuning:
    """The configurations of the autotuned ones among kernels named `module:qualname`, or of all.

    Only autotuners that an imported module holds by name are seen.
    """
    configs = 1
    tiles: set[int] = set()
    for tuner in _tuners(kernels):
        configs = max(configs, len(tuner.configs))
        for config in tuner.configs:
            tiles.update(value for value in config.kwargs.values() if _is_tile(value))
    return Tuning(configs, tuple(sorted(tiles)))


def _tuners(kernels: Collection[str] | None) -> Iterator[Any]:
    seen: set[int] = set()
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if not is_kernel(value) or id(value) in seen:
                continue
            seen.add(id(value))
            layers = list(_layers(value))
            function = layers[-1]
            name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
            if kernels is None or name in kernels:
                yield from (layer for layer in layers if hasattr(layer, "configs"))


def _layers(value: Any) -> Iterator[Any]:
    """A kernel, what it wraps, and at last the Python function."""
    for _ in range(_MOST_WRAPPERS):
        yield value
        if inspect.isfunction(value) or not hasattr(value, "fn"):
            return
        value = value.fn


def _is_tile(value: Any) -> bool:
    return type(value) is int and value in _TILES and value & (value - 1) == 0
