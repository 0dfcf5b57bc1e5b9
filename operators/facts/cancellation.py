"""Does a changed scale or offset reach an output, or does it cancel on the way?

A planted bug often multiplies one expression by a factor or shifts it by a term: a softmax
without the maximum computes exp(x) = exp(m) * exp(x - m). In exact arithmetic such a change
may cancel (numerator over denominator). This module follows the change through the kernel as
a power of the factor, so that labels can tell "wrong" from "merely unstable" by rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.changes import (
    INFINITE,
    OTHER,
    SAME,
    UNKNOWN,
    ZERO,
    Change,
    Form,
    added,
    compared,
    joined,
    opaque,
    scaled,
    shifted,
)
from gatecert.operators.facts.constants import SENTINEL, known_number, literal
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.language import EXPONENTIALS, LOGARITHMS, REDUCTIONS, SCANS, Role
from gatecert.operators.facts.shapes import Shape, Typing, integer
from gatecert.operators.facts.softmax import carried, rescales

_HANDED_ON = frozenset(
    {"to", "abs", "builtins.abs", "broadcast_to", "reshape", "trans", "expand_dims",
     "multiple_of", "max_contiguous", "builtins.float"}
)  # fmt: skip
_JOINED = frozenset({"maximum", "minimum", "builtins.max", "builtins.min", "where"})


@dataclass(frozen=True, slots=True)
class Factor:
    """Over which lanes and loops the factor (or term) of a change differs."""

    shape: Shape | None = ()
    varies_in: frozenset[cst.CSTNode] = frozenset()


def factor_of(typing: Typing, node: cst.CSTNode) -> Factor:
    """Over which lanes and loops the value of an expression differs."""
    flow = typing.flow
    origins = {node, *flow.backward(node)}
    changing: set[cst.CSTNode] = set()
    for origin in origins:
        if isinstance(origin, cst.Name):
            for definition in flow.reaching(origin):
                changing.update(flow.loops(definition.node))
                if isinstance(definition.node, cst.For):
                    changing.add(definition.node)
        elif flow.call_name(origin) in ("load", "descriptor_load"):
            changing.update(flow.loops(origin))
    return Factor(typing.safe_shape(node), frozenset(changing))


class Cancellation:
    """Answers for one kernel; what holds without any change is computed once."""

    def __init__(self, typing: Typing) -> None:
        self._typing = typing
        flow = typing.flow
        self._order = flow.evaluation_order
        self._observed = _observed(flow)
        self._restarted = _restarted(flow)
        self._unchanged = _Changes(
            typing, {}, Factor(), {}, self._order, {}, self._restarted
        ).changes

    def cancels(
        self,
        seeds: Mapping[cst.CSTNode, Change],
        factor: Factor,
        same_as: Mapping[cst.CSTNode, cst.CSTNode] | None = None,
    ) -> bool:
        """Whether every stored value, address, mask and branch is as if nothing had changed.

        `seeds` are the changed expressions; an expression in `same_as` takes on the change of
        another one in its place.
        """
        touched = self._typing.flow.influenced((*seeds, *(same_as or {})))
        order = [n for n in self._order if n in touched]
        known = {n: c for n, c in self._unchanged.items() if n not in touched}
        restarted = frozenset[cst.Name]() if same_as else self._restarted
        walk = _Changes(self._typing, seeds, factor, same_as or {}, order, known, restarted)
        return all(walk.settled(n).harmless for n in self._observed if n in touched)


def _restarted(flow: Dataflow) -> frozenset[cst.Name]:
    """Running values at the rescale that multiplies what they started with by zero."""
    return frozenset(
        node
        for rescale in rescales(flow)
        if rescale.from_nothing
        for node in carried(flow, rescale.running, through_maximum=False)
        if isinstance(node, cst.Name)
    )


def _observed(flow: Dataflow) -> list[cst.CSTNode]:
    observed: list[cst.CSTNode] = []
    for node in flow.expressions():
        held = flow.consumer(node)
        if held is not None and held[0] not in (Role.VALUE, Role.META, Role.CONDITION):
            observed.append(node)
    return observed


class _Changes:
    """Least fixed point of the change of the expressions in `order`, beside `known` ones."""

    def __init__(
        self,
        typing: Typing,
        seeds: Mapping[cst.CSTNode, Change],
        factor: Factor,
        same_as: Mapping[cst.CSTNode, cst.CSTNode],
        order: Sequence[cst.CSTNode],
        known: Mapping[cst.CSTNode, Change],
        restarted: frozenset[cst.Name],
    ) -> None:
        self.typing = typing
        self.flow = typing.flow
        self.seeds = seeds
        self.factor = factor
        self.same_as = same_as
        self.order = order
        self.restarted = restarted
        self.wiped = frozenset(
            definition
            for use in restarted
            for definition in self.flow.reaching(use)
            if not set(self.flow.loops(use)) & set(self.flow.loops(definition.node))
        )
        self.changes = dict(known)
        # Changes only rise (unknown, one form, other), so this ends.
        while self._pass():
            pass

    def settled(self, node: cst.CSTNode) -> Change:
        return self.changes.get(node, UNKNOWN)

    def _pass(self) -> bool:
        moved = False
        for node in self.order:
            if node in self.same_as:
                new = self.settled(self.same_as[node])
            else:
                new = self.seeds[node] if node in self.seeds else self._change(node)
            new = joined(self.settled(node), new)
            if new != self.changes.get(node):
                self.changes[node] = new
                moved = True
        return moved

    def _change(self, node: cst.CSTNode) -> Change:
        match node:
            case cst.Integer() | cst.Float():
                return ZERO if float(node.evaluated_value) == 0.0 else SAME
            case cst.Name():
                return self._name(node)
            case cst.BinaryOperation() | cst.AugAssign():
                return self._binary(node)
            case cst.UnaryOperation():
                if (number := literal(node)) is not None and number < -SENTINEL:
                    return INFINITE
                change = self.settled(node.expression)
                shifted = change.form is Form.SHIFTED
                return Change(change.form, -change.degree) if shifted else change
            case cst.Comparison():
                parts = [self.settled(n) for _, n in self.flow.operands(node)]
                return compared(joined(*parts))
            case cst.Call():
                return self._call(node)
            case cst.Subscript() | cst.Attribute():
                first = self.flow.operands(node)[0]
                return self.settled(first[1]) if first[0] is Role.VALUE else SAME
            case cst.IfExp():
                if not compared(self.settled(node.test)).harmless:
                    return OTHER
                return joined(self.settled(node.body), self.settled(node.orelse))
            case _:
                parts = [self.settled(n) for _, n in self.flow.operands(node)]
                return opaque(parts)

    def _name(self, node: cst.Name) -> Change:
        reaching = self.flow.reaching(node)
        if not reaching:
            return SAME
        changes: list[Change] = []
        inside = set(self.flow.loops(node))
        for definition in reaching:
            if definition in self.wiped and (node in self.restarted or len(reaching) > 1):
                changes.append(ZERO)  # multiplied by exp(-inf - m) before it counts
                continue
            if definition.value is None:
                changes.append(SAME)
                continue
            change = self.settled(definition.value)
            if definition.element is not None:
                change = change if change.harmless else OTHER
            crossed = set(self.flow.loops(definition.value)) & self.factor.varies_in
            leaves = crossed - inside
            turns = crossed & inside and node in self.flow.forward(node)
            if (leaves or turns) and not change.harmless:
                change = OTHER
            changes.append(change)
        return joined(*changes)

    def _binary(self, node: cst.BinaryOperation | cst.AugAssign) -> Change:
        a, b = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (
            node.target, node.value,
        )  # fmt: skip
        left, right = self.settled(a), self.settled(b)
        match node.operator:
            case cst.Add() | cst.AddAssign():
                return added(left, right, 1.0)
            case cst.Subtract() | cst.SubtractAssign():
                return added(left, right, -1.0)
            case cst.Multiply() | cst.MultiplyAssign():
                return self._product(left, right, a, b)
            case cst.Divide() | cst.DivideAssign():
                if UNKNOWN in (left, right):
                    return UNKNOWN
                if left.form is Form.SHIFTED:
                    value = known_number(self.flow, b)
                    return OTHER if value is None else shifted(left.degree / value)
                inverse = Change(right.form, -right.degree)
                return self._product(left, inverse, a, b) if right.form is Form.SCALED else (
                    opaque([left, right])
                )  # fmt: skip
            case _:
                return opaque([left, right])

    def _product(self, left: Change, right: Change, a: cst.CSTNode, b: cst.CSTNode) -> Change:
        for special in (UNKNOWN, ZERO, INFINITE):
            if special in (left, right):
                return special
        if left.form is Form.SCALED and right.form is Form.SCALED:
            return scaled(left.degree + right.degree)
        for moved, other, node in ((left, right, b), (right, left, a)):
            value = known_number(self.flow, node)
            if moved.form is Form.SHIFTED and other == SAME and value is not None:
                return shifted(moved.degree * value)
        return OTHER

    def _call(self, node: cst.Call) -> Change:
        name = self.flow.call_name(node)
        values = [n for role, n in self.flow.operands(node) if role is Role.VALUE]
        parts = [self.settled(n) for n in values]
        first = parts[0] if parts else SAME
        if name == "zeros":
            return ZERO
        if _is_infinity(self.flow, node):
            return INFINITE
        if name == "full" or name in _HANDED_ON:
            return first
        if name in EXPONENTIALS:
            if first == INFINITE:
                return ZERO
            if first.form is Form.SHIFTED:
                return scaled(first.degree * EXPONENTIALS[name])
        elif name in LOGARITHMS:
            if first.form is Form.SCALED:
                return shifted(first.degree * LOGARITHMS[name])
        elif name in ("sqrt", "rsqrt") and first.form is Form.SCALED:
            return scaled(first.degree * (0.5 if name == "sqrt" else -0.5))
        elif name in _JOINED:
            tests = [self.settled(n) for r, n in self.flow.operands(node) if r is Role.CONDITION]
            return joined(*parts) if all(compared(t).harmless for t in tests) else OTHER
        elif name in REDUCTIONS or name in SCANS:
            linear = name in ("sum", "cumsum")
            allowed = first.form is Form.SCALED or (first.form is Form.SHIFTED and not linear)
            kept = name in ("sum", "max", "min", "cumsum") and allowed
            if first.harmless or (kept and self._uniform(node, values[0])):
                return first
            return OTHER
        elif name == "div" and len(parts) == 2 and all(p.form is Form.SCALED for p in parts):
            return scaled(parts[0].degree - parts[1].degree)
        elif name == "fma" and len(parts) == 3:
            return added(self._product(parts[0], parts[1], values[0], values[1]), parts[2], 1.0)
        elif name == "dot" and len(parts) >= 2:
            return self._dot(parts, values)
        return opaque(parts)

    def _dot(self, parts: list[Change], values: list[cst.CSTNode]) -> Change:
        shape = self.factor.shape
        contracted = [_at(shape, -1), _at(shape, -2)]
        for part, size in zip(parts[:2], contracted, strict=True):
            if not part.harmless and size != "1":
                return OTHER
        product = self._product(parts[0], parts[1], values[0], values[1])
        return added(product, parts[2], 1.0) if len(parts) > 2 else product

    def _uniform(self, node: cst.Call, operand: cst.CSTNode) -> bool:
        """Whether the factor is the same all along the reduced axis."""
        if self.factor.shape == ():
            return True
        shape = self.typing.safe_shape(operand)
        given = self.flow.argument(node, "axis")
        axis = None if given is None else integer(self.flow.resolve(given.value))
        if self.factor.shape is None or shape is None or axis is None:
            return False
        return _at(self.factor.shape, axis if axis < 0 else axis - len(shape)) == "1"


def _at(shape: Shape | None, position: int) -> str | None:
    """The factor's size at a position counted from the right; absent dims are 1."""
    if shape is None:
        return None
    return shape[position] if -position <= len(shape) else "1"


def _is_infinity(flow: Dataflow, node: cst.Call) -> bool:
    if flow.call_name(node) != "builtins.float" or not node.args:
        return False
    return "inf" in flow.source(node.args[0].value)
