"""The axes on which a gate is blind: how a witness is not like any input of the gate's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from gatecert.diagnosis.records import BlindAxis
from gatecert.oracle.case import Case
from gatecert.oracle.layouts import split_layout
from gatecert.witness.records import RUNS, Change

_VALUES: Mapping[str, str] = MappingProxyType(
    {
        "near_zero": "near_zero",
        "subnormal": "near_zero",
        "large_offset": "large_offset",
        "huge": "large",
        "uniform10": "large",
        "early_peak": "peaked",
        "spike": "peaked",
        "one_hot": "peaked",
        "masked_rows": "hidden_row",
        "all_negative": "negative",
    }
)
"""What a recipe of values has that others may not."""


def blind_axes(
    witness: Case,
    changes: Iterable[Change],
    own: Sequence[Case],
    blocks: Mapping[str, Collection[int]],
) -> tuple[BlindAxis, ...]:
    """One for each axis on which the witness differs from the nearest of the gate's own cases."""
    return tuple(_axis(change, witness, own, blocks) for change in changes)


def _axis(
    change: Change, witness: Case, own: Sequence[Case], blocks: Mapping[str, Collection[int]]
) -> BlindAxis:
    kind, _, name = change.axis.partition(" ")
    here = f"{change.axis} is {change.witness} there, {change.own} here"
    if change.axis == RUNS:
        return BlindAxis("runs", "another configuration or order of programs")
    if kind == "dim":
        sizes = {case.sizes[name] for case in own}
        found = next(_dims(name, witness.sizes[name], sizes, blocks.get(name, ())), None)
        return found or BlindAxis(f"dims:{name}", here)
    if kind == "layout":
        return BlindAxis(f"layout:{split_layout(witness.layout)[0]}", here)
    if kind == "recipe":
        return _values(witness.recipe, {case.recipe for case in own}, here)
    if kind == "absent":
        return BlindAxis(
            "arguments:absent", f"left out there: {change.witness}, here: {change.own}"
        )
    return BlindAxis(f"{kind}:{name or change.witness}", here)


def _dims(
    dim: str, size: int, own: Collection[int], blocks: Collection[int]
) -> Iterator[BlindAxis]:
    """What sets the size apart from all of the gate's own, the most telling first."""
    for block in sorted(blocks):
        if size % block and not any(other % block for other in own):
            said = f"{dim} is always a multiple of {block}; it is {size} there"
            yield BlindAxis(f"dims:{dim}%BLOCK", said)
    for block in sorted(blocks):
        if size > block >= max(own):
            said = f"{dim} is never above {block}, the block; it is {size} there"
            yield BlindAxis(f"dims:{dim}>BLOCK", said)
    if max(own) == 1 < size:
        yield BlindAxis(f"dims:{dim}>1", f"{dim} is always 1; it is {size} there")
    if size < min(own):
        yield BlindAxis("dims:small", f"{dim} is never below {min(own)}; it is {size} there")


def _values(recipe: str, own: Collection[str], here: str) -> BlindAxis:
    if recipe in _VALUES:
        return BlindAxis(f"values:{_VALUES[recipe]}", here)
    if set(own) == {"uniform01"}:
        return BlindAxis("values:negative", f"values are never negative; they are {recipe} there")
    return BlindAxis(f"values:{recipe}", here)
