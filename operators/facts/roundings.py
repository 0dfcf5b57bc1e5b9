"""Divisions that round up, in the ways people write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.constants import known_number, literal
from gatecert.operators.facts.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class CeilingDivision:
    """`tl.cdiv(a, b)` or `(a + b - 1) // b`, at `node`."""

    node: cst.BaseExpression
    dividend: cst.CSTNode
    divisor: cst.CSTNode


def ceiling_divisions(flow: Dataflow) -> Iterator[CeilingDivision]:
    """All of a kernel, in program order; a division by one rounds nothing."""
    for node in flow.expressions():
        found = ceiling_division(flow, node)
        if found is not None and known_number(flow, found.divisor) != 1.0:
            yield found


def ceiling_division(flow: Dataflow, node: cst.CSTNode) -> CeilingDivision | None:
    """The expression as a division that rounds up, if it is one."""
    if isinstance(node, cst.Call) and flow.call_name(node).split(".")[-1] == "cdiv":
        given = {arg.keyword.value if arg.keyword else i: arg for i, arg in enumerate(node.args)}
        dividend, divisor = given.get("x", given.get(0)), given.get("div", given.get(1))
        if dividend is None or divisor is None or any(arg.star for arg in node.args):
            return None
        return CeilingDivision(node, dividend.value, divisor.value)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.FloorDivide):
        terms = list(_terms(node.left, 1))
        dividend_node = _dividend(flow, terms, node.right)
        if dividend_node is not None:
            return CeilingDivision(node, dividend_node, node.right)
    return None


def _terms(node: cst.CSTNode, sign: int) -> Iterator[tuple[int, cst.CSTNode]]:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add | cst.Subtract):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.operator, cst.Add) else -sign)
    else:
        yield sign, node


def _dividend(
    flow: Dataflow, terms: list[tuple[int, cst.CSTNode]], divisor: cst.CSTNode
) -> cst.CSTNode | None:
    """The one term besides `divisor - 1`, where that is what the rest adds up to."""
    numbers = [sign * n for sign, term in terms if (n := literal(term)) is not None]
    others = [(sign, term) for sign, term in terms if literal(term) is None]
    by = literal(divisor)
    if by is None:
        same = [pair for pair in others if pair[0] == 1 and flow.same_value(pair[1], divisor)]
        if not same or sum(numbers) != -1.0:
            return None
        others.remove(same[-1])
    elif not numbers or sum(numbers) != by - 1.0:
        return None
    return others[0][1] if len(others) == 1 and others[0][0] == 1 else None
