"""What a mutant's reveal tags call for: values on the axes of a subject's domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from gatecert.operators.records import Reveal
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.layouts import split_layout
from gatecert.oracle.strategies import OF_THEIR_OWN
from gatecert.witness.space import Assignment, Space, dim_axis

Calls: TypeAlias = Callable[[Space], Iterator[Assignment]]

_PAST_16_BITS = 2**15
_TURNED = ("transposed", "inner_transposed")
_LONG, _LONG_SQUARED = 1025, 257
_WIDE = 33
_MANY_BLOCKS = (3, 5, 8)


def called_for(reveal: Iterable[Reveal], space: Space) -> tuple[Assignment, ...]:
    """Values that the tags call for, each by itself; those of several tags take turns."""
    by_tag = [tuple(_CALLS[tag](space)) for tag in reveal if tag in _CALLS]
    rows = itertools.zip_longest(*by_tag)
    found = [assignment for row in rows for assignment in row if assignment is not None]
    return tuple(assignment for at, assignment in enumerate(found) if assignment not in found[:at])


def _recipes(*names: str) -> Calls:
    def calls(space: Space) -> Iterator[Assignment]:
        known = space.axes.get("recipe", ())
        yield from ({"recipe": name} for name in names if name in known)

    return calls


def _sizes(size: Callable[[int], Iterable[int]], *, tiled: bool = True) -> Calls:
    """Sizes of each dim that is cut into blocks (or else of the others), by its block."""

    def calls(space: Space) -> Iterator[Assignment]:
        for dim in space.open_dims:
            block = space.blocks[dim]
            if (block > 1) == tiled:
                yield from ({dim_axis(dim): one} for one in size(block) if one > 0)

    return calls


def _strided(space: Space) -> Iterator[Assignment]:
    yield from ({"layout": x} for x in space.axes.get("layout", ()) if x != "contiguous")


def _large_span(space: Space) -> Iterator[Assignment]:
    """Layouts of far strides, and sizes that make an index times a stride leave 16 bits.

    A stride that no layout makes far is a product of sizes: of the last dims, or where tensors are
    transposed, of the first ones.
    """
    layouts = [str(name) for name in space.axes.get("layout", ())]
    yield from ({"layout": name} for name in layouts if split_layout(name)[0] in OF_THEIR_OWN)
    products = list(_products(space))
    yield from products
    for layout in _TURNED:
        if layout in layouts:
            yield from ({**product, "layout": layout} for product in products)


def _products(space: Space) -> Iterator[Assignment]:
    """Sizes of one dim and of two whose product is just past 16 bits, and few of all else."""
    dims = space.open_dims
    yield from ({dim_axis(dim): _LONG_SQUARED} for dim in dims)
    for one, other in itertools.permutations(dims, 2):
        # A second tile, or index, at that many places from the first.
        tile = max(1, space.blocks[other])
        yield {dim_axis(one): _PAST_16_BITS // tile + 1, dim_axis(other): tile + 1}
    for size in (_WIDE, _LONG_SQUARED):
        for one, other in itertools.permutations(dims, 2):
            yield {dim_axis(one): _PAST_16_BITS // size + 1, dim_axis(other): size}
    yield from ({dim_axis(dim): _PAST_16_BITS + 1} for dim in dims)
    for few in space.operation.sizes:
        sizes = space.axes.get(dim_axis(few), (0,))
        # Their last index at that many places from the first, or rows of their size.
        for dim in dims:
            for size in dict.fromkeys((max(sizes) - 1, max(sizes))):
                if size > 0:
                    yield {dim_axis(few): max(sizes), dim_axis(dim): _PAST_16_BITS // size + 1}


def _non_default(space: Space) -> Iterator[Assignment]:
    for axis, values in space.axes.items():
        if axis == "absent" or axis.startswith("scalar "):
            yield from ({axis: value} for value in values)


def _half(space: Space) -> Iterator[Assignment]:
    for dtype in space.axes.get("dtype", ()):
        if FORMATS[dtype].precision < FORMATS["float32"].precision:
            yield {"dtype": dtype}


def _non_square(space: Space) -> Iterator[Assignment]:
    for one, other in itertools.permutations(space.open_dims, 2):
        yield {dim_axis(one): 3, dim_axis(other): 2 * max(1, space.blocks[other]) + 3}


def _together(*parts: Calls) -> Calls:
    def calls(space: Space) -> Iterator[Assignment]:
        for part in parts:
            yield from part(space)

    return calls


_CALLS: Mapping[Reveal, Calls] = {
    Reveal.TAIL: _sizes(lambda b: (b + 1, 2 * b + 1, b - 1, b + b // 2 + 1)),
    Reveal.SHORT: _sizes(lambda b: (1, 2, b // 4 + 1)),
    Reveal.SEVERAL_BLOCKS: _sizes(
        lambda b: (n * b + extra for n in _MANY_BLOCKS for extra in (0, 1))
    ),
    Reveal.ALL_NEGATIVE: _recipes("all_negative", "far_below"),
    Reveal.NEGATIVE: _recipes("normal", "uniform10", "all_negative"),
    Reveal.RISING: _recipes("rising", "falling", "spike"),
    Reveal.LARGE_MAGNITUDE: _recipes("huge", "spike", "uniform10", "log_uniform", "far_below"),
    Reveal.LARGE_OFFSET: _recipes("large_offset", "spike", "far_below"),
    Reveal.NEAR_ZERO: _recipes("near_zero", "subnormal", "ties"),
    Reveal.SEVERAL_ROWS: _sizes(lambda b: (2, 3, 5, 17), tiled=False),
    Reveal.NON_SQUARE: _non_square,
    Reveal.MASKED_ROWS: _recipes("masked_rows", "nonfinite", "ties", "spike"),
    Reveal.STRIDED: _strided,
    Reveal.NON_DEFAULT: _non_default,
    Reveal.LARGE_SPAN: _large_span,
    Reveal.HALF_PRECISION: _half,
    Reveal.LONG: _sizes(lambda b: (_LONG_SQUARED, _LONG)),
    Reveal.SEVERAL_PROGRAMS: _together(
        _sizes(lambda b: (_WIDE, 65), tiled=False), _sizes(lambda b: (4 * b, 8 * b + 1))
    ),
    Reveal.REPEATED_INDICES: _together(
        _sizes(lambda b: (1, 2), tiled=False), _sizes(lambda b: (2 * b + 1, _LONG_SQUARED))
    ),
}
"""What each tag calls for; `any` calls for nothing in particular."""
