"""How tiles change shape, and what happens where their lanes meet: reductions, contractions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from gatecert.operators.facts import elements
from gatecert.operators.facts.elements import Element, Lane
from gatecert.operators.facts.language import Argument
from gatecert.operators.facts.values import Placed, Value, weakest
from gatecert.operators.records import Reveal

ALL_AXES = None
"""The axis of a reduction that does not name one."""


def merge_rank(ranks: Iterable[int | None]) -> int | None:
    """Rank of tiles broadcast together; unknown ranks count for nothing beside known ones."""
    return max((rank for rank in ranks if rank is not None), default=None)


def literal_axis(argument: Argument | None) -> int | None:
    """The number passed as axis; None where there is none."""
    node = argument.value if argument is not None else None
    if isinstance(node, cst.Integer):
        return int(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.expression, cst.Integer):
        return -int(node.expression.evaluated_value)
    return ALL_AXES


def shape_rank(argument: Argument | None) -> int | None:
    """Rank of a tile whose shape is spelled out."""
    node = argument.value if argument is not None else None
    return len(node.elements) if isinstance(node, cst.Tuple | cst.List) else None


def _shift(placed: Placed, axis: int, by: int) -> Placed:
    """Move what lies left of `axis` (counted from the right) when an axis comes or goes there."""
    return frozenset((name, a + by if a <= axis else a) for name, a in placed)


def subscripted(x: Value, node: cst.Subscript) -> Value | None:
    """`x[:, None]`, `x[None, :]`, ...; None for any other subscript."""
    placed, axis, rank = x.placed, 0, x.rank
    for element in reversed(node.slice):
        axis -= 1
        part = element.slice
        if isinstance(part, cst.Slice):
            continue
        if not (isinstance(part, cst.Index) and isinstance(part.value, cst.Name)):
            return None
        if part.value.value != "None":
            return None
        placed = _shift(placed, axis, -1)
        rank = None if rank is None else rank + 1
    return replace(x, placed=placed, rank=rank)


def expanded(x: Value, axis: int | None) -> Value:
    """`tl.expand_dims(x, axis)`."""
    if axis is None or x.rank is None:
        return replace(x, placed=frozenset(), rank=None)
    place = axis if axis < 0 else axis - (x.rank + 1)
    return replace(x, placed=_shift(x.placed, place, -1), rank=x.rank + 1)


def transposed(x: Value) -> Value:
    """A matrix with its axes swapped."""
    swap = {-1: -2, -2: -1}
    return replace(x, placed=frozenset((name, swap.get(a, a)) for name, a in x.placed))


def _sums_to(x: Element) -> Element:
    """The sum of several equal elements."""
    return x if x in (0.0, float("inf"), float("-inf"), Lane.POISON) else Lane.DATA


def _matters(name: str, x: Value, reveal: frozenset[Reveal]) -> frozenset[Reveal] | None:
    """When lanes that changed from `before` to `after` change a reduction over them."""
    if name not in ("max", "min", "argmax", "argmin"):
        return reveal
    if x.after is Lane.POISON:
        return None  # Triton's maximum passes NaN over
    sign = 1.0 if name.endswith("max") else -1.0
    if isinstance(x.after, Lane):
        return reveal
    if not isinstance(x.before, Lane) and sign * x.after <= sign * x.before:
        return None  # the original padding lost to every real value, so does this
    return reveal | {Reveal.ALL_NEGATIVE} if sign > 0 else reveal


def reduced(
    name: str,
    x: Value,
    axis: int | None,
    keep_dims: bool,
    indices: frozenset[str],
    reveal: frozenset[Reveal],
) -> tuple[Value, bool]:
    """A reduction of `x`, and whether changed lanes meet others in it."""
    place = axis if axis is None or axis < 0 or x.rank is None else axis - x.rank
    unknown = axis is not None and place is not None and place >= 0
    hit = x.axes(indices) if place is None or unknown else x.axes(indices) & {place}
    if place is None or unknown:
        placed: Placed = frozenset()
    else:
        rest = frozenset((index, a) for index, a in x.placed if a != place)
        placed = rest if keep_dims else _shift(rest, place - 1, 1)
    rank = x.rank if keep_dims else 0 if place is None else None if x.rank is None else x.rank - 1
    result = replace(x, placed=placed, rank=rank, conjuncts=(), parts=())
    if name in ("argmax", "argmin") or (hit and not result.axes(indices)):
        result = result.holds(Lane.DATA, Lane.DATA, same=bool(hit) or x.same)
    elif hit:
        result = result.holds(Lane.DATA, Lane.DATA, same=x.same)
    elif name not in ("max", "min"):
        result = result.holds(_sums_to(x.before), _sums_to(x.after), x.same)
    met = bool(hit) and not x.same
    leak = _matters(name, x, reveal) if met else None
    return replace(result, leak=weakest(x.leak, leak)), met


def _row(x: Value, axes: frozenset[int], axis: int) -> tuple[Element, Element]:
    """Lanes of an operand where the other operand's lanes are padding."""
    if axis in axes or not x.placed:
        return x.before, x.after
    return Lane.DATA, Lane.DATA


def contracted(x: Value, y: Value, indices: frozenset[str]) -> tuple[Value, bool]:
    """`tl.dot(x, y)`, and whether changed lanes meet others in it.

    Along the contracted axis a lane of `x` meets one lane of `y`: only a changed product counts.
    """
    x_axes, y_axes = x.axes(indices), y.axes(indices)
    met = False
    if -1 in x_axes or -2 in y_axes:
        (x0, x1), (y0, y1) = _row(x, x_axes, -1), _row(y, y_axes, -2)
        before, after = (elements.apply_binary("*", a, b) for a, b in ((x0, y0), (x1, y1)))
        known = not isinstance(before, Lane) and before == after
        met = not known and not (x.same and y.same)
    placed = frozenset((n, a) for n, a in x.placed if a != -1) | frozenset(
        (n, a) for n, a in y.placed if a != -2
    )
    result = Value("dot", 2, placed)
    for operand, axis in ((x, -2), (y, -1)):
        if axis in operand.axes(indices) or (
            not operand.axes(indices) and (not operand.same or not indices)
        ):
            before, after = _sums_to(operand.before), _sums_to(operand.after)
            result = result.holds(
                elements.apply_binary("*", result.before, before),
                elements.apply_binary("*", result.after, after),
                result.same and operand.same,
            )
    return result, met
