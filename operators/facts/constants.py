"""Numbers that a kernel's source spells out."""

from __future__ import annotations

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow


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
