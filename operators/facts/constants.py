"""Numbers that a kernel's source spells out."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow

SENTINEL = 1e4
"""Larger numbers stand for infinity."""


def literal(node: cst.CSTNode) -> float | None:
    """The value of a number, also with a sign or inside `tl.constexpr`, `float` or `.to`."""
    node = unwrapped(node)
    if isinstance(node, cst.Integer | cst.Float):
        return float(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = literal(node.expression)
        return None if inner is None else -inner
    return None


def unwrapped(node: cst.CSTNode) -> cst.CSTNode:
    """What `tl.constexpr(node)`, `float(node)` or `node.to(dtype)` is made from."""
    while isinstance(node, cst.Call):
        called = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        name = called.value if isinstance(called, cst.Name) else ""
        if name == "to" and isinstance(node.func, cst.Attribute):
            node = node.func.value
        elif name in ("constexpr", "float") and len(node.args) == 1:
            node = node.args[0].value
        else:
            return node
    return node


def known_number(flow: Dataflow, node: cst.CSTNode) -> float | None:
    """The value of a literal, also one that a name of kernel or module stands for."""
    resolved = flow.resolve(node)
    if isinstance(resolved, cst.Name):
        return module_constant(flow, resolved.value) if not flow.reaching(resolved) else None
    return literal(resolved)


def module_constant(flow: Dataflow, name: str) -> float | None:
    """The number that the module assigns to a global name, if it does so just once."""
    value = module_value(flow, name)
    return None if value is None else literal(value)


def module_value(flow: Dataflow, name: str) -> cst.CSTNode | None:
    """What the module assigns to a global name, if it does so just once."""
    found = [value for target, value in _assignments(flow.kernel.module.tree) if target == name]
    return found[0] if len(found) == 1 else None


def _assignments(module: cst.Module) -> Iterator[tuple[str, cst.CSTNode | None]]:
    for statement in module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for part in statement.body:
            targets: list[cst.BaseExpression] = []
            if isinstance(part, cst.Assign):
                targets = [target.target for target in part.targets]
            elif isinstance(part, cst.AnnAssign | cst.AugAssign):
                targets = [part.target]
            for target in targets:
                if isinstance(target, cst.Name):
                    yield target.value, getattr(part, "value", None)
