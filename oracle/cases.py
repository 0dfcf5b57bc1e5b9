"""The cases of a strategy for one operation.

Layouts, the tensors that take them, scalars, head sizes and batch sizes turn from case to case,
so that each appears without a full product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.costly import costly_shapes
from gatecert.oracle.exact import pinned_scalars
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.layouts import LAYOUTS, split_layout
from gatecert.oracle.partial_layouts import PartialLayouts
from gatecert.oracle.schema import Operation, ScalarSpec
from gatecert.oracle.shapes import DEFAULT_BLOCK, distinct, size_of
from gatecert.oracle.strategies import (
    LISTED,
    OF_THEIR_OWN,
    TAILS_APART,
    Step,
    Strategy,
    get_strategy,
)
from gatecert.oracle.streams import Stream
from gatecert.oracle.values import RECIPES

_MOST_SUBSETS = 3
_BATCH_SIZES = (3, 2, 5, 4, 2, 1)
_BATCH_AND_HEADS = (2, 3, 1)
"""Sizes where several batch dims multiply: an interpreted program costs about a millisecond."""
_BATCH_KINDS = ("above", "below", "several_tail", "above", "one")
"""Size kinds of a batch dim whose block size is given."""


def cases_for(
    operation: Operation,
    *,
    dtypes: Sequence[str],
    layouts: Sequence[str] = ("contiguous",),
    blocks: Mapping[str, tuple[int, ...]] | None = None,
    extra_dims: Mapping[str, tuple[int, ...]] | None = None,
    strategy: str = "certify",
    seed: int = 0,
) -> tuple[Case, ...]:
    """The cases of a strategy, likely killers first.

    `blocks` holds block sizes per tiled dim (several: the cases take turns), `extra_dims`
    sizes of the team's own: added for an open dim, and in place of the built-in choice for a
    dim with a few allowed sizes (head sizes). Each step comes once in every dtype, a costly one
    in one dtype; the dtypes rotate, so that the first cases cover them all.

    Raises:
        UsageError: an unknown strategy, dtype, layout or dim.
    """
    plan = get_strategy(strategy)
    dtypes = plan.of(dtypes)
    if not dtypes or (plan.exact and operation.exact is None):
        return ()
    layouts = _usable_layouts(operation, layouts)
    _check(operation, dtypes, {**(blocks or {}), **(extra_dims or {})})
    check_sizes(operation, extra_dims or {})
    shapes = list(_shapes(operation, plan, blocks or {}, extra_dims or {}))
    costly = [
        (sizes, recipe, layout)
        for sizes, recipe, layout in costly_shapes(operation, plan, blocks or {}, extra_dims or {})
        if split_layout(layout)[0] in ("", *layouts)
    ]
    ordinary = [layout for layout in layouts if layout not in OF_THEIR_OWN] or ["contiguous"]
    ranked = [
        (turn, rank, (sizes, recipe, ""))
        for turn in range(len(dtypes))
        for rank, (sizes, recipe) in enumerate(shapes)
    ]
    ranked += [(0, rank, shape) for rank, shape in enumerate(costly)]
    partial = PartialLayouts(operation)
    cases = []
    for turn, rank, (sizes, recipe, layout) in ranked:
        some = _narrowest(dtypes) if RECIPES[recipe].narrow else dtypes
        at = (rank + turn) % len(some)
        dealt = partial.deal(ordinary[(rank + at) % len(ordinary)], some[at], sizes)
        cases.append(
            make_case(
                operation,
                sizes,
                dtype=some[at],
                layout=layout or dealt,
                recipe=recipe,
                turn=rank + turn,
                seed=seed,
            )
        )
    return tuple(dict.fromkeys(cases))


def why_no_case(operation: Operation, strategy: str, *, dtypes: Sequence[str]) -> str | None:
    """Why a strategy has no case for an operation in these dtypes, or None where it has some."""
    plan = get_strategy(strategy)
    if not plan.of(dtypes):
        return f"strategy {strategy!r} is of {', '.join(plan.dtypes)} alone"
    if plan.exact and operation.exact is None:
        return f"operation {operation.name!r} is neither linear nor selecting: none of it is exact"
    if not cases_for(operation, dtypes=dtypes, strategy=strategy):
        recipes = ", ".join(dict.fromkeys(step.recipe for step in plan.steps))
        return f"the domain of operation {operation.name!r} has none of the recipes {recipes}"
    return None


def make_case(
    operation: Operation,
    sizes: Mapping[str, int],
    *,
    dtype: str,
    layout: str = "contiguous",
    recipe: str = "normal",
    turn: int = 0,
    seed: int = 0,
    absent: tuple[str, ...] | None = None,
) -> Case:
    """A case with drawn scalars: their defaults on every even turn, but those of exact mode.

    Optional arguments are left out in turns too, unless `absent` says which.
    """
    pinned = pinned_scalars(operation, recipe)
    return Case(
        operation=operation.name,
        dims=tuple((dim, sizes[dim]) for dim in operation.dims),
        dtype=dtype,
        layout=layout,
        recipe=recipe,
        scalars=tuple(
            (spec.name, pinned.get(spec.name, _draw(spec, turn, seed)))
            for spec in operation.scalars
        ),
        seed=seed,
        absent=_left_out(operation, turn) if absent is None else absent,
    )


def _narrowest(dtypes: Sequence[str]) -> Sequence[str]:
    """Those of fewer bits than float32; all where there is none."""
    return [dtype for dtype in dtypes if FORMATS[dtype].precision < 24] or dtypes


def _left_out(operation: Operation, turn: int) -> tuple[str, ...]:
    """Optional arguments that a case lacks: none, then every set of them, each in two turns."""
    sets = ((), *subsets(operation.optional))
    return sets[turn // 2 % len(sets)]


def subsets(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """All sets of one name and more where they are few; else each alone, and all."""
    if len(names) > _MOST_SUBSETS:
        return (*((name,) for name in names), tuple(names))
    counts = range(1, len(names) + 1)
    return tuple(found for count in counts for found in itertools.combinations(names, count))


def _shapes(
    operation: Operation,
    plan: Strategy,
    blocks: Mapping[str, tuple[int, ...]],
    extra: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[dict[str, int], str]]:
    """(sizes, recipe) of every case of one dtype, in order."""
    rank = 0
    for step in plan.steps:
        if step.recipe not in operation.recipes:
            continue
        if step.sizes == LISTED:
            for own in _listed(extra):
                kinds = dict.fromkeys(operation.tiled, "short")
                yield {**_sizes(operation, kinds, blocks, {}, rank), **own}, step.recipe
                rank += 1
            continue
        for kinds in _kinds(operation, step):
            yield _sizes(operation, kinds, blocks, extra, rank), step.recipe
            rank += 1
    if not plan.extra_dims:
        return
    for dim, listed in extra.items():
        if dim in operation.sizes:
            continue
        for size in listed:
            kinds = dict.fromkeys(operation.tiled, "short")
            # One-sided values too: a lost part of a sum of signed values is small.
            for recipe in ("normal", "large_offset"):
                if recipe in operation.recipes:
                    yield {**_sizes(operation, kinds, blocks, extra, rank), dim: size}, recipe
                    rank += 1


def _listed(extra: Mapping[str, tuple[int, ...]]) -> Iterator[dict[str, int]]:
    """The first size of every dim together, then the second; a short list starts again."""
    listed = {dim: sizes for dim, sizes in extra.items() if sizes}
    for place in range(max(map(len, listed.values()), default=1)):
        yield {dim: sizes[place % len(sizes)] for dim, sizes in listed.items()}


def _kinds(operation: Operation, step: Step) -> list[dict[str, str]]:
    if step.sizes != TAILS_APART:
        return [dict.fromkeys(operation.tiled, step.sizes)]
    if len(operation.tiled) < 2:
        return []
    return [
        {dim: "several_tail" if dim == tail else "block" for dim in operation.tiled}
        for tail in operation.tiled
    ]


def _sizes(
    operation: Operation,
    kinds: Mapping[str, str],
    blocks: Mapping[str, tuple[int, ...]],
    extra: Mapping[str, tuple[int, ...]],
    rank: int,
) -> dict[str, int]:
    open_dims = [dim for dim in operation.dims if dim not in {*kinds, *operation.sizes}]
    batch = _BATCH_SIZES if len(open_dims) < 2 else _BATCH_AND_HEADS
    sizes = {}
    for place, dim in enumerate(operation.dims):
        if dim in operation.sizes:
            allowed = distinct(extra.get(dim) or operation.sizes[dim])
            sizes[dim] = allowed[rank % len(allowed)]
        elif dim in kinds:
            own = blocks.get(dim) or (DEFAULT_BLOCK,)
            sizes[dim] = size_of(kinds[dim], own[rank % len(own)], stagger=2 * place)
        elif dim in blocks:
            kind = _BATCH_KINDS[rank % len(_BATCH_KINDS)]
            sizes[dim] = size_of(kind, blocks[dim][rank % len(blocks[dim])])
        else:
            sizes[dim] = batch[(rank + place) % len(batch)]
    return sizes


def _draw(spec: ScalarSpec, turn: int, seed: int) -> float:
    if spec.default is not None and turn % 2 == 0 and not spec.scalar.always_drawn:
        return spec.default
    low, high = spec.scalar.low, spec.scalar.high
    share = float(Stream(f"{spec.name}/{turn}/{seed}").uniform(()))
    if spec.scalar.integer:
        least, most = math.ceil(low), math.floor(high)
        return float(min(least + int((most + 1 - least) * share), most))
    drawn = low * (high / low) ** share if spec.scalar.logarithmic else low + (high - low) * share
    # Two digits read well in an id; the range's ends may not be left by rounding.
    return min(max(float(f"{drawn:.2g}"), low), high)


def _usable_layouts(operation: Operation, layouts: Sequence[str]) -> tuple[str, ...]:
    for layout in layouts:
        if layout not in LAYOUTS:
            raise UsageError(f"unknown layout {layout!r}; there are {', '.join(LAYOUTS)}")
    # Rows that share memory cannot be written in place.
    usable = tuple(x for x in layouts if not (x == "expanded" and operation.in_place))
    if not usable:
        raise UsageError(f"operation {operation.name!r}: no layout left of {tuple(layouts)}")
    return usable


def check_sizes(operation: Operation, dims: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse sizes below 1, but for 0 where the operation has a meaning for it.

    Raises:
        UsageError: it names the dim and those that may be empty.
    """
    for dim, sizes in dims.items():
        least = 0 if dim in operation.empty else 1
        if any(size < least for size in sizes):
            may = ", ".join(operation.empty) or "none"
            raise UsageError(
                f"operation {operation.name!r}: dim {dim} cannot be {min(sizes)}; dims of it that "
                f"may be 0: {may}"
            )


def _check(operation: Operation, dtypes: Sequence[str], dims: Mapping[str, object]) -> None:
    for dtype in dtypes:
        if dtype not in FORMATS:
            raise UsageError(f"unknown dtype {dtype!r}; there are {', '.join(FORMATS)}")
    for dim in dims:
        if dim not in operation.dims:
            raise UsageError(
                f"operation {operation.name!r} has no dim {dim!r}; it has "
                f"{', '.join(operation.dims)}"
            )
