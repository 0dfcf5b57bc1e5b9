"""The declared domain, swept by size: for finding out what a launcher can launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatecert.oracle.case import Case
from gatecert.oracle.schema import Operation
from gatecert.oracle.strategies import make_case

_LARGEST_POWER = 12
_SMALL = 33
"""Size of a tiled dim while another one is swept: odd, and more than most small blocks."""


def domain_cases(
    operation: Operation,
    *,
    dtypes: Sequence[str],
    extra_dims: Mapping[str, tuple[int, ...]] | None = None,
    seed: int = 0,
) -> tuple[Case, ...]:
    """Per dtype a small case to run for real, then sizes over the domain to launch dry.

    Every tiled dim takes 1, each power of two up to 4096 and the number after it, while the
    others stay small; dims with a few allowed sizes take each of them; a team's own sizes are
    added. Launchers that choose a block size by size show every choice up to there.
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
    cases = (
        make_case(operation, sizes, dtype=dtype, turn=0, seed=seed)
        for dtype in dtypes
        for sizes in shapes
    )
    return tuple(dict.fromkeys(cases))


def _small(operation: Operation, dim: str, extra: Mapping[str, tuple[int, ...]]) -> int:
    if dim in operation.sizes:
        return (extra.get(dim) or operation.sizes[dim])[0]
    return _SMALL if dim in operation.tiled else 2
