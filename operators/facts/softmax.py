"""Exponentials of differences with a maximum: stabilised ones, and the rescale of running sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.constants import SENTINEL
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.language import EXPONENTIALS, Role

_CARRIERS = frozenset(
    {"to", "where", "maximum", "builtins.max", "broadcast_to", "reshape", "expand_dims", "trans",
     "multiple_of", "max_contiguous"}
)  # fmt: skip
"""Calls that hand on one of their arguments' values."""
_MAXIMA = frozenset({"max", "maximum", "builtins.max"})


@dataclass(frozen=True, slots=True)
class StabilisedExponential:
    """`exp(value - maximum)`, however spelled; the subtraction may stand in an earlier line."""

    call: cst.Call
    subtraction: cst.CSTNode
    """`x - m`, or an augmented `x -= m`."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """`whole`: running value times (or over) a power of the change of its running maximum."""

    whole: cst.CSTNode
    """A product, a quotient, an augmented `*=` or `/=`, or an `fma` call."""
    running: cst.CSTNode
    """What is rescaled."""
    factor: cst.CSTNode
    exponential: cst.Call
    from_nothing: bool
    """Whether the maximum starts at -inf, so that the first rescale multiplies by zero and
    nothing remains of what the running value started with."""


def stabilised_exponentials(flow: Dataflow) -> tuple[StabilisedExponential, ...]:
    """Exponentials of `x - m` where m comes from a maximum and is no rescale factor."""
    found: list[StabilisedExponential] = []
    for call in flow.calls(*EXPONENTIALS):
        subtraction = exponent_difference(flow, call)
        if (
            subtraction is not None
            and is_maximum(flow, sides(subtraction)[1])
            and not _is_running_change(flow, *sides(subtraction))
        ):
            found.append(StabilisedExponential(call, subtraction))
    return tuple(found)


def rescales(flow: Dataflow) -> tuple[Rescale, ...]:
    """Every place where a running value is brought to a new running maximum."""
    down: dict[cst.CSTNode, cst.Call] = {}
    up: dict[cst.CSTNode, cst.Call] = {}
    for call in flow.calls(*EXPONENTIALS):
        difference = exponent_difference(flow, call)
        if difference is None:
            continue
        left, right = sides(difference)
        if _is_running_change(flow, left, right):
            down[call] = call
        elif _is_running_change(flow, right, left):
            up[call] = call
    return tuple(_rescales(flow, down, up)) if down or up else ()


def is_maximum(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether the value is a maximum, perhaps scaled, cast, guarded or copied."""
    return any(flow.call_name(n) in _MAXIMA for n in carried(flow, node))


def _rescales(
    flow: Dataflow, down: dict[cst.CSTNode, cst.Call], up: dict[cst.CSTNode, cst.Call]
) -> Iterator[Rescale]:
    pairs: list[tuple[cst.CSTNode, cst.CSTNode]]
    for node in flow.expressions():
        if flow.call_name(node) == "fma" and isinstance(node, cst.Call):
            parts = [a.value for a in flow.arguments(node)][:2]
            pairs = [(parts[0], parts[1]), (parts[1], parts[0])] if len(parts) == 2 else []
            factors = down
        elif _is_product(node):
            left, right = sides(node)
            pairs = [(left, right)]
            if not isinstance(node, cst.AugAssign):
                pairs.append((right, left))
            factors = down
        elif _is_quotient(node):
            pairs, factors = [sides(node)], up
        else:
            continue
        for running, factor in pairs:
            exponential = next((factors[n] for n in carried(flow, factor) if n in factors), None)
            if exponential is not None:
                from_nothing = _starts_at_infinity(flow, exponential)
                yield Rescale(node, running, factor, exponential, from_nothing)
                break


def _starts_at_infinity(flow: Dataflow, exponential: cst.Call) -> bool:
    """Whether the old maximum of a rescale is infinite before the loop."""
    difference = exponent_difference(flow, exponential)
    loops = set(flow.loops(exponential))
    starts = [
        definition.value
        for side in (sides(difference) if difference is not None else ())
        for name in carried(flow, side, through_maximum=False)
        if isinstance(name, cst.Name)
        for definition in flow.reaching(name)
        if not loops & set(flow.loops(definition.node))
    ]
    return bool(starts) and all(s is not None and _is_infinite(flow, s) for s in starts)


def _is_infinite(flow: Dataflow, value: cst.CSTNode) -> bool:
    """`float("-inf")` alone, in `full`, or added to zeros; huge numbers count as infinite."""
    return any(
        (isinstance(n, cst.BaseNumber) and abs(float(flow.source(n))) > SENTINEL)
        or (flow.call_name(n) == "builtins.float" and "inf" in flow.source(n))
        for n in (value, *flow.backward(value))
    )


def sides(node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode]:
    """Left and right of a binary operation or an augmented assignment."""
    if isinstance(node, cst.AugAssign):
        return node.target, node.value
    assert isinstance(node, cst.BinaryOperation)
    return node.left, node.right


def _is_product(node: cst.CSTNode) -> bool:
    operator = getattr(node, "operator", None)
    return isinstance(operator, cst.Multiply | cst.MultiplyAssign)


def _is_quotient(node: cst.CSTNode) -> bool:
    operator = getattr(node, "operator", None)
    return isinstance(operator, cst.Divide | cst.DivideAssign)


def exponent_difference(flow: Dataflow, call: cst.Call) -> cst.CSTNode | None:
    """The difference in an exponent, behind casts, copies and scale factors."""
    arguments = flow.arguments(call)
    return _difference(flow, arguments[0].value) if arguments else None


def in_exponent(flow: Dataflow, rescale: Rescale, node: cst.CSTNode) -> bool:
    """Whether a step lies between the change of the maximum and its exponential."""
    difference = exponent_difference(flow, rescale.exponential)
    return (
        difference is not None
        and node in flow.backward(rescale.exponential)
        and difference in flow.backward(node)
        and difference not in flow.forward(node)
    )


def _difference(flow: Dataflow, node: cst.CSTNode) -> cst.CSTNode | None:
    node = flow.resolve(node)
    if isinstance(node, cst.Name) and len(flow.reaching(node)) == 1:
        value = flow.reaching(node)[0].value
        if isinstance(value, cst.AugAssign) and isinstance(value.operator, cst.SubtractAssign):
            return value
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.Subtract):
            return node
        if isinstance(node.operator, cst.Multiply):
            return _difference(flow, node.left) or _difference(flow, node.right)
        if isinstance(node.operator, cst.Divide):
            return _difference(flow, node.left)
    if flow.call_name(node) == "to" and isinstance(node, cst.Call):
        return _difference(flow, flow.arguments(node)[0].value)
    return None


def _is_running_change(flow: Dataflow, old: cst.CSTNode, new: cst.CSTNode) -> bool:
    """Whether `new` is the maximum of `old` and more, and becomes `old` in the next turn."""
    if not is_maximum(flow, new):
        return False
    mine = [n for n in carried(flow, old, through_maximum=False) if isinstance(n, cst.Name)]
    origins = {n for n in carried(flow, new) if isinstance(n, cst.Name)}
    enters = any(
        flow.reaching(a) and flow.reaching(a) == flow.reaching(b) for a in mine for b in origins
    )
    maxima = [n for n in carried(flow, new) if flow.call_name(n) in _MAXIMA]
    returns = any(a in flow.forward(m) for a in mine for m in maxima)
    return enters and returns


def carried(
    flow: Dataflow, node: cst.CSTNode, through_maximum: bool = True
) -> Iterator[cst.CSTNode]:
    """The node and the nodes whose value it hands on, nearest first.

    Value passes through names, casts and broadcasts; unless told otherwise also through
    guards, scale factors and maxima.
    """
    seen: set[cst.CSTNode] = set()
    queue = [node]
    while queue:
        current = queue.pop(0)
        if current in seen:
            continue
        seen.add(current)
        yield current
        if _hands_on(flow, current, through_maximum):
            queue.extend(n for role, n in flow.inputs(current) if role is Role.VALUE)


def _hands_on(flow: Dataflow, node: cst.CSTNode, through_maximum: bool) -> bool:
    if isinstance(node, cst.Call):
        name = flow.call_name(node)
        return name in _CARRIERS if through_maximum else name == "to"
    if isinstance(node, cst.BinaryOperation | cst.AugAssign):
        return through_maximum and (_is_product(node) or _is_quotient(node))
    return True
