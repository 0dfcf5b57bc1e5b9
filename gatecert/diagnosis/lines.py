"""Which lines of a file a mutant changes, as statements: what must run for it to be reached."""

from __future__ import annotations

import ast
import difflib


def changed_lines(before: str, after: str) -> tuple[frozenset[int], frozenset[int]]:
    """The numbers of the lines that differ, in the one text and in the other, widened to whole
    statements. Either is empty where its lines are only left out of the other."""
    old, new = before.splitlines(), after.splitlines()
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    here: set[int] = set()
    there: set[int] = set()
    for tag, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if tag != "equal":
            here.update(range(old_from + 1, old_to + 1))
            there.update(range(new_from + 1, new_to + 1))
    return _widened(before, here), _widened(after, there)


def _widened(text: str, lines: set[int]) -> frozenset[int]:
    found = set(lines)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            head = _head(node)
            if not lines.isdisjoint(head):
                # The head of a function runs where it is defined; what counts are its calls.
                found = found - set(head) | set(_runs_with(node, head))
    return frozenset(found)


def _head(node: ast.stmt) -> range:
    """The lines of a simple statement; of any other, those before its body."""
    body = getattr(node, "body", None)
    first = min((one.lineno for one in getattr(node, "decorator_list", ())), default=node.lineno)
    if isinstance(body, list) and body:
        return range(first, max(node.lineno + 1, body[0].lineno))
    return range(first, (node.end_lineno or node.lineno) + 1)


def _runs_with(node: ast.stmt, head: range) -> range:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    return head
