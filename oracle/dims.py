"""Sizes of dims: names, and what follows from them: `2N`, `G*H`, `S+1`, `cdiv(K,128)`.

A dim is a text of whole numbers, names, `+`, `*` and `cdiv(a,b)` (division rounded up), without
spaces; a number right before a name multiplies it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence

from gatecert.errors import UsageError

Sizes = Mapping[str, int]
_NUMBER_BEFORE_NAME = re.compile(r"(?<!\w)(\d+)(?=[A-Za-z_])")
CDIV = "cdiv"
"""What divides and rounds up, in a dim."""


def parse_dims(text: str, where: str) -> tuple[str, ...]:
    """Split a text like `"B 2N S+1"` into dims.

    Raises:
        UsageError: a part is no dim; `where` says whose it is.
    """
    dims = tuple(text.split())
    for dim in dims:
        check_dim(dim, where)
    return dims


def check_dim(dim: str, where: str) -> None:
    """Refuse what is no dim; raises as `parse_dims`."""
    if _parsed(dim) is None:
        raise UsageError(
            f"{where}: {dim!r} is no dim; write names and what follows from them, without spaces "
            'inside a dim, like "B 2N G*H S+1 cdiv(K,128)"'
        )


def names_in(dim: str) -> tuple[str, ...]:
    """The names in a dim, in order, once each."""
    return tuple(dict.fromkeys(node.id for node in _walk(_parsed(dim)) if node.id != CDIV))


def size_of_dim(dim: str | int, sizes: Sizes) -> int:
    """Its size under these sizes of names."""
    if isinstance(dim, int):
        return dim
    tree = _parsed(dim)
    assert tree is not None
    return _value(tree, sizes)


def solve(dim: str, name: str, actual: int, sizes: Sizes) -> int | None:
    """The size of the one unknown name for which the dim is `actual`; None where none is told.

    Through `cdiv` several sizes lead to the same, so that nothing is told.
    """
    if CDIV in dim:
        return None
    at_zero, at_one = (size_of_dim(dim, {**sizes, name: size}) for size in (0, 1))
    step = at_one - at_zero
    if step < 1 or (actual - at_zero) % step or actual < at_zero:
        return None
    found = (actual - at_zero) // step
    return found if size_of_dim(dim, {**sizes, name: found}) == actual else None


def written_out(derived: Mapping[str, str], where: str) -> dict[str, str]:
    """Derived dims by name, in terms of drawn ones alone.

    Raises:
        UsageError: a rule is no dim, or a dim is derived from itself.
    """
    for name, rule in derived.items():
        if not name.isidentifier() or name == CDIV:
            raise UsageError(f"{where}: a derived dim needs a name, not {name!r}")
        check_dim(rule, f"{where}: derived dim {name}")
    found: dict[str, str] = {}
    for name in derived:
        _write_out(name, derived, found, (), where)
    return found


def substitute(dim: str, rules: Mapping[str, str]) -> str:
    """The dim with rules in the place of derived names; one without such stays as it is."""
    if not set(names_in(dim)) & set(rules):
        return dim
    tree = _parsed(dim)
    assert tree is not None
    return ast.unparse(
        _Substitution(rules).visit(ast.parse(ast.unparse(tree), mode="eval"))
    ).replace(" ", "")


def _write_out(
    name: str, derived: Mapping[str, str], found: dict[str, str], above: Sequence[str], where: str
) -> None:
    if name in found:
        return
    if name in above:
        circle = [*above[above.index(name) :], name]
        rules = ", ".join(f"{dim} = {derived[dim]}" for dim in circle[:-1])
        raise UsageError(
            f"{where}: dim {name} is derived from itself ({rules}); one of them must be drawn: "
            "leave it out of `derived`"
        )
    for other in names_in(derived[name]):
        if other in derived:
            _write_out(other, derived, found, (*above, name), where)
    found[name] = substitute(derived[name], found)


class _Substitution(ast.NodeTransformer):
    def __init__(self, rules: Mapping[str, str]) -> None:
        self._rules = rules

    def visit_Name(self, node: ast.Name) -> ast.expr:
        rule = _parsed(self._rules[node.id]) if node.id in self._rules else None
        return node if rule is None else rule


@functools.lru_cache(maxsize=4096)
def _parsed(dim: str) -> ast.expr | None:
    """Its expression, or None where it is no dim."""
    if any(letter.isspace() for letter in dim):
        return None
    try:
        tree = ast.parse(_NUMBER_BEFORE_NAME.sub(r"\1*", dim), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return tree if _allowed(tree) else None


def _allowed(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return name != CDIV
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _allowed(left) and _allowed(right)
        case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]):
            return name == CDIV and _allowed(left) and _allowed(right)
    return False


def _walk(tree: ast.expr | None) -> list[ast.Name]:
    """Names in the order in which they are written."""
    nodes = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return sorted(nodes, key=lambda node: node.col_offset)


def _value(node: ast.expr, sizes: Sizes) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _value(left, sizes) + _value(right, sizes)
        case ast.BinOp(left=left, right=right):
            return _value(left, sizes) * _value(right, sizes)
        case ast.Call(args=[left, right]):
            divisor = _value(right, sizes)
            if divisor < 1:
                raise UsageError(f"{ast.unparse(node)} divides by {divisor}")
            return -(-_value(left, sizes) // divisor)
    raise AssertionError(ast.dump(node))


__all__ = [
    "CDIV",
    "Sizes",
    "check_dim",
    "names_in",
    "parse_dims",
    "size_of_dim",
    "solve",
    "substitute",
    "written_out",
]
