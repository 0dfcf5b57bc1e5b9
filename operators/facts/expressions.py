"""Expressions of a kernel, in the lanes that a walk follows (`facts/lanes.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import libcst as cst
import libcst.matchers as m

from gatecert.operators.facts import elements
from gatecert.operators.facts.elements import FALSE, TRUE, Lane
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.scene import Scene
from gatecert.operators.facts.tiles import merge_rank, subscripted, transposed
from gatecert.operators.facts.values import (
    Change,
    ChangeKind,
    Conjunct,
    ConjunctKind,
    Findings,
    Lanes,
    Value,
    add_sums,
    join_values,
    number,
    short,
    sum_text,
    terms,
    weakest,
)
from gatecert.operators.records import Reveal

MAX_DEPTH = 4
"""How deep helpers and constants are followed."""

_OPERATORS: Mapping[type[cst.CSTNode], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.DivideAssign: "/",
    cst.FloorDivideAssign: "//",
    cst.ModuloAssign: "%",
    cst.BitAndAssign: "&",
    cst.BitOrAssign: "|",
}
_ONE = (("", 1),)
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Expressions:
    """Values of names, operators and comparisons; calls are left to `facts/calls.py`."""

    def __init__(self, scene: Scene, lanes: Lanes | None, change: Change | None) -> None:
        self.findings = Findings()
        self._scene = scene
        self._module = scene.kernel.module
        self._words = scene.words
        self._lanes = lanes
        self._change = change
        self._names: dict[str, Value] = {}
        self._depth = 0
        self._standings: set[str] = set()
        self._taken: dict[cst.CSTNode, bool] = {}

    def _call(self, node: cst.Call) -> Value:
        raise NotImplementedError

    def _indices(self) -> frozenset[str]:
        return self._lanes.indices if self._lanes is not None else frozenset()

    def _reveal(self) -> frozenset[Reveal]:
        return self._lanes.reveal if self._lanes is not None else frozenset()

    def _eval(self, node: cst.BaseExpression) -> Value:
        value = self._expression(node)
        lanes = self._lanes
        if lanes is None:
            self.findings.seen[node] = value
            return value
        if lanes.conjunct.opaque and value.text == lanes.conjunct.index:
            value = value.holds(lanes.truth, lanes.truth, same=True)
        elif value.text == lanes.outside_text:
            value = value.holds(Lane.OUTSIDE, Lane.OUTSIDE, same=True)
        change = self._change
        if change is None or change.kind is not ChangeKind.REPLACED or change.node is not node:
            return value
        return self._replaced(value, change.part)

    def _replaced(self, value: Value, part: cst.BaseExpression | None) -> Value:
        """An expression of which only a part is left; a term without parts becomes true."""
        if part is not None:
            return value.holds(value.before, self._eval(part).after, same=False)
        return value.holds(FALSE, TRUE, same=False) if value.before == FALSE else value

    def _expression(self, node: cst.BaseExpression) -> Value:
        match node:
            case cst.Name():
                return self._name(node.value)
            case cst.Integer() | cst.Float():
                return number(node.value, float(node.evaluated_value))
            case cst.UnaryOperation():
                return self._unary(node)
            case cst.BinaryOperation():
                left, right = self._eval(node.left), self._eval(node.right)
                return self._binary(operator_symbol(node.operator), left, right)
            case cst.BooleanOperation():
                symbol = "&" if isinstance(node.operator, cst.And) else "|"
                return self._binary(symbol, self._eval(node.left), self._eval(node.right))
            case cst.Comparison():
                return self._comparison(node)
            case cst.Call():
                return self._call(node)
            case cst.Subscript():
                return self._subscript(node)
            case cst.Attribute():
                return self._attribute(node)
            case cst.IfExp():
                if node in self._taken:
                    return self._eval(node.body if self._taken[node] else node.orelse)
                self._eval(node.test)
                yes, no = self._eval(node.body), self._eval(node.orelse)
                return join_values(yes, no, self._source(node))
            case cst.Tuple() | cst.List():
                parts = tuple(self._eval(element.value) for element in node.elements)
                return replace(self._mixed(self._source(node), parts), parts=parts)
            case _:
                return Value(self._source(node))

    def _source(self, node: cst.CSTNode) -> str:
        return short("".join(self._module.source(node).split()))

    def _name(self, name: str) -> Value:
        if name in self._names:
            return self._names[name]
        if name in ("True", "False", "None"):  # as a mask, None lets every lane through
            return number(name, float(name != "False"))
        constant = self._scene.constants.get(name)
        if constant is not None and self._depth < MAX_DEPTH:
            self._depth += 1
            value = self._eval(constant)
            self._depth -= 1
            return value
        return Value(name)

    def _attribute(self, node: cst.Attribute) -> Value:
        if node.attr.value == "T":
            return transposed(self._eval(node.value))
        if dotted(node) in ("math.inf", "torch.inf", "float.inf"):
            return number("inf", float("inf"))
        return Value(self._source(node))

    def _unary(self, node: cst.UnaryOperation) -> Value:
        x = self._eval(node.expression)
        if isinstance(node.operator, cst.Minus):
            zero = number("0", 0.0)
            return self._binary("-", zero, x)
        if isinstance(node.operator, cst.Not | cst.BitInvert):
            text = f"~{x.text}"
            flipped = x.holds(elements.negate(x.before), elements.negate(x.after), x.same)
            return replace(flipped.named(text), conjuncts=())
        return x

    def _subscript(self, node: cst.Subscript) -> Value:
        x = self._eval(node.value)
        position = m.SubscriptElement(m.Index(m.Integer()))
        if x.parts and len(node.slice) == 1 and m.matches(node.slice[0], position):
            index = int(cst.ensure_type(cst.ensure_type(node.slice[0].slice, cst.Index).value,
                                        cst.Integer).evaluated_value)  # fmt: skip
            if index < len(x.parts):
                return x.parts[index]
        placed = subscripted(x, node)
        return placed if placed is not None else Value(self._source(node))

    def _mixed(self, text: str, parts: Sequence[Value]) -> Value:
        """Tiles broadcast together; the lanes' contents are left to the caller."""
        return Value(
            text=short(text),
            rank=merge_rank(part.rank for part in parts),
            placed=frozenset[tuple[str, int]]().union(*(part.placed for part in parts)),
            same=all(part.same for part in parts),
            leak=weakest(*(part.leak for part in parts)),
            index=any(part.index for part in parts) and not any(part.loaded for part in parts),
            loaded=any(part.loaded for part in parts),
            foreign=any(part.foreign for part in parts),
        )

    def _binary(self, name: str, x: Value, y: Value) -> Value:
        mixed = self._mixed(f"({x.text}{name}{y.text})", (x, y))
        if name in ("+", "-"):
            total = add_sums(x.sum, y.sum, 1 if name == "+" else -1)
            mixed = replace(mixed, text=sum_text(total), addends=total)
        elif name in ("*", "maximum", "minimum"):
            mixed = mixed.named(f"({name.join(sorted((x.text, y.text)))})")
        if name == "&":
            both = mixed.holds(
                elements.both(x.before, y.before), elements.both(x.after, y.after), mixed.same
            )
            return replace(both, conjuncts=(*terms(x), *terms(y)))
        if name == "|":
            return mixed.holds(
                elements.either(x.before, y.before), elements.either(x.after, y.after), mixed.same
            )
        if name in ("+", "-", "*", "//") and self._stands(x, y):
            self._standings.add(mixed.text)
        before = elements.apply_binary(name, x.before, y.before)
        after = elements.apply_binary(name, x.after, y.after)
        same = mixed.same
        if name in ("maximum", "minimum"):
            # A lane that yields to the other operand both times makes no difference.
            for one, other in ((x, y), (y, x)):
                hidden = elements.yields(name, one.before) and elements.yields(name, one.after)
                same = same or (hidden and other.same)
        return mixed.holds(before, after, same)

    def _stands(self, *parts: Value) -> bool:
        """Whether scalars are program ids and loop variables, moved and scaled by constants."""
        others = [part for part in parts if part.text not in self._standings]
        return len(others) < len(parts) and all(
            not isinstance(part.before, Lane) or part.text in self._scene.fixed for part in others
        )

    def _comparison(self, node: cst.Comparison) -> Value:
        left = self._eval(node.left)
        result: Value | None = None
        for position, target in enumerate(node.comparisons):
            right = self._eval(target.comparator)
            term = self._term(node, position, left, right)
            result = term if result is None else self._binary("&", result, term)
            left = right
        assert result is not None
        return result

    def _term(self, node: cst.Comparison, position: int, left: Value, right: Value) -> Value:
        target = node.comparisons[position]
        symbol = operator_symbol(target.operator)
        conjunct = _conjunct(node, position, symbol, left, right, self._standings)
        value = self._binary(symbol, left, right)
        lanes, change = self._lanes, self._change
        if lanes is not None and lanes.conjunct.key == conjunct.key:
            agree = lanes.conjunct.negated == conjunct.negated
            truth = lanes.truth if agree else elements.negate(lanes.truth)
            value = value.holds(truth, truth, same=True)
        elif lanes is not None and lanes.outside:
            for index, other, sign in ((left, right, symbol), (right, left, _MIRRORED.get(symbol))):
                if index.text == lanes.conjunct.index and other.text in lanes.peers:
                    larger = float(sign in (">", ">="))
                    value = value.holds(larger, larger, same=True)
        if change is not None and node in change.denied:
            value = value.holds(FALSE, FALSE, same=True)
        if (
            change is not None
            and change.kind is ChangeKind.COMPARISON_FLIPPED
            and change.node is node
            and change.target == position
        ):
            flipped = elements.negate(value.before)
            value = value.holds(value.before, flipped, same=False)
        return replace(value, conjuncts=(conjunct,), index=False, foreign=False)


def operator_symbol(node: cst.CSTNode) -> str:
    return _OPERATORS.get(type(node), type(node).__name__)


def _conjunct(
    node: cst.Comparison,
    position: int,
    symbol: str,
    left: Value,
    right: Value,
    standings: Set[str],
) -> Conjunct:
    """A comparison as a term of a mask."""
    for index, bound, sign, first in (
        (left, right, symbol, False),
        (right, left, _MIRRORED.get(symbol, ""), True),
    ):
        if sign not in _MIRRORED or bound.placed or not (index.placed or index.index):
            continue
        if not index.placed and bound.index:
            continue
        # `<=` and `>` say of the next index what `<` and `>=` say of this one.
        distance = add_sums(index.sum, bound.sum, -1)
        if sign in ("<=", ">"):
            distance = add_sums(distance, _ONE, -1)
        upper = sign in ("<", "<=")
        return Conjunct(
            ConjunctKind.BOUND if upper and index.index else ConjunctKind.OTHER,
            key=f"{sum_text(distance)}<0",
            index=index.text,
            placed=index.placed,
            node=node,
            target=position,
            negated=not upper,
            outside=upper or bound.before == 0.0,
            loaded=index.loaded,
            standing=bound.text in standings and bool(index.placed),
            addends=index.sum,
            bound=sum_text(add_sums(index.sum, distance, -1)),
            bound_first=first,
        )
    text = f"{left.text}{symbol}{right.text}"
    sentinel = symbol == "!=" and left.loaded and not right.placed
    return Conjunct(
        ConjunctKind.OTHER,
        key=text,
        index=left.text if sentinel else text,
        placed=left.placed | right.placed,
        node=node,
        target=position,
        outside=sentinel,
        loaded=left.loaded or right.loaded,
    )
