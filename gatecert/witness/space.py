"""A subject's declared domain as axes: what can vary in a case, and how far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from gatecert.oracle.case import Case
from gatecert.oracle.cases import subsets
from gatecert.oracle.exact import pinned_scalars
from gatecert.oracle.layouts import LAYOUTS, layout_of
from gatecert.oracle.schema import Operation, ScalarSpec
from gatecert.oracle.shapes import DEFAULT_BLOCK, distinct, next_prime
from gatecert.oracle.strategies import FAR_SPAN
from gatecert.subjects import Subject

Value: TypeAlias = Any
Assignment: TypeAlias = Mapping[str, Value]
"""Values by axis: `dtype`, `layout`, `recipe`, `absent`, `seed`, `dim N`, `scalar alpha`."""

_BATCH_LADDER = (1, 2, 5, 3, 17, 7, 4, 33, 16, 65, 129)
_LONG = (257, 1025)
_LEAST_TURNS, _LEAST_ELEMENTS = 4096, 1 << 22
"""A case as dear as this is always tried: some seconds on the interpreter."""
_MOST_OF_OWN = 2
"""Others may cost so many times what the gate's dearest case does."""
_MOST_SPAN = 1 << 25
"""Elements of memory that one tensor may lie in, but for sparse memory."""


def dim_axis(name: str) -> str:
    """The axis of a dim."""
    return f"dim {name}"


def scalar_axis(name: str) -> str:
    """The axis of a scalar argument."""
    return f"scalar {name}"


@dataclass(frozen=True, slots=True)
class Space:
    """The axes of a subject's domain, each with values to try, the most telling first.

    `blocks` has the smallest block of each tiled dim, 1 for dims that are cut into single indices
    and 0 for dims that a program takes whole. What costs more than `most_turns` turns of a
    program's loop or `most_elements` elements is not tried.
    """

    operation: Operation
    axes: Mapping[str, tuple[Value, ...]]
    blocks: Mapping[str, int]
    most_turns: int
    most_elements: int

    @property
    def open_dims(self) -> tuple[str, ...]:
        """Dims of any size."""
        return tuple(dim for dim in self.operation.dims if dim not in self.operation.sizes)

    def fits(self, case: Case) -> bool:
        """Is it cheap enough to be tried?"""
        if turns(case, self.blocks) > self.most_turns:
            return False
        if elements(self.operation, case) > self.most_elements:
            return False
        return all(
            layout == FAR_SPAN or LAYOUTS[layout](shape).span <= _MOST_SPAN
            for layout, shape in _placed(self.operation, case)
        )

    def smallest(self, case: Case, kept: Iterable[str]) -> Case:
        """The case with every open dim but those of the axes `kept` as small as may be: two of a
        tiled one show its stride."""
        kept = set(kept)
        small = {
            dim_axis(dim): min(2 if dim in self.operation.tiled else 1, case.sizes[dim])
            for dim in self.open_dims
            if dim_axis(dim) not in kept
        }
        return changed(self.operation, case, small)


def space_of(operation: Operation, subject: Subject, own: Sequence[Case], seed: int) -> Space:
    """The domain that the subject declares, and how large a case may be beside its `own`."""
    blocks = {}
    for dim in operation.dims:
        if dim in operation.sizes:
            blocks[dim] = 0
        elif dim in subject.blocks or dim in operation.tiled:
            blocks[dim] = min(subject.blocks.get(dim) or (DEFAULT_BLOCK,))
        else:
            blocks[dim] = 1
    dearest = max((turns(case, blocks) for case in own), default=0)
    largest = max((elements(operation, case) for case in own), default=0)
    axes: dict[str, tuple[Value, ...]] = {
        "dtype": tuple(subject.dtypes),
        "layout": tuple(_layouts(operation, subject.layouts)),
        "recipe": operation.recipes,
        "absent": ((), *subsets(operation.optional)),
        "seed": tuple(seed + step for step in range(1, 6)),
    }
    for dim in operation.dims:
        axes[dim_axis(dim)] = _sizes(operation, subject, dim)
    for spec in operation.scalars:
        axes[scalar_axis(spec.name)] = _numbers(spec)
    return Space(
        operation=operation,
        axes={name: values for name, values in axes.items() if len(values) > 1},
        blocks=blocks,
        most_turns=max(_LEAST_TURNS, _MOST_OF_OWN * dearest),
        most_elements=max(_LEAST_ELEMENTS, _MOST_OF_OWN * largest),
    )


def changed(operation: Operation, case: Case, assignment: Assignment) -> Case:
    """The case with these values on these axes; scalars of an exact recipe stay what it needs."""
    sizes, scalars = case.sizes, dict(case.scalars)
    plain: dict[str, Value] = {}
    for axis, value in assignment.items():
        kind, _, name = axis.partition(" ")
        if kind == "dim":
            sizes[name] = value
        elif kind == "scalar":
            scalars[name] = value
        else:
            plain[kind] = value
    scalars |= pinned_scalars(operation, plain.get("recipe", case.recipe))
    return msgspec.structs.replace(
        case, dims=tuple(sizes.items()), scalars=tuple(scalars.items()), **plain
    )


def differences(case: Case, other: Case) -> dict[str, tuple[Value, Value]]:
    """The axes on which two cases of one operation differ, with the values of both."""
    both = {
        name: (getattr(case, name), getattr(other, name))
        for name in ("dtype", "layout", "recipe", "absent", "seed")
    }
    here, there = case.sizes, other.sizes
    both |= {dim_axis(dim): (here[dim], there[dim]) for dim in here}
    mine, others = dict(case.scalars), dict(other.scalars)
    both |= {scalar_axis(name): (mine[name], others[name]) for name in mine}
    return {axis: pair for axis, pair in both.items() if pair[0] != pair[1]}


def turns(case: Case, blocks: Mapping[str, int]) -> int:
    """About how often the bodies of loops and programs run: blocks in every dim, multiplied."""
    return math.prod(-(-size // blocks[dim]) for dim, size in case.dims if size and blocks.get(dim))


def elements(operation: Operation, case: Case) -> int:
    """How many elements all tensors have."""
    specs = (*operation.tensors, *operation.outputs)
    return sum(math.prod(spec.shape(case.sizes)) for spec in specs)


def _placed(operation: Operation, case: Case) -> Iterator[tuple[str, tuple[int, ...]]]:
    for spec in operation.tensors:
        yield layout_of(case.layout, spec.name), spec.shape(case.sizes)


def _layouts(operation: Operation, declared: Sequence[str]) -> Iterator[str]:
    """The declared layouts: of all tensors, of each alone, and of all but one."""
    names = [spec.name for spec in operation.tensors]
    whole = [name for name in declared if not (name == "expanded" and operation.in_place)]
    yield from (name for name in whole if name != FAR_SPAN)
    if len(names) > 1:
        for name in whole:
            if name != "contiguous":
                yield from (f"{name}:{one}" for one in names)
    if len(names) > 2:
        for name in whole:
            if name not in ("contiguous", FAR_SPAN):
                for one in names:
                    yield f"{name}:{'+'.join(other for other in names if other != one)}"


def _sizes(operation: Operation, subject: Subject, dim: str) -> tuple[int, ...]:
    listed = subject.dims.get(dim, ())
    if dim in operation.sizes:
        return distinct(listed or operation.sizes[dim])
    blocks = subject.blocks.get(dim) or ((DEFAULT_BLOCK,) if dim in operation.tiled else ())
    ladders = [_around(block) for block in blocks]
    if dim not in operation.tiled:
        ladders.append(_BATCH_LADDER)
    tall = [size for rung in zip(*ladders, strict=False) for size in rung]
    rest = [size for ladder in ladders for size in ladder]
    empty = (0,) if dim in operation.empty and 0 in listed else ()
    return distinct(size for size in (*tall, *rest, *_LONG, *listed, *empty) if size > 0 or empty)


def _around(block: int) -> tuple[int, ...]:
    """Sizes around multiples of a block, primes, few, and many blocks."""
    return (
        *(block + 1, 1, 2 * block + 1, block - 1, 2, 3 * block, next_prime(block + block // 2)),
        *(block, block // 4 + 1, 4 * block + 3, 2 * block, 5 * block - 1, 3, 7),
        *(next_prime(3 * block), 8 * block + 1, 2 * block - 1, 17),
    )


def _numbers(spec: ScalarSpec) -> tuple[float, ...]:
    """Default, ends, middle and two between of a scalar's range."""
    low, high = spec.scalar.low, spec.scalar.high
    shares = (0.0, 1.0, 0.5, 0.21, 0.83)
    if spec.scalar.integer:
        drawn = [float(math.floor(low + (high - low) * share)) for share in shares]
    elif spec.scalar.logarithmic:
        drawn = [low * (high / low) ** share for share in shares]
    else:
        drawn = [low + (high - low) * share for share in shares]
    # Two digits read well in a case; the range's ends may not be left by rounding.
    drawn = [x if spec.scalar.integer else min(max(float(f"{x:.2g}"), low), high) for x in drawn]
    inside = [x for x in (0.0, 1.0) if low <= x <= high and not spec.scalar.always_drawn]
    default = [] if spec.default is None or spec.scalar.always_drawn else [spec.default]
    return tuple(dict.fromkeys((*default, *drawn, *inside)))
