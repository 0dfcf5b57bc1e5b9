"""Index, offset and mask tensors: named rules, each with what it reveals.

A rule makes values of a shape and says of any values whether they are valid: a case that is
written out, a snapshot or a step of the minimiser is refused where its indices lead nowhere.
Block sizes are powers of two in Triton, so that lengths are drawn around such, whatever the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gatecert.errors import UsageError, did_you_mean
from gatecert.oracle.streams import Stream

Ints: TypeAlias = npt.NDArray[np.int64]
Shape: TypeAlias = tuple[int, ...]
_NOTHING: Mapping[str, Any] = MappingProxyType({})
NO_PAGE = -1
"""What stands in a block table or slot mapping where there is nothing."""


@dataclass(frozen=True, slots=True)
class Index:
    """A rule in use: `sizes` by role (dims or numbers), other `tensors` by role, `patterns`."""

    rule: str
    sizes: Mapping[str, str | int] = field(default_factory=lambda: _NOTHING, hash=False)
    tensors: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule needs to know of a case: its sizes and other tensors, by role."""

    sizes: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    tensors: Mapping[str, Ints] = field(default_factory=lambda: _NOTHING)
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of index tensor.

    `make(stream, shape, facts)` draws valid values; `broken(values, facts)` says what is wrong
    with values, or None. `rank` is the number of dims that it must have (0: at least one).
    """

    name: str
    reveals: str
    make: Callable[[Stream, Shape, Facts], Ints]
    broken: Callable[[Ints, Facts], str | None]
    rank: int = 1

    def check_use(self, index: Index, dims: Sequence[str], where: str) -> None:
        """Refuse a wrong rank or an unknown pattern.

        Raises:
            UsageError: it says which is wrong, at `where`.
        """
        if not dims or (self.rank and len(dims) != self.rank):
            wanted = f"{self.rank} dim{'s' * (self.rank > 1)}" if self.rank else "a dim"
            raise UsageError(f"{where}: {self.name} has {wanted}, not {len(dims)}")
        for pattern in index.patterns:
            if pattern not in MASK_PATTERNS:
                hint = did_you_mean(pattern, MASK_PATTERNS)
                raise UsageError(f"{where}: unknown pattern {pattern!r}; {hint}")
        if self.name == "mask" and not index.patterns:
            raise UsageError(f"{where}: name at least one of {', '.join(MASK_PATTERNS)}")


def _around(stream: Stream, most: int, block: int) -> list[int]:
    """Lengths that matter up to `most`: 0, 1, around a block (a power of two if none is given)."""
    if block < 1:
        block = 1 << int(stream.integers(1, max(2, most.bit_length()), ()))
    many = block * int(stream.integers(1, max(2, most // block + 1), ()))
    share = int(stream.integers(0, most + 1, ()))
    return [many + 1, 0, many, share, many - 1, 1]


def _partition(stream: Stream, parts: int, total: int) -> Ints:
    """Lengths of `parts` pieces of `total`, some of them empty; the last drawn takes the rest."""
    found: list[int] = []
    left, first = total, int(stream.integers(0, 6, ()))
    for turn in range(parts):
        kinds = _around(stream, left, 0)
        found.append(left if turn == parts - 1 else min(left, kinds[(first + turn) % len(kinds)]))
        left -= found[-1]
    return np.array(found, np.int64)[np.argsort(stream.uniform((parts,)), kind="stable")]


def _offsets(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    lengths = _partition(stream, shape[0] - 1, facts.sizes["total"])
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _offsets_broken(values: Ints, facts: Facts) -> str | None:
    total = facts.sizes["total"]
    if not values.size or values[0] != 0:
        return f"must start at 0, but starts at {values[0] if values.size else 'nothing'}"
    if (np.diff(values) < 0).any():
        at = int(np.flatnonzero(np.diff(values) < 0)[0])
        return f"must not fall, but {values[at]} is followed by {values[at + 1]}"
    if values[-1] != total:
        return f"must end at {total}, but ends at {values[-1]}"
    return None


def _lengths(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    most, least = facts.sizes["most"], facts.sizes["least"]
    count = int(np.prod(shape))
    kinds: list[int] = [most]
    while len(kinds) < count:
        kinds += _around(stream, most, facts.sizes["block"])
    found = np.clip(np.array(kinds[:count], np.int64), least, most)
    return found[np.argsort(stream.uniform((count,)), kind="stable")].reshape(shape)


def _lengths_broken(values: Ints, facts: Facts) -> str | None:
    return _outside(values, facts.sizes["least"], facts.sizes["most"] + 1)


def _live_pages(facts: Facts) -> Ints:
    """How many pages each row has."""
    return -(-facts.tensors["lengths"] // facts.sizes["block"])


def _pages(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    pages, live = facts.sizes["pages"], _live_pages(facts)
    if live.sum() > pages:
        raise UsageError(
            f"there are {pages} pages, but {live.sum()} are live; derive the number of pages from "
            'what rows may have, as in "B*P+1"'
        )
    order = np.argsort(stream.uniform((pages,)), kind="stable")
    table = np.full(shape, NO_PAGE, np.int64)
    table[np.arange(shape[1]) < live[:, None]] = order[: live.sum()]
    return table


def _pages_broken(values: Ints, facts: Facts) -> str | None:
    live = values[np.arange(values.shape[1]) < _live_pages(facts)[:, None]]
    if len(live) < _live_pages(facts).sum():
        return f"has {values.shape[1]} places a row, too few for its lengths"
    said = _outside(live, 0, facts.sizes["pages"])
    return f"its live pages {said}" if said else _twice(live, "page", "is live")


def _segments(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    count = facts.sizes["count"]
    return np.repeat(np.arange(count), _partition(stream, count, shape[0]))


def _segments_broken(values: Ints, facts: Facts) -> str | None:
    if (np.diff(values) < 0).any():
        at = int(np.flatnonzero(np.diff(values) < 0)[0])
        return f"must not fall, but {values[at]} is followed by {values[at + 1]}"
    return _outside(values, 0, facts.sizes["count"])


def _permutation(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    return np.argsort(stream.uniform(shape), kind="stable").astype(np.int64)


def _permutation_broken(values: Ints, facts: Facts) -> str | None:
    return _outside(values, 0, len(values)) or _twice(values, "index", "is there")


def _slots(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    count = facts.sizes["count"]
    if shape[0] > count:
        raise UsageError(
            f"there are {count} slots for {shape[0]} items; derive their number from that of the "
            "items"
        )
    found = np.argsort(stream.uniform((count,)), kind="stable")[: shape[0]].astype(np.int64)
    nowhere = stream.uniform(shape) < 0.2
    nowhere[:1] = False
    return np.where(nowhere, NO_PAGE, found)


def _slots_broken(values: Ints, facts: Facts) -> str | None:
    placed = values[values != NO_PAGE]
    return _outside(placed, 0, facts.sizes["count"]) or _twice(placed, "slot", "is taken")


def _random_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    seen = stream.uniform(shape) < 2.0 / 3.0
    seen[..., -1:] = True
    return seen


def _causal_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    # Of R rows the first sees the first column, and each about 1/R of all columns more.
    rows, columns = (shape[-2] if len(shape) > 1 else 1), shape[-1]
    seen = np.arange(columns) <= (np.arange(rows) * columns // rows)[:, None]
    return np.array(np.broadcast_to(seen if len(shape) > 1 else seen[0], shape))


def _late_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    # Of every second row the second half only, so that whole first tiles hold nothing; of the
    # others the first half.
    place = np.arange(shape[-1])
    late = place >= shape[-1] // 2
    turn = _row_number(shape) % 2 == 0
    return np.array(np.broadcast_to(np.where(turn, late, ~late | (shape[-1] < 2)), shape))


def _lone_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    # One place of each row: the first and the last in turn.
    at = np.where(_row_number(shape) % 2 == 0, 0, shape[-1] - 1)
    return np.asarray(np.arange(shape[-1]) == at).reshape(shape)


def _rows_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    return np.asarray(_random_mask(stream, shape) & (_row_number(shape) % 2 == 1))


def _row_number(shape: Shape) -> Ints:
    """Rows counted through, as a column beside them."""
    leading = shape[:-1]
    return np.arange(int(np.prod(leading))).reshape(*leading, 1)


def _whole_mask(stream: Stream, shape: Shape) -> npt.NDArray[np.bool_]:
    return np.ones(shape, np.bool_)


MASK_PATTERNS: Mapping[str, Callable[[Stream, Shape], npt.NDArray[np.bool_]]] = {
    "random": _random_mask,
    "causal": _causal_mask,
    "late": _late_mask,
    "lone": _lone_mask,
    "rows": _rows_mask,
    "all": _whole_mask,
}
"""What a mask lets through: two thirds of all places and the last; a growing part of each row;
halves of rows in turn, so that whole first tiles hold nothing; the first or the last place alone;
nothing of every second row; everything."""


def _mask(stream: Stream, shape: Shape, facts: Facts) -> Ints:
    # Half of all masks have one pattern, so that whole tiles of several rows are alike; in the
    # others rows take turns, so that each pattern meets each recipe.
    count = len(facts.patterns)
    first, mixed = int(stream.integers(0, count, ())), stream.uniform(()) < 0.5
    seen = MASK_PATTERNS[facts.patterns[first]](stream, shape)
    for turn in range(1, count if mixed else 1):
        other = MASK_PATTERNS[facts.patterns[(first + turn) % count]](stream, shape)
        seen = np.where(_row_number(shape) % count == turn, other, seen)
    return (seen ^ bool(facts.sizes["true_hides"])).astype(np.int64)


def _mask_broken(values: Ints, facts: Facts) -> str | None:
    seen = (values != 0) ^ bool(facts.sizes["true_hides"])
    if "rows" not in facts.patterns and not seen.any(axis=-1).all():
        return "hides a whole row, for which the operation has no meaning"
    return _outside(values, 0, 2)


def _outside(values: Ints, low: int, high: int) -> str | None:
    wrong = values[(values < low) | (values >= high)]
    return f"must be from {low} to {high - 1}, but hold {wrong[0]}" if wrong.size else None


def _twice(values: Ints, what: str, verb: str) -> str | None:
    found, counts = np.unique(values, return_counts=True)
    return f"{what} {found[counts > 1][0]} {verb} twice" if (counts > 1).any() else None


INDEX_RULES: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "offsets",
            "sequences of length 0 and 1 and around a block; a neighbour's rows read or written",
            _offsets,
            _offsets_broken,
        ),
        Rule(
            "lengths",
            "0, 1, the most and around a block: what is padding must not count",
            _lengths,
            _lengths_broken,
            rank=0,
        ),
        Rule(
            "pages",
            "pages in no order, and none behind the live ones: a page's number taken for its place",
            _pages,
            _pages_broken,
            rank=2,
        ),
        Rule("segments", "empty segments; those that cross tiles", _segments, _segments_broken),
        Rule(
            "permutation",
            "a gather taken for a copy, or for a scatter",
            _permutation,
            _permutation_broken,
        ),
        Rule("slots", "items that go nowhere; places in no order", _slots, _slots_broken),
        Rule("mask", "whole tiles and rows that do not count", _mask, _mask_broken, rank=0),
    )
}
"""The one registry of index, offset and mask tensors."""


def get_rule(name: str) -> Rule:
    """The rule called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in INDEX_RULES:
        return INDEX_RULES[name]
    raise UsageError(f"unknown index rule {name!r}; {did_you_mean(name, INDEX_RULES)}")


__all__ = ["INDEX_RULES", "MASK_PATTERNS", "Facts", "Index", "Rule", "get_rule"]
