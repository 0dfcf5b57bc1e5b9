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


def stand_in(module: ModuleSyntax, node: cst.Call, part: cst.BaseExpression) -> Edit:
    """Put an argument in the place of its call, in parentheses where it needs them."""
    text = module.source(part)
    atom = isinstance(part, cst.Name | cst.BaseNumber | cst.Call | cst.Subscript | cst.Attribute)
    alone = isinstance(module.parents[node], cst.Arg | cst.Assign | cst.AugAssign | cst.Return)
    bare = atom or alone or bool(part.lpar) or bool(node.lpar)
    return replace(module, node, text if bare else f"({text})")


def unwrap(module: ModuleSyntax, branch: cst.If) -> tuple[Edit, ...]:
    """Put a branch's body in its place, one level out; none where a text runs over lines."""
    start = module.inner_span(branch)[0]
    first, last = branch.body.body[0], branch.body.body[-1]
    begin, end = module.inner_span(first)[0], module.inner_span(last)[1]
    if isinstance(branch.body, cst.SimpleStatementSuite):
        return (Edit(start, begin, ""),)
    if _has_long_text(branch):
        return ()
    deep = begin - module.text.rindex("\n", 0, begin) - 1
    by = deep - (start - module.text.rindex("\n", 0, start) - 1)
    # The header ends where its line does; comments before the first statement stay.
    header = module.text.index("\n", module.span(branch.test)[1]) + 1
    edits = [Edit(start, header + deep, "")]
    line = module.text.index("\n", header) + 1
    while line < end:
        spaces = len(module.text[line:]) - len(module.text[line:].lstrip(" \t"))
        if spaces:
            edits.append(Edit(line, line + min(by, spaces), ""))
        line = module.text.find("\n", line) + 1 or end
    return tuple(edits)


def _has_long_text(node: cst.CSTNode) -> bool:
    """Whether a string that holds line breaks is somewhere inside."""
    if isinstance(node, cst.SimpleString):
        return "\n" in node.value
    return any(_has_long_text(child) for child in node.children)


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
