"""Every size up to a bound, all dims at once: where a mask, a bound or an index is wrong, a wrong
case is a small one, and no difference over all small ones says more than any sample.

It is still no proof of equivalence, and is never called one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Sequence

from gatecert.operators.records import Reveal
from gatecert.oracle.case import Case
from gatecert.witness.space import Space, changed, dim_axis

MOST_CASES = 256
_ABOUT_SIZES = frozenset(
    {
        Reveal.TAIL,
        Reveal.SHORT,
        Reveal.SEVERAL_BLOCKS,
        Reveal.SEVERAL_ROWS,
        Reveal.NON_SQUARE,
        Reveal.SEVERAL_PROGRAMS,
    }
)


def is_about_sizes(reveal: Collection[Reveal]) -> bool:
    """Do the tags call for sizes, as those of masks, bounds and indices do?"""
    return not _ABOUT_SIZES.isdisjoint(reveal)


def largest_bound(space: Space, most: int = MOST_CASES) -> int:
    """The largest D such that all dims of any size up to D, with every allowed size of the others,
    make no more than so many cases; 0 where there is none."""
    others = math.prod(len(_allowed(space, dim)) for dim in _fixed(space))
    count = len(space.open_dims)
    if not count or others > most:
        return 0
    bound = int((most / others) ** (1 / count))
    return bound + 1 if others * (bound + 1) ** count <= most else bound


def small_domain(space: Space, own: Sequence[Case], bound: int) -> Iterator[Case]:
    """All those cases, smallest first, with everything else as in the first of the gate's own."""
    open_dims, fixed = space.open_dims, _fixed(space)
    choices: list[Sequence[int]] = [range(1, bound + 1)] * len(open_dims)
    choices += [_allowed(space, dim) for dim in fixed]
    every = itertools.product(*choices)
    for sizes in sorted(every, key=lambda some: (math.prod(some), some)):
        axes = map(dim_axis, (*open_dims, *fixed))
        yield changed(space.operation, own[0], dict(zip(axes, sizes, strict=True)))


def _fixed(space: Space) -> tuple[str, ...]:
    return tuple(dim for dim in space.operation.dims if dim in space.operation.sizes)


def _allowed(space: Space, dim: str) -> Sequence[int]:
    return space.axes.get(dim_axis(dim)) or space.operation.sizes[dim][:1]
