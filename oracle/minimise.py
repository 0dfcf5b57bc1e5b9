"""Shrink a failing case: dims, arguments, layout, dtype, scalars, recipe, seed, then values.

Own greedy search, since failure is not monotone in a dim (a lost mask fails at 17 and 129, not at
128) and `hypothesis.find` can neither start from the case at hand nor promise to have tried every
smaller size. Each step makes one thing simpler and nothing else larger, so the search ends; it
draws nothing at random, so equal budgets in runs give equal answers.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from gatecert.oracle.case import Case
from gatecert.oracle.layouts import split_layout
from gatecert.oracle.schema import Operation, ScalarSpec

_FROM_BELOW = 16
"""So many of the smallest sizes of a dim are tried one by one before halving begins."""
_TOGETHER = 64
"""So many of the smallest shapes are tried, all dims at once."""
_DTYPES = ("float32", "float16", "bfloat16")
"""Simplest first."""


class BudgetSpent(Exception):
    """No further run is allowed."""


@dataclass
class Budget:
    """How much a search may cost: runs of the kernel, or seconds; None: no bound."""

    runs: int | None = None
    seconds: float | None = None
    used: int = 0
    began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        """The share that is gone."""
        by_runs = self.used / self.runs if self.runs else 0.0
        by_time = (time.monotonic() - self.began) / self.seconds if self.seconds else 0.0
        return max(by_runs, by_time)

    def take(self) -> None:
        """Pay for one run.

        Raises:
            BudgetSpent: nothing is left.
        """
        if self.spent >= 1.0:
            raise BudgetSpent
        self.used += 1


@dataclass(frozen=True, slots=True)
class Space:
    """What a smaller case may be made of: the subject's declared domain."""

    operation: Operation
    dtypes: tuple[str, ...]
    dims: Mapping[str, tuple[int, ...]]
    """Sizes of the team's own, for dims with few allowed ones."""

    def sizes(self, dim: str, below: int) -> Sequence[int]:
        """Sizes of a dim that are smaller, ascending."""
        allowed = self.dims.get(dim) or self.operation.sizes.get(dim)
        if dim in self.operation.sizes and allowed:
            return sorted(size for size in set(allowed) if size < below)
        return range(0 if 0 in (allowed or ()) else 1, below)


class Search:
    """The simplest failing case so far; every case is run once at most."""

    def __init__(self, start: Case, fails: Callable[[Case], bool], budget: Budget) -> None:
        self.best = start
        self.budget = budget
        self._fails = fails
        self._tried: dict[str, bool] = {start.id: True}

    def take(self, case: Case) -> bool:
        """Run a case that is simpler than the best; it takes its place if it fails alike.

        Raises:
            BudgetSpent: the case was not run.
        """
        if case.id not in self._tried:
            self.budget.take()
            self._tried[case.id] = self._fails(case)
        if self._tried[case.id]:
            self.best = case
        return self._tried[case.id]

    def has_run(self, case: Case) -> bool:
        """Whether that case was run."""
        return case.id in self._tried

    def first(self, cases: Iterable[Case]) -> bool:
        """Take the first of the cases that fails."""
        return any(self.take(case) for case in cases)


Step = Callable[[Search, Space], None]


def shrink_structure(search: Search, space: Space) -> None:
    """Everything but values, until no step succeeds; values that are written out keep their dims.

    Raises:
        BudgetSpent: `search.best` is what was reached.
    """
    written = bool(search.best.given)
    steps: tuple[Step, ...] = (_optional, _layout, _dtype, _scalars)
    if not written:
        steps = (_shape, _absent, *steps, _recipe, _seed)
    while True:
        before = search.best.id
        for step in steps:
            step(search, space)
        if search.best.id == before and (written or not _remaining_sizes(search, space)):
            return


def _shape(search: Search, space: Space) -> None:
    search.first(_small_shapes(search.best, space))
    by_size = sorted(search.best.dims, key=lambda dim: -dim[1])
    for dim, _ in by_size:
        _one_dim(search, space, dim)


def _small_shapes(case: Case, space: Space) -> Iterator[Case]:
    """The smallest shapes below the case's, all dims at once."""
    ladders = [
        [*itertools.islice(space.sizes(dim, size), 3), *((size,) if size < 4 else ())]
        for dim, size in case.dims
    ]
    if not all(ladders):
        ladders = [ladder or [size] for ladder, (_, size) in zip(ladders, case.dims, strict=True)]
    now = tuple(size for _, size in case.dims)
    shapes = sorted(set(itertools.product(*ladders)) - {now}, key=lambda s: (math.prod(s), s))
    for shape in shapes[:_TOGETHER]:
        sizes = zip((dim for dim, _ in case.dims), shape, strict=True)
        yield msgspec.structs.replace(case, dims=tuple(sizes))


def _one_dim(search: Search, space: Space, dim: str) -> None:
    """From below one by one, then by halves, then next to powers of two from below."""
    sizes = space.sizes(dim, search.best.sizes[dim])
    if search.first(_with_size(search.best, dim, size) for size in sizes[:_FROM_BELOW]):
        return
    low, high = len(sizes[:_FROM_BELOW]), len(sizes)
    while low < high:
        middle = (low + high) // 2
        if search.take(_with_size(search.best, dim, sizes[middle])):
            high = middle
        else:
            low = middle + 1
    powers = (2**power for power in range(4, 24))
    edges = [size for power in powers for size in (power - 1, power, power + 1)]
    smaller = search.best.sizes[dim]
    search.first(
        _with_size(search.best, dim, size) for size in edges if size < smaller and size in sizes
    )


def _remaining_sizes(search: Search, space: Space) -> bool:
    """Every smaller size of every dim, for at most half of what is left of the budget."""
    until = (1.0 + search.budget.spent) / 2
    for dim, size in search.best.dims:
        for smaller in space.sizes(dim, size):
            if search.budget.spent > until:
                return False
            if search.take(_with_size(search.best, dim, smaller)):
                return True
    return False


def untried_sizes(search: Search, space: Space, case: Case) -> dict[str, int]:
    """By dim how many smaller sizes were not run with all else as in that case."""
    counts = {
        dim: sum(
            not search.has_run(_with_size(case, dim, smaller)) for smaller in space.sizes(dim, size)
        )
        for dim, size in case.dims
    }
    return {dim: count for dim, count in counts.items() if count}


def _with_size(case: Case, dim: str, size: int) -> Case:
    dims = tuple((name, size if name == dim else old) for name, old in case.dims)
    return msgspec.structs.replace(case, dims=dims)


def _absent(search: Search, space: Space) -> None:
    for name in space.operation.optional:
        if name not in search.best.absent:
            absent = {*search.best.absent, name}
            ordered = tuple(one for one in space.operation.optional if one in absent)
            search.take(msgspec.structs.replace(search.best, absent=ordered))


def _optional(search: Search, space: Space) -> None:
    """Without each argument that may be left out."""
    for name in space.operation.optional:
        now = search.best
        fewer = tuple(x for x in space.operation.optional if x == name or x in now.absent)
        if fewer != now.absent:
            given = tuple(pair for pair in now.given if pair[0] != name)
            search.take(msgspec.structs.replace(now, absent=fewer, given=given))


def _layout(search: Search, space: Space) -> None:
    name, takers = split_layout(search.best.layout)
    if name == "contiguous":
        return
    tensors = takers or tuple(spec.name for spec in space.operation.tensors)
    fewer = [f"{name}:{one}" for one in tensors] if len(tensors) > 1 else []
    fewer += [
        f"{name}:{'+'.join(part)}"
        for count in range(2, len(tensors))
        for part in itertools.combinations(tensors, count)
    ][:_TOGETHER]
    search.first(
        msgspec.structs.replace(search.best, layout=layout) for layout in ("contiguous", *fewer)
    )


def _dtype(search: Search, space: Space) -> None:
    simpler = itertools.takewhile(lambda dtype: dtype != search.best.dtype, _DTYPES)
    search.first(
        msgspec.structs.replace(search.best, dtype=dtype)
        for dtype in simpler
        if dtype in space.dtypes
    )


def _scalars(search: Search, space: Space) -> None:
    for spec in space.operation.scalars:
        now = dict(search.best.scalars)[spec.name]
        search.first(
            msgspec.structs.replace(
                search.best,
                scalars=tuple(
                    (name, value if name == spec.name else old) for name, old in search.best.scalars
                ),
            )
            for value in _simpler_numbers(spec, now)
        )


def _simpler_numbers(spec: ScalarSpec, now: float) -> Iterator[float]:
    """The default, then plain numbers of its range, simplest first, up to what it is now."""
    plain = (1.0, 0.0, 2.0, 0.5, -1.0)
    ranked = [value for value in plain if spec.scalar.low <= value <= spec.scalar.high]
    if spec.default is not None:
        ranked.insert(0, spec.default)
    yield from itertools.takewhile(lambda value: value != now, ranked)


def _recipe(search: Search, space: Space) -> None:
    ranked = dict.fromkeys(("normal", *space.operation.recipes))
    simpler = itertools.takewhile(lambda recipe: recipe != search.best.recipe, ranked)
    search.first(
        msgspec.structs.replace(search.best, recipe=recipe)
        for recipe in simpler
        if recipe in space.operation.recipes
    )


def _seed(search: Search, space: Space) -> None:
    if search.best.seed:
        search.take(msgspec.structs.replace(search.best, seed=0))
