"""Does a changed scale or offset reach an output, or does it cancel on the way?

A planted bug often multiplies one expression by a factor or shifts it by a term: a softmax
without the maximum computes exp(x) = exp(m) * exp(x - m). In exact arithmetic such a change
may cancel (numerator over denominator). This module follows the change through the kernel as
a power of the factor, so that labels can tell "wrong" from "merely unstable" by rule.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.language import EXPONENTIALS, LOGARITHMS, REDUCTIONS, SCANS, Role
from gatecert.operators.facts.shapes import Shape, Typing, integer


class Form(enum.Enum):
    """How a changed value relates to the right one, for a factor E or a term M = log E."""

    UNKNOWN = "unknown"
    """Not computed yet."""
    ZERO = "zero"
    """Zero: any scale leaves it as it is."""
    INFINITE = "infinite"
    """Infinite: any scale or offset leaves it as it is."""
    SCALED = "scaled"
    """Right value times E^degree; degree 0 is unchanged."""
    SHIFTED = "shifted"
    """Right value plus degree * M."""
    OTHER = "other"
    """Anything else: wrong."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change; equal ones may be added, opposite ones cancel."""

    form: Form
    degree: float = 0.0

    @property
    def harmless(self) -> bool:
        """Whether the value is what it should be."""
        return self.form in _CONSTANT or (self.form is Form.SCALED and self.degree == 0.0)


_CONSTANT = frozenset({Form.UNKNOWN, Form.ZERO, Form.INFINITE})
UNKNOWN = Change(Form.UNKNOWN)
ZERO = Change(Form.ZERO)
INFINITE = Change(Form.INFINITE)
SAME = Change(Form.SCALED)
OTHER = Change(Form.OTHER)
SCALED = Change(Form.SCALED, 1.0)
SHIFTED = Change(Form.SHIFTED, 1.0)

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
        where = flow.kernel.module.inner
        # Operands before what holds them, so that one turn mostly settles a statement.
        self._order = sorted(
            flow.expressions(),
            key=lambda n: (
                where[n].end.line, where[n].end.column, -where[n].start.line, -where[n].start.column,
            ),
        )  # fmt: skip
        self._observed = _observed(flow)
        self._unchanged = _Changes(typing, {}, Factor(), {}, self._order, {}).changes

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
        touched = set(seeds) | set(same_as or {})
        queue = list(touched)
        while queue:
            for _, node in self._typing.flow.outputs(queue.pop()):
                if node not in touched:
                    touched.add(node)
                    queue.append(node)
        order = [n for n in self._order if n in touched]
        known = {n: c for n, c in self._unchanged.items() if n not in touched}
        walk = _Changes(self._typing, seeds, factor, same_as or {}, order, known)
        return all(walk.settled(n).harmless for n in self._observed)


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
    ) -> None:
        self.typing = typing
        self.flow = typing.flow
        self.seeds = seeds
        self.factor = factor
        self.same_as = same_as
        self.order = order
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
            new = _join(self.settled(node), new)
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
                change = self.settled(node.expression)
                shifted = change.form is Form.SHIFTED
                return Change(change.form, -change.degree) if shifted else change
            case cst.Comparison():
                parts = [self.settled(n) for _, n in self.flow.operands(node)]
                return _unchanged(_join(*parts))
            case cst.Call():
                return self._call(node)
            case cst.Subscript() | cst.Attribute():
                first = self.flow.operands(node)[0]
                return self.settled(first[1]) if first[0] is Role.VALUE else SAME
            case cst.IfExp():
                if not _unchanged(self.settled(node.test)).harmless:
                    return OTHER
                return _join(self.settled(node.body), self.settled(node.orelse))
            case _:
                parts = [self.settled(n) for _, n in self.flow.operands(node)]
                return _all_harmless(parts)

    def _name(self, node: cst.Name) -> Change:
        reaching = self.flow.reaching(node)
        if not reaching:
            return SAME
        changes: list[Change] = []
        inside = set(self.flow.loops(node))
        for definition in reaching:
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
        return _join(*changes)

    def _binary(self, node: cst.BinaryOperation | cst.AugAssign) -> Change:
        a, b = (node.left, node.right) if isinstance(node, cst.BinaryOperation) else (
            node.target, node.value,
        )  # fmt: skip
        left, right = self.settled(a), self.settled(b)
        match node.operator:
            case cst.Add() | cst.AddAssign():
                return _sum(left, right, 1.0)
            case cst.Subtract() | cst.SubtractAssign():
                return _sum(left, right, -1.0)
            case cst.Multiply() | cst.MultiplyAssign():
                return self._product(left, right, a, b)
            case cst.Divide() | cst.DivideAssign():
                if UNKNOWN in (left, right):
                    return UNKNOWN
                if left.form is Form.SHIFTED:
                    value = self._constant(b)
                    return OTHER if value is None else _shifted(left.degree / value)
                inverse = Change(right.form, -right.degree)
                return self._product(left, inverse, a, b) if right.form is Form.SCALED else (
                    _all_harmless([left, right])
                )  # fmt: skip
            case _:
                return _all_harmless([left, right])

    def _product(self, left: Change, right: Change, a: cst.CSTNode, b: cst.CSTNode) -> Change:
        for special in (UNKNOWN, ZERO, INFINITE):
            if special in (left, right):
                return special
        if left.form is Form.SCALED and right.form is Form.SCALED:
            return _scaled(left.degree + right.degree)
        for shifted, other, node in ((left, right, b), (right, left, a)):
            value = self._constant(node)
            if shifted.form is Form.SHIFTED and other == SAME and value is not None:
                return _shifted(shifted.degree * value)
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
                return _scaled(first.degree * EXPONENTIALS[name])
        elif name in LOGARITHMS:
            if first.form is Form.SCALED:
                return _shifted(first.degree * LOGARITHMS[name])
        elif name in ("sqrt", "rsqrt") and first.form is Form.SCALED:
            return _scaled(first.degree * (0.5 if name == "sqrt" else -0.5))
        elif name in _JOINED:
            tests = [self.settled(n) for r, n in self.flow.operands(node) if r is Role.CONDITION]
            return _join(*parts) if all(_unchanged(t).harmless for t in tests) else OTHER
        elif name in REDUCTIONS or name in SCANS:
            linear = name in ("sum", "cumsum")
            allowed = first.form is Form.SCALED or (first.form is Form.SHIFTED and not linear)
            kept = name in ("sum", "max", "min", "cumsum") and allowed
            if first.harmless or (kept and self._uniform(node, values[0])):
                return first
            return OTHER
        elif name == "div" and len(parts) == 2 and all(p.form is Form.SCALED for p in parts):
            return _scaled(parts[0].degree - parts[1].degree)
        elif name == "fma" and len(parts) == 3:
            return _sum(self._product(parts[0], parts[1], values[0], values[1]), parts[2], 1.0)
        elif name == "dot" and len(parts) >= 2:
            return self._dot(parts, values)
        return _all_harmless(parts)

    def _dot(self, parts: list[Change], values: list[cst.CSTNode]) -> Change:
        shape = self.factor.shape
        contracted = [_at(shape, -1), _at(shape, -2)]
        for part, size in zip(parts[:2], contracted, strict=True):
            if not part.harmless and size != "1":
                return OTHER
        product = self._product(parts[0], parts[1], values[0], values[1])
        return _sum(product, parts[2], 1.0) if len(parts) > 2 else product

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

    def _constant(self, node: cst.CSTNode) -> float | None:
        """The value of a literal, also one that a name of kernel or module stands for."""
        resolved = self.flow.resolve(node)
        if isinstance(resolved, cst.Name):
            return module_constant(self.flow, resolved.value)
        return literal(resolved)


def _at(shape: Shape | None, position: int) -> str | None:
    """The factor's size at a position counted from the right; absent dims are 1."""
    if shape is None:
        return None
    return shape[position] if -position <= len(shape) else "1"


def literal(node: cst.CSTNode) -> float | None:
    """The value of a number, `tl.constexpr(number)` or `-number`."""
    if isinstance(node, cst.Integer | cst.Float):
        return float(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = literal(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.Call) and len(node.args) == 1:
        return literal(node.args[0].value)
    return None


def module_constant(flow: Dataflow, name: str) -> float | None:
    """The number that the module assigns to a global name, if it does so just once."""
    found: list[float | None] = []
    for statement in flow.kernel.module.tree.body:
        for part in getattr(statement, "body", ()) if isinstance(
            statement, cst.SimpleStatementLine
        ) else ():  # fmt: skip
            targets = [t.target for t in part.targets] if isinstance(part, cst.Assign) else (
                [part.target] if isinstance(part, cst.AnnAssign) else []
            )  # fmt: skip
            if any(isinstance(t, cst.Name) and t.value == name for t in targets):
                found.append(None if part.value is None else literal(part.value))
    return found[0] if len(found) == 1 else None


def _is_infinity(flow: Dataflow, node: cst.Call) -> bool:
    if flow.call_name(node) != "builtins.float" or not node.args:
        return False
    return "inf" in flow.source(node.args[0].value)


def _scaled(degree: float) -> Change:
    return Change(Form.SCALED, _clean(degree))


def _shifted(degree: float) -> Change:
    degree = _clean(degree)
    return SAME if degree == 0.0 else Change(Form.SHIFTED, degree)


def _clean(degree: float) -> float:
    return float(round(degree)) if math.isclose(degree, round(degree), abs_tol=1e-6) else degree


def _sum(left: Change, right: Change, sign: float) -> Change:
    for special in (UNKNOWN, INFINITE):
        if special in (left, right):
            return special
    if Form.SHIFTED in (left.form, right.form):
        degrees = [
            c.degree if c.form is Form.SHIFTED else 0.0 if c.harmless else math.nan
            for c in (left, right)
        ]
        total = degrees[0] + sign * degrees[1]
        return OTHER if math.isnan(total) else _shifted(total)
    if ZERO in (left, right):
        return right if left == ZERO else left
    return left if left == right else OTHER


def _join(*changes: Change) -> Change:
    forms = {c.form for c in changes}
    distinct = {c for c in changes if c.form not in _CONSTANT}
    if len(distinct) > 1 or (Form.SHIFTED in forms and Form.ZERO in forms):
        return OTHER
    if distinct:
        return distinct.pop()
    if Form.ZERO in forms and Form.INFINITE in forms:
        return SAME
    return ZERO if Form.ZERO in forms else INFINITE if Form.INFINITE in forms else UNKNOWN


def _unchanged(joined: Change) -> Change:
    """A comparison of values that changed alike says what it said before."""
    return joined if joined == UNKNOWN else OTHER if joined.form is Form.OTHER else SAME


def _all_harmless(parts: list[Change]) -> Change:
    if UNKNOWN in parts:
        return UNKNOWN
    return SAME if all(p.harmless for p in parts) else OTHER
