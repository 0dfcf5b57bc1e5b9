"""Shapes that come once, in one dtype: long, wide, and far enough for 16-bit offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gatecert.oracle.schema import Operation
from gatecert.oracle.strategies import FAR, FAR_SPAN, LONG_APART, SPREAD, Strategy

_LONG = 1025
"""One more than the largest block that launchers of one block per row usually allow."""
_LONG_SQUARED = 257
"""The same where work grows with the square of the size."""
_WIDE = 33
"""A batch that no small fixed grid covers."""
_ENOUGH = 16
"""Size of a dim whose last index, spread, is past 2^15."""


def costly_shapes(
    operation: Operation,
    plan: Strategy,
    blocks: Mapping[str, tuple[int, ...]],
    extra: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[dict[str, int], str, str]]:
    """(sizes, recipe, layout) of every case that comes in one dtype only; layout "": any."""
    limited = {dim: min(extra.get(dim) or sizes) for dim, sizes in operation.sizes.items()}
    batch = [dim for dim in operation.dims if dim not in {*operation.tiled, *limited}]
    tiled = [dim for dim in operation.tiled if dim not in limited]
    for step in plan.costly if operation.recipes else ():
        if step.only_if_listed and step.recipe not in operation.recipes:
            continue
        long = step.sizes == LONG_APART
        # Two of a tiled dim show its stride; a short row of three has a tail.
        small = {**dict.fromkeys(batch, 1), **dict.fromkeys(tiled, 2 if long else 3), **limited}
        recipe = step.recipe if step.recipe in operation.recipes else operation.recipes[0]
        if step.sizes == FAR_SPAN:
            yield from _far_spans(operation, {**small, **dict.fromkeys(tiled, 3)}, recipe)
        elif step.sizes == SPREAD:
            yield _spread_sizes(operation, blocks, extra), recipe, step.layout
        elif step.sizes == FAR:
            if not tiled:
                continue
            wide, long_dim = (*batch, *tiled)[0], tiled[-1]
            # Where tensors have more dims, launchers are given strides: see the spread case.
            flat = len(operation.tensors[0].dims) <= 2 and not (operation.contraction and batch)
            if flat and wide != long_dim and _long(operation, long_dim) == _LONG:
                yield {**small, wide: _WIDE, long_dim: _LONG}, recipe, step.layout
        else:
            for dim in tiled if long else batch:
                yield {**small, dim: _long(operation, dim) if long else _WIDE}, recipe, ""


def _far_spans(
    operation: Operation, small: Mapping[str, int], recipe: str
) -> Iterator[tuple[dict[str, int], str, str]]:
    """Per tensor a case in which it alone spans past 2^31, from its third index on."""
    for spec in operation.tensors:
        first = spec.dims[0] if len(spec.dims) > 1 else ""
        if first in operation.dims:
            yield {**small, first: max(3, small[first])}, recipe, f"{FAR_SPAN}:{spec.name}"


def _spread_sizes(
    operation: Operation,
    blocks: Mapping[str, tuple[int, ...]],
    extra: Mapping[str, tuple[int, ...]],
) -> dict[str, int]:
    """Small, but every last index times its stride leaves 16 bits.

    Matrices are more than a block in each dim and more than two in the last one that is tiled: a
    second tile read at the wrong place is then wrong in all lanes.
    """
    flat = len(operation.tensors[0].dims) <= 2
    innermost = {
        name for spec in operation.tensors if spec.index is None for name in spec.named_dims[-1:]
    }
    found = {}
    for dim in operation.dims:
        if dim in operation.sizes:
            allowed = sorted(extra.get(dim) or operation.sizes[dim])
            found[dim] = next((size for size in allowed if size >= _ENOUGH), allowed[-1])
        elif dim in operation.tiled:
            block = max(blocks.get(dim, ()), default=0)
            tiles = 2 if dim == operation.tiled[-1] else 1
            found[dim] = max(_WIDE, tiles * (block + 1)) if flat else _WIDE
        else:
            found[dim] = _ENOUGH if dim in innermost else 2
    return found


def _long(operation: Operation, dim: str) -> int:
    """1025, but for a contraction along a dim that its output keeps: no block holds all of it."""
    kept = any(dim in spec.named_dims for spec in operation.outputs)
    return _LONG_SQUARED if operation.contraction and kept else _LONG
