"""Who hits an address: one program or several, one lane of a tile or several.

An address is written out as a sum of products of program ids, lane numbers, parameters and
parts that are not looked into. Strides are taken to be those of a tensor whose elements do not
overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.dataflow import ParameterKind
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.shapes import Typing

_TRANSPARENT = frozenset({"to", "multiple_of", "max_contiguous", "max_constancy", "broadcast_to"})
_MAX_TERMS = 200


@dataclass(frozen=True, slots=True, order=True)
class Factor:
    """One factor of a product; `size` is the number of lanes, or what a program id is split by."""

    kind: str
    text: str
    size: str = ""


Term = tuple[Factor, ...]

PROGRAM, QUOTIENT, REMAINDER = "program", "quotient", "remainder"
LANE, SIZE, CONSTANT, SCALAR, VECTOR = "lane", "size", "constant", "scalar", "vector"


def lanes_collide(typing: Typing, address: cst.CSTNode) -> bool:
    """Whether two lanes of one program may hit one address: an index was loaded or folded."""
    return any(factor.kind == VECTOR for term in _terms(typing, address) for factor in term)


def programs_collide(typing: Typing, address: cst.CSTNode) -> bool:
    """Whether two programs may hit one address; so it is, too, if nothing says the contrary."""
    flow = typing.flow
    axes = {_axis(flow.source(call)) for call in flow.calls("program_id")}
    terms = list(_terms(typing, address))
    return not axes or not all(_owned(terms, axis) for axis in axes)


def _axis(text: str) -> str:
    return "".join(text.split()).partition("(")[2].rstrip(")").removeprefix("axis=")


def _owned(terms: list[Term], axis: str) -> bool:
    """Whether programs that differ along an axis never share an address."""
    halves = (QUOTIENT, REMAINDER)
    parts = {f for term in terms for f in term if f.text == axis and f.kind in halves}
    whole = Factor(PROGRAM, axis)
    if any(whole in term for term in terms):
        return not parts and _separates(terms, whole)
    by_size: dict[str, set[str]] = {}
    for part in parts:
        by_size.setdefault(part.size, set()).add(part.kind)
    return (
        len(by_size) == 1
        and by_size.popitem()[1] == set(halves)
        and all(_separates(terms, part) for part in parts)
    )


def _separates(terms: list[Term], program: Factor) -> bool:
    """Whether each value of a program number has addresses of its own.

    It has where the number counts rows (its factor is a stride, a parameter of the launch), and
    where it counts tiles and nothing but the tile's lanes is added at that scale.
    """
    mine = [term for term in terms if program in term]
    if len(mine) != 1:
        return False
    rest = _without(mine[0], program)
    if any(f.kind not in (SIZE, CONSTANT) for f in rest):
        return False
    others = [term for term in terms if term is not mine[0]]
    constants = [f for f in rest if f.kind == CONSTANT]
    if not constants:
        beside = [t for t in others if _scale(t) == rest and _moves(t)]
        return not beside and (bool(rest) or not any(_moves(t) for t in others))
    for tile in constants:
        scale = _without(rest, tile)
        if any(f.kind == CONSTANT for f in scale):
            continue
        beside = [t for t in others if _scale(t) == scale and _moves(t)]
        if all(_of_tile(t, tile) for t in beside):
            return True
    return False


def _of_tile(term: Term, tile: Factor) -> bool:
    moving = [f for f in term if f.kind not in (SIZE, CONSTANT)]
    return len(moving) == 1 and moving[0].kind == LANE and moving[0].size == tile.text


def _scale(term: Term) -> Term:
    return tuple(f for f in term if f.kind in (SIZE, CONSTANT))


def _moves(term: Term) -> bool:
    return any(f.kind not in (SIZE, CONSTANT) for f in term)


def _without(term: Term, factor: Factor) -> Term:
    found = list(term)
    found.remove(factor)
    return tuple(found)


# -- writing out


def _terms(typing: Typing, node: cst.CSTNode) -> Iterable[Term]:
    """Products whose sum is an address; pointers and numbers are left out."""
    terms = _expand(typing, node, frozenset())
    return [term for term in terms if term] if len(terms) <= _MAX_TERMS else [_opaque(typing, node)]


def _expand(typing: Typing, node: cst.CSTNode, seen: frozenset[cst.CSTNode]) -> list[Term]:
    flow = typing.flow
    if node in seen or len(seen) > _MAX_TERMS:
        return [(Factor(VECTOR, flow.source(node)),)]
    seen = seen | {node}
    match node:
        case cst.BaseNumber():
            return [()]
        case cst.Name():
            return _name(typing, node, seen)
        case cst.Subscript():
            return _expand(typing, node.value, seen)
        case cst.UnaryOperation() if isinstance(node.operator, cst.Minus | cst.Plus):
            return _expand(typing, node.expression, seen)
        case cst.BinaryOperation() | cst.AugAssign():
            return _combined(typing, node, seen)
        case cst.Call():
            name = flow.call_name(node)
            if name == "program_id":
                return [(Factor(PROGRAM, _axis(flow.source(node))),)]
            if name == "arange" and len(node.args) == 2:
                return [(Factor(LANE, flow.source(node), flow.source(node.args[1].value)),)]
            if name in _TRANSPARENT:
                return _expand(typing, flow.arguments(node)[0].value, seen)
    return [_opaque(typing, node)]


def _name(typing: Typing, node: cst.Name, seen: frozenset[cst.CSTNode]) -> list[Term]:
    flow = typing.flow
    reaching = flow.reaching(node)
    if not reaching:
        return [(Factor(CONSTANT, node.value),)]
    if len(reaching) != 1 or reaching[0].element is not None:
        return [_opaque(typing, node)]
    definition = reaching[0]
    if definition.kind is DefinitionKind.PARAMETER:
        kind = flow.parameters().get(definition.name)
        if kind is ParameterKind.POINTER:
            return [()]
        return [(Factor(CONSTANT if kind is ParameterKind.CONSTEXPR else SIZE, node.value),)]
    if definition.value is None:
        return [_opaque(typing, node)]
    return _expand(typing, definition.value, seen)


def _combined(
    typing: Typing, node: cst.BinaryOperation | cst.AugAssign, seen: frozenset[cst.CSTNode]
) -> list[Term]:
    flow = typing.flow
    left, right = (n for _, n in flow.operands(node))
    match node.operator:
        case cst.Add() | cst.AddAssign() | cst.Subtract() | cst.SubtractAssign():
            return _expand(typing, left, seen) + _expand(typing, right, seen)
        case cst.Multiply() | cst.MultiplyAssign():
            mine, others = _expand(typing, left, seen), _expand(typing, right, seen)
            if len(mine) * len(others) > _MAX_TERMS:
                return [_opaque(typing, node)]
            return [tuple(sorted(a + b)) for a in mine for b in others]
        case cst.FloorDivide() | cst.Modulo():
            whole = _expand(typing, left, seen)
            if len(whole) == 1 and len(whole[0]) == 1 and whole[0][0].kind == PROGRAM:
                divides = isinstance(node.operator, cst.FloorDivide)
                kind = QUOTIENT if divides else REMAINDER
                return [(Factor(kind, whole[0][0].text, flow.source(right)),)]
    return [_opaque(typing, node)]


def _opaque(typing: Typing, node: cst.CSTNode) -> Term:
    """What is not looked into: one number for a program, or one for each lane."""
    flow = typing.flow
    scalar = typing.safe_shape(node) == ()
    fixed = scalar and not any(_varies(typing, n) for n in _all_inputs(typing, node))
    kind = SIZE if fixed else SCALAR if scalar else VECTOR
    return (Factor(kind, flow.source(node)),)


def _varies(typing: Typing, node: cst.CSTNode) -> bool:
    """Whether a value differs between programs or turns of a loop."""
    flow = typing.flow
    if isinstance(node, cst.Name):
        return any(d.kind is DefinitionKind.LOOP_VARIABLE for d in flow.reaching(node))
    name = flow.call_name(node)
    return name in ("program_id", "load", "arange") or name.startswith(("helper.", "atomic"))


def _all_inputs(typing: Typing, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    seen: set[cst.CSTNode] = set()
    queue = [node]
    while queue:
        current = queue.pop()
        if current not in seen:
            seen.add(current)
            yield current
            queue.extend(n for _, n in typing.flow.inputs(current))
