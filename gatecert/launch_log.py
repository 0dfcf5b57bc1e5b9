"""The log of production shapes: its lines, and which of them the oracle is to try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gatecert.errors import UsageError

MOST_SHAPES = 12
"""So many distinct calls of a log become cases."""


class SeenArgument(msgspec.Struct, frozen=True):
    """A tensor argument of a call that does not fit the schema."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str


class LaunchRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """`count` equal calls of an entry: one line of a log.

    `dims`, `dtype`, `layout`, `scalars` and `absent` are as in a case. Where a call does not fit
    the operation's schema `misfit` says why, and `arguments` what it was given.
    """

    operation: str
    count: int
    entry: str = ""
    subject: str = ""
    dims: dict[str, int] = {}
    dtype: str = ""
    layout: str = "contiguous"
    scalars: dict[str, float] = {}
    absent: tuple[str, ...] = ()
    misfit: str = ""
    arguments: dict[str, SeenArgument] = {}


class LoggedShape(msgspec.Struct, frozen=True):
    """A call of production that the oracle is to try."""

    dims: tuple[tuple[str, int], ...]
    dtype: str
    layout: str = "contiguous"
    scalars: tuple[tuple[str, float], ...] = ()
    absent: tuple[str, ...] = ()

    def __str__(self) -> str:
        dims = ",".join(f"{dim}={size}" for dim, size in self.dims)
        return f"{dims} {self.dtype} {self.layout}"


def read_launch_log(path: Path) -> tuple[list[LaunchRecord], list[str]]:
    """The records of a log, equal ones added up, and notes on lines that are none.

    Raises:
        UsageError: the file cannot be read, or no line of it is a record.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; record one: docs/replay.md") from None
    counts: dict[bytes, LaunchRecord] = {}
    wrong: list[int] = []
    for number, line in enumerate(lines, 1):
        try:
            record = msgspec.json.decode(line, type=LaunchRecord)
        except msgspec.MsgspecError:
            wrong.append(number)
            continue
        key = msgspec.json.encode(msgspec.structs.replace(record, count=0), order="deterministic")
        before = counts[key].count if key in counts else 0
        counts[key] = msgspec.structs.replace(record, count=record.count + before)
    if wrong and not counts:
        raise UsageError(f"{path}: line {wrong[0]} is no record of a launch")
    notes = [f"{len(wrong)} lines are no record, the first is {wrong[0]}"] if wrong else []
    return list(counts.values()), notes


def choose_shapes(
    records: Iterable[LaunchRecord],
    *,
    operation: str,
    subject: str,
    dtypes: Sequence[str],
    layouts: Sequence[str],
    most: int = MOST_SHAPES,
) -> tuple[tuple[LoggedShape, ...], tuple[str, ...]]:
    """The calls to try, the most frequent and the extreme ones first, and what is left out.

    Only calls of that operation in a declared dtype are tried; of an undeclared layout the shape
    is tried contiguous.
    """
    own = [
        record
        for record in records
        if record.operation.rpartition(":")[2] == operation.rpartition(":")[2]
        and record.subject in ("", subject)
    ]
    notes = []
    counts: dict[LoggedShape, int] = {}
    undeclared: dict[str, int] = {}
    for record in own:
        if record.misfit:
            undeclared[f"do not fit the schema: {record.misfit}"] = record.count
        elif record.dtype not in dtypes:
            what = f"have dtype {record.dtype}, which is not declared"
            undeclared[what] = undeclared.get(what, 0) + record.count
        else:
            shape = _shape(record, layouts)
            counts[shape] = counts.get(shape, 0) + record.count
            if shape.layout != record.layout:
                what = f"have layout {record.layout}, which is not declared; tried contiguous"
                undeclared[what] = undeclared.get(what, 0) + record.count
    notes += [f"{count} calls {what}" for what, count in undeclared.items()]
    if not own:
        notes.append(f"no call of {operation} in it")
    chosen = tuple(_ranked(counts))[:most]
    left = [shape for shape in counts if shape not in chosen]
    if left:
        calls = sum(counts[shape] for shape in left)
        notes.append(
            f"{len(left)} of {len(counts)} distinct calls ({calls} of {sum(counts.values())} in "
            "number) are left out: the most frequent and the extreme ones are tried"
        )
    return chosen, tuple(notes)


def _shape(record: LaunchRecord, layouts: Sequence[str]) -> LoggedShape:
    declared = record.layout.partition(":")[0] in layouts
    return LoggedShape(
        tuple(record.dims.items()),
        record.dtype,
        record.layout if declared else "contiguous",
        tuple(record.scalars.items()),
        record.absent,
    )


def _ranked(counts: dict[LoggedShape, int]) -> Iterator[LoggedShape]:
    """By turns one of the most frequent and one that has the largest or smallest size of a dim."""
    order = sorted(counts, key=lambda shape: (-counts[shape], shape.dims, shape.dtype, str(shape)))
    dims = [dim for dim, _ in order[0].dims] if order else []
    extreme = [
        pick(order, key=lambda shape, dim=dim: dict(shape.dims).get(dim, 0))  # type: ignore[misc]
        for pick in (max, min)
        for dim in dims
    ]
    turns = [one for pair in zip(order, extreme, strict=False) for one in pair]
    yield from dict.fromkeys((*turns, *order))
