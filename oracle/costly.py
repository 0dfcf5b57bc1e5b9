"""Shapes that come once, in one dtype: long, wide, and far enough for 16-bit offsets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from gatecert.oracle.schema import Operation
from gatecert.oracle.strategies import FAR, FAR_SPAN, LONG_APART, LONG_LAST, SPREAD, Step, Strategy

_LONG = 1025
"""One more than the largest block that launchers of one block per row usually allow."""
_LONG_SQUARED = 257
"""The same where work grows with the square of the size."""
_WIDE = 33
"""A batch that no small fixed grid covers."""
_HALF_LONG = 129
"""A second dim beside one of 257: their product leaves 16 bits."""
_TALL, _SHORT = 513, 65
"""As many columns as a tile has, and so many rows that these lie 2^15 places apart."""
_PAST_16_BITS = 2**15
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
        long = step.sizes in (LONG_APART, LONG_LAST)
        # Two of a tiled dim show its stride; a short row of three has a tail.
        few = _WIDE if step.sizes == LONG_LAST else 2 if long else 3
        small = {**dict.fromkeys(batch, 1), **dict.fromkeys(tiled, few), **limited}
        recipe = step.recipe if step.recipe in operation.recipes else operation.recipes[0]
        if step.sizes == FAR_SPAN:
            yield from _far_spans(operation, {**small, **dict.fromkeys(tiled, 3)}, recipe)
        elif step.sizes == SPREAD:
            yield _spread_sizes(operation, blocks, extra), recipe, step.layout
        elif step.sizes == FAR:
            yield from _far(operation, small, _largest(operation, extra), step, recipe)
        else:
            apart = tiled[-1:] if step.sizes == LONG_LAST else tiled
            for dim in apart if long else batch:
                yield {**small, dim: _long(operation, dim) if long else _WIDE}, recipe, ""


def _far(
    operation: Operation,
    small: Mapping[str, int],
    largest: Mapping[str, int],
    step: Step,
    recipe: str,
) -> Iterator[tuple[dict[str, int], str, str]]:
    """Many places in the output and in what launchers allocate, whose strides are products of
    sizes: the case with strides of the caller's own is the spread one."""
    tiled = [dim for dim in operation.tiled if dim not in operation.sizes]
    batch = [dim for dim in operation.dims if dim not in {*operation.tiled, *operation.sizes}]
    if not tiled:
        return
    flat = len(operation.tensors[0].dims) <= 2 and not (operation.contraction and batch)
    turned = step.layout == "transposed"
    if not flat:
        long_dim = tiled[0] if turned else tiled[-1]
        size = _LONG_SQUARED if len(tiled) > 1 else _long(operation, long_dim)
        sizes = {**dict.fromkeys(batch, 2), **dict.fromkeys(tiled, _HALF_LONG), long_dim: size}
        sizes = {**small, **largest, **sizes}
        places = max(math.prod(spec.shape(sizes)) for spec in operation.tensors)
        if batch:
            sizes[batch[-1]] *= 1 + _PAST_16_BITS // (places + 1)
        yield sizes, recipe, step.layout
        return
    wide, long_dim = (*batch, *tiled)[0], tiled[-1]
    if wide == long_dim or _long(operation, long_dim) != _LONG:
        return
    # Where it is columns that lie apart, a tile of them must reach far.
    rows, columns = (_TALL, _SHORT) if turned else (_WIDE, _LONG)
    yield {**small, wide: rows, long_dim: columns}, recipe, step.layout


def _largest(operation: Operation, extra: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Dims with a few allowed sizes at their largest."""
    return {dim: max(extra.get(dim) or sizes) for dim, sizes in operation.sizes.items()}


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
