"""Strategies: which shapes and values a gate tries, as data.

A strategy is a list of steps, likely killers first. A step says how large the tiled dims are
and which recipe fills the tensors; layouts, scalars, head sizes and batch sizes turn from
case to case, so that each appears without a full product.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.layouts import LAYOUTS
from gatecert.oracle.schema import Operation, ScalarSpec
from gatecert.oracle.shapes import DEFAULT_BLOCK, distinct, size_of
from gatecert.oracle.streams import Stream

_BATCH_SIZES = (3, 2, 5, 4, 2, 1)
_BATCH_AND_HEADS = (2, 3, 1)
"""Sizes where several batch dims multiply: an interpreted program costs about a millisecond."""
_BATCH_KINDS = ("above", "below", "several_tail", "above", "one")
"""Size kinds of a batch dim whose block size is given."""
_TAILS_APART = "tails_apart"
_LONG_APART = "long_apart"
_WIDE_APART = "wide_apart"
_LONG = 1025
"""One more than the largest block that launchers of one block per row usually allow."""
_LONG_SQUARED = 257
"""The same where work grows with the square of the size."""
_WIDE = 33
"""A batch that no small fixed grid covers."""


@dataclass(frozen=True, slots=True)
class Step:
    """Size kind of the tiled dims (see `shapes.SIZE_KINDS`) and a recipe.

    The kind `tails_apart` makes one case per tiled dim: that dim has a tail, the others are
    whole blocks. `long_apart` makes one case per tiled dim, in which it is long, and
    `wide_apart` one per batch dim, of size 33; all other dims are as small as may be.
    """

    sizes: str
    recipe: str


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named list of steps, each taken in every dtype.

    `costly` steps come last, and each of their cases in one dtype, in turn. `extra_dims` says
    whether a team's own sizes are added.
    """

    name: str
    summary: str
    steps: tuple[Step, ...]
    costly: tuple[Step, ...] = ()
    extra_dims: bool = True


def _steps(*pairs: tuple[str, str]) -> tuple[Step, ...]:
    return tuple(Step(sizes, recipe) for sizes, recipe in pairs)


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "certify",
            "tails, several blocks and every recipe: what the oracle runs",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("several_tail", "rising"),
                ("several_tail", "spike"),
                ("several_tail", "near_zero"),
                ("above", "large_offset"),
                (_TAILS_APART, "normal"),
                ("prime", "ties"),
                ("below", "uniform10"),
                ("several", "log_uniform"),
                ("several_tail", "ternary"),
                ("short", "falling"),
                ("one", "normal"),
                ("two", "one_hot"),
                ("block", "uniform01"),
                ("above", "subnormal"),
                ("above", "huge"),
                ("several_tail", "masked_rows"),
                ("several_tail", "nonfinite"),
            ),
            # Along a rising row the last element weighs most.
            costly=_steps((_LONG_APART, "rising"), (_WIDE_APART, "normal")),
        ),
        Strategy(
            "quick",
            "the four cases that kill most",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("several_tail", "rising"),
                ("several_tail", "near_zero"),
            ),
            extra_dims=False,
        ),
        Strategy(
            "default",
            "regular and boundary shapes, ordinary values",
            _steps(
                ("several", "normal"),
                ("several_tail", "normal"),
                ("block", "uniform01"),
                ("below", "normal"),
                ("above", "uniform01"),
                ("one", "normal"),
            ),
        ),
        Strategy(
            "regular",
            "whole blocks only, ordinary values",
            _steps(("block", "normal"), ("several", "normal"), ("block", "uniform01")),
        ),
        Strategy(
            "boundary",
            "every size around a block, ordinary values",
            _steps(
                ("one", "normal"),
                ("two", "normal"),
                ("short", "normal"),
                ("below", "normal"),
                ("block", "normal"),
                ("above", "normal"),
                ("several_tail", "normal"),
                (_TAILS_APART, "normal"),
                ("prime", "normal"),
            ),
        ),
    )
}


def get_strategy(name: str) -> Strategy:
    """The strategy called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    near = difflib.get_close_matches(name, STRATEGIES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(STRATEGIES)}"
    raise UsageError(f"unknown strategy {name!r}; {hint}")


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
    layouts = _usable_layouts(operation, layouts)
    _check(operation, dtypes, {**(blocks or {}), **(extra_dims or {})})
    shapes = list(_shapes(operation, plan, blocks or {}, extra_dims or {}))
    costly = list(_costly_shapes(operation, plan, extra_dims or {}))
    ranked = [(turn, *shape) for turn in range(len(dtypes)) for shape in enumerate(shapes)]
    ranked += [(0, *shape) for shape in enumerate(costly)]
    cases = []
    for turn, rank, (sizes, recipe) in ranked:
        at = (rank + turn) % len(dtypes)
        cases.append(
            make_case(
                operation,
                sizes,
                dtype=dtypes[at],
                layout=layouts[(rank + at) % len(layouts)],
                recipe=recipe,
                turn=rank,
                seed=seed,
            )
        )
    return tuple(dict.fromkeys(cases))


def make_case(
    operation: Operation,
    sizes: Mapping[str, int],
    *,
    dtype: str,
    layout: str = "contiguous",
    recipe: str = "normal",
    turn: int = 0,
    seed: int = 0,
) -> Case:
    """A case with drawn scalars: their defaults on every even turn."""
    return Case(
        operation=operation.name,
        dims=tuple((dim, sizes[dim]) for dim in operation.dims),
        dtype=dtype,
        layout=layout,
        recipe=recipe,
        scalars=tuple((spec.name, _draw(spec, turn, seed)) for spec in operation.scalars),
        seed=seed,
    )


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


def _costly_shapes(
    operation: Operation, plan: Strategy, extra: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[dict[str, int], str]]:
    """(sizes, recipe) of every case that comes in one dtype only."""
    limited = {dim: min(extra.get(dim) or sizes) for dim, sizes in operation.sizes.items()}
    batch = [dim for dim in operation.dims if dim not in {*operation.tiled, *limited}]
    tiled = [dim for dim in operation.tiled if dim not in limited]
    for step in plan.costly if operation.recipes else ():
        long = step.sizes == _LONG_APART
        # Two of a tiled dim show its stride; a short row of three has a tail.
        small = {**dict.fromkeys(batch, 1), **dict.fromkeys(tiled, 2 if long else 3), **limited}
        recipe = step.recipe if step.recipe in operation.recipes else operation.recipes[0]
        for dim in tiled if long else batch:
            yield {**small, dim: _long(operation, dim) if long else _WIDE}, recipe


def _long(operation: Operation, dim: str) -> int:
    """1025, but for a contraction along a dim that its output keeps, as causal attention's."""
    kept = any(dim in spec.named_dims for spec in operation.outputs)
    reduced = operation.reduction_length({**dict.fromkeys(operation.dims, 1), dim: 2}) > 1
    return _LONG_SQUARED if operation.contraction and kept and reduced else _LONG


def _kinds(operation: Operation, step: Step) -> list[dict[str, str]]:
    if step.sizes != _TAILS_APART:
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
    if spec.default is not None and turn % 2 == 0:
        return spec.default
    low, high = spec.scalar.low, spec.scalar.high
    share = float(Stream(f"{spec.name}/{turn}/{seed}").uniform(()))
    if spec.scalar.integer:
        return float(min(int(low + (high + 1 - low) * share), int(high)))
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
