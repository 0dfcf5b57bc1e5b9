"""Edits that several operators share, as spans of the module's text."""

from __future__ import annotations

import libcst as cst

from gatecert.operators.facts.kernel import ModuleSyntax
from gatecert.operators.records import Edit


def replace(module: ModuleSyntax, node: cst.CSTNode, text: str) -> Edit:
    """Put `text` in the place of a node, inside the node's own parentheses."""
    start, end = module.inner_span(node)
    return Edit(start, end, text)


def keep(module: ModuleSyntax, node: cst.CSTNode, part: cst.CSTNode) -> Edit:
    """Put one part of an expression in the place of the whole.

    The part must bind at least as tightly as the whole (a factor of a product, an addend of a
    sum): then no new parentheses are needed.
    """
    return replace(module, node, module.source(part))


def drop_argument(module: ModuleSyntax, call: cst.Call, arg: cst.Arg) -> Edit:
    """Remove one argument with the comma that joined it to the others."""
    position = call.args.index(arg)
    start, end = module.span(arg.keyword or arg.value)[0], module.span(arg.value)[1]
    if position > 0:
        start = module.span(call.args[position - 1].value)[1]
    elif len(call.args) > 1:
        after = call.args[1]
        end = module.span(after.keyword or after.value)[0]
    return Edit(start, end, "")


def drop_statement(module: ModuleSyntax, statement: cst.BaseSmallStatement) -> Edit:
    """Put `pass` in the place of a statement, so that its block and line stay."""
    start, end = module.inner_span(statement)
    return Edit(start, end, "pass")
