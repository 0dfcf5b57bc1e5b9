"""Cases of production shapes, made small enough for the interpreter where they are too large."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from gatecert.oracle.case import Case
from gatecert.oracle.layouts import split_layout
from gatecert.oracle.schema import Operation
from gatecert.oracle.shapes import DEFAULT_BLOCK

RECIPES_OF_LOGGED = ("normal", "large_offset")
"""One-sided values too: a lost part of a sum of signed values is small."""
_MOST_TILES = 256
"""About as many steps of a kernel as milliseconds on the interpreter."""
_MOST_ELEMENTS = 1 << 18
_ALIGNMENT = 16
"""Triton compiles other code for sizes that it divides."""


class Logged(Protocol):
    """What a log tells of a call: see `gatecert.launch_log.LoggedShape`."""

    @property
    def dims(self) -> tuple[tuple[str, int], ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def layout(self) -> str: ...
    @property
    def scalars(self) -> tuple[tuple[str, float], ...]: ...
    @property
    def absent(self) -> tuple[str, ...]: ...


def logged_cases(
    operation: Operation,
    shapes: Iterable[Logged],
    *,
    blocks: Mapping[str, Sequence[int]],
    seed: int = 0,
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases of the shapes, and notes on those that are scaled or skipped.

    A scaled size keeps its remainder by the block and by 16, and its being more than two blocks.
    """
    cases: list[Case] = []
    notes: list[str] = []
    for shape in shapes:
        trouble = _misfit(operation, shape)
        if trouble:
            notes.append(f"skipped {shape}: {trouble}")
            continue
        sizes = scaled(operation, dict(shape.dims), blocks)
        if sizes is None:
            notes.append(f"skipped {shape}: too large for the interpreter, however it is scaled")
            continue
        if sizes != dict(shape.dims):
            small = ",".join(f"{dim}={size}" for dim, size in sizes.items())
            notes.append(f"scaled {shape} to {small}: remainders by block and by 16 are kept")
        cases += [
            Case(
                operation=operation.name,
                dims=tuple((dim, sizes[dim]) for dim in operation.dims),
                dtype=shape.dtype,
                layout=shape.layout,
                recipe=recipe,
                scalars=shape.scalars,
                seed=seed,
                absent=shape.absent,
            )
            for recipe in _recipes(operation)
        ]
    return tuple(dict.fromkeys(cases)), tuple(notes)


def scaled(
    operation: Operation, sizes: Mapping[str, int], blocks: Mapping[str, Sequence[int]]
) -> dict[str, int] | None:
    """The sizes, the largest cut down until a run is cheap enough; None where that fails.

    Dims with a few allowed sizes stay as they are.
    """
    found = dict(sizes)
    steps = {
        dim: math.lcm(_ALIGNMENT, *_own(operation, blocks, dim))
        for dim in found
        if dim not in operation.sizes
    }
    while _too_large(operation, found, blocks):
        smaller = {
            dim: least
            for dim, step in steps.items()
            if (least := _cut(found[dim], step, dim in operation.tiled)) < found[dim]
        }
        if not smaller:
            return None
        largest = max(smaller, key=lambda dim: (found[dim] / smaller[dim], dim))
        found[largest] = smaller[largest]
    return found


def _cut(size: int, step: int, tiled: bool) -> int:
    """About half the size with the same remainder by `step`, of a tiled dim above two steps."""
    least = size % step + (2 * step if tiled else 0)
    if least < 2:
        least += step
    half = size // 2 - (size // 2 - size) % step
    return min(size, max(least, half))


def _too_large(
    operation: Operation, sizes: Mapping[str, int], blocks: Mapping[str, Sequence[int]]
) -> bool:
    tiles = math.prod(
        math.ceil(size / max(_own(operation, blocks, dim) or (1,))) for dim, size in sizes.items()
    )
    specs = (*operation.tensors, *operation.outputs)
    elements = sum(math.prod(spec.shape(sizes)) for spec in specs)
    return tiles > _MOST_TILES or elements > _MOST_ELEMENTS


def _own(operation: Operation, blocks: Mapping[str, Sequence[int]], dim: str) -> tuple[int, ...]:
    """The block sizes of a dim; a dim that no kernel cuts has none."""
    if blocks.get(dim):
        return tuple(blocks[dim])
    return (DEFAULT_BLOCK,) if dim in operation.tiled else ()


def _misfit(operation: Operation, shape: Logged) -> str:
    """Why the shape is none of this operation, which may have changed since it was logged."""
    for what, needed, given in (
        ("dims", operation.dims, [name for name, _ in shape.dims]),
        ("scalars", [spec.name for spec in operation.scalars], [name for name, _ in shape.scalars]),
    ):
        if sorted(needed) != sorted(given):
            return f"{operation.name} has {what} {', '.join(needed) or 'none'}"
    tensors = [spec.name for spec in operation.tensors]
    for name in split_layout(shape.layout)[1]:
        if name not in tensors:
            return f"{operation.name} has no tensor {name}"
    for name in shape.absent:
        if name not in operation.optional:
            return f"{operation.name} has no optional tensor {name}"
    for dim, size in shape.dims:
        if size < 1 and dim not in operation.empty:
            return f"{dim} of {operation.name} may not be 0"
    return ""


def _recipes(operation: Operation) -> tuple[str, ...]:
    own = tuple(recipe for recipe in RECIPES_OF_LOGGED if recipe in operation.recipes)
    return own or operation.recipes[:1]
