"""The declared domain, swept by size: for finding out what a launcher can launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatecert.oracle.case import Case
from gatecert.oracle.cases import make_case, subsets
from gatecert.oracle.schema import Operation
from gatecert.oracle.strategies import FAR_SPAN

_LARGEST_POWER = 12
_TOGETHER = (1, 2, 16, 17, 64, 65, 128, 257)
_SMALL = 33
"""Size of a tiled dim while another one is swept: odd, and more than most small blocks."""


def domain_cases(
    operation: Operation,
    *,
    dtypes: Sequence[str],
    layouts: Sequence[str] = ("contiguous",),
    extra_dims: Mapping[str, tuple[int, ...]] | None = None,
    seed: int = 0,
) -> tuple[Case, ...]:
    """Per dtype a small case to run for real, then sizes over the domain to launch dry.

    Every tiled dim takes 1, each power of two up to 4096 and the number after it, while the
    others stay small; dims with a few allowed sizes take each of them; a team's own sizes are
    added. All tiled dims also grow together up to 257, and every layout is launched at a small
    and an aligned size with drawn scalars. Launchers that choose by size, shape, layout or
    scalar show their choices up to there.
    """
    extra = dict(extra_dims or {})
    small = {dim: _small(operation, dim, extra) for dim in operation.dims}
    shapes = [small]
    powers = [2**power for power in range(_LARGEST_POWER + 1)]
    around = sorted({size for power in powers for size in (power, power + 1)})
    for dim in operation.dims:
        listed = list(extra.get(dim, ()))
        if dim in operation.sizes:
            swept = listed or list(operation.sizes[dim])
        else:
            swept = listed + (around if dim in operation.tiled else [1])
        shapes += [{**small, dim: size} for size in swept]
    together = [{**small, **dict.fromkeys(operation.tiled, size)} for size in _TOGETHER]
    cases = [
        make_case(operation, sizes, dtype=dtype, turn=0, seed=seed)
        for dtype in dtypes
        for sizes in (*shapes, *together)
    ]
    cases += [
        make_case(operation, sizes, dtype=dtype, layout=layout, turn=turn, seed=seed)
        for dtype in dtypes
        for layout in layouts
        if layout != FAR_SPAN  # its strides are typed as others are
        for turn, sizes in enumerate((small, *together))
    ]
    # An argument that is not given is another signature: constants take its place.
    cases += [
        make_case(operation, sizes, dtype=dtype, turn=0, seed=seed, absent=absent)
        for absent in subsets(operation.optional)
        for dtype in dtypes
        for sizes in (small, *together)
    ]
    return tuple(dict.fromkeys(cases))


def _small(operation: Operation, dim: str, extra: Mapping[str, tuple[int, ...]]) -> int:
    if dim in operation.sizes:
        return (extra.get(dim) or operation.sizes[dim])[0]
    return _SMALL if dim in operation.tiled else 2
