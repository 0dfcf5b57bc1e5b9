"""Read from a test's source which of its assertions say less than they seem to."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from gatecert.gates.watching.mentions import reached

_ERROR = frozenset({"abs", "fabs"})
_CLOSE = frozenset({"isclose", "allclose", "equal", "array_equal", "approx"})


class Said(NamedTuple):
    """What a test's assertions say; "" of what none does.

    `always_true` tells of one that holds whatever it is given, `any_of` of one that asks whether
    any of the numbers is close, `none_beyond` of one that asks whether none is beyond a bound.
    """

    always_true: str = ""
    any_of: str = ""
    none_beyond: str = ""


def assertions_of(function: Callable[..., Any] | None, package: str) -> Said:
    """What a test asserts, or a function that it names and that is not of `package`; of a gate's
    function also what it gives back. Each with its place."""
    always = any_ = none = ""
    for place, what in _conditions(function, package):
        if sham := _always_true(what):
            always = always or f"{place} asserts {sham}"
        if _is_any_of_close(what):
            any_ = any_ or f"{place} asserts that any element is close"
        if _is_none_beyond(what):
            none = none or f"{place} asserts that no error is beyond its bound"
    return Said(always, any_, none)


def _conditions(
    function: Callable[..., Any] | None, package: str
) -> Iterator[tuple[str, ast.expr]]:
    own = None
    for found in reached(function):
        own = own or found
        path = found.__code__.co_filename
        is_own = path == own.__code__.co_filename
        if is_own or not package or found.__module__.partition(".")[0] != package:
            for what, returned in _conditions_in(found.__code__):
                if not returned or found is own:
                    yield f"{Path(path).name}:{what.lineno}", what


@functools.lru_cache(maxsize=1024)
def _conditions_in(code: CodeType) -> tuple[tuple[ast.expr, bool], ...]:
    return tuple(
        condition
        for function in _functions_in(code.co_filename)
        if (function.name, _first_line(function)) == (code.co_name, code.co_firstlineno)
        for node in ast.walk(function)
        for condition in _condition(node)
    )


@functools.lru_cache(maxsize=256)
def _functions_in(path: str) -> tuple[ast.FunctionDef, ...]:
    """The functions of a file; () if it cannot be read."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _condition(node: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    match node:
        case ast.Assert(test=what):
            yield what, False
        case ast.Call(func=ast.Attribute(attr="assertTrue"), args=[what, *_]):
            yield what, False
        case ast.Return(value=ast.expr() as what) if not isinstance(what, ast.Tuple):
            yield what, True


def _always_true(what: ast.expr) -> str:
    match what:
        case ast.GeneratorExp():
            return "a generator"
        case ast.Tuple(elts=[_, *_]):
            return "a tuple"
        case ast.Lambda():
            return "a function"
        # Of a name it may be anything: `assert checks.all`.
        case ast.Attribute(attr="all" | "any" as name, value=ast.Compare() | ast.Call() as whole):
            if isinstance(whole, ast.Compare) or _called(whole) & _CLOSE:
                return f"the method `{name}`, which is not called"
    return ""


def _is_any_of_close(what: ast.expr) -> bool:
    match what:
        case ast.Call(func=ast.Name(id="bool"), args=[inner]):
            return _is_any_of_close(inner)
        case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp() | ast.ListComp() as each]):
            pairs = each.generators[0].iter
            return _is_close(each.elt) and bool(_called(pairs) & {"zip", "range"})
        case ast.Call(func=ast.Attribute(attr="any", value=each), args=[]):
            return _is_close(each)
    return False


def _is_none_beyond(what: ast.expr) -> bool:
    """`not (abs(x - y) > bound).any()`, as a method, by numpy's function or Python's."""
    if not isinstance(what, ast.UnaryOp) or not isinstance(what.op, ast.Not):
        return False
    match what.operand:
        case ast.Call(func=ast.Attribute(attr="any", value=each), args=[]):
            return _is_beyond(each)
        case ast.Call(func=ast.Attribute(attr="any"), args=[each, *_]):
            return _is_beyond(each)
        case ast.Call(func=ast.Name(id="any"), args=[ast.GeneratorExp(elt=each)]):
            return _is_beyond(each)
    return False


def _is_beyond(each: ast.expr) -> bool:
    beyond = isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Gt | ast.GtE)
    return beyond and bool(_called(each) & _ERROR)


def _is_close(each: ast.expr) -> bool:
    """Does it hold two values against each other, within a tolerance or by a function for that?"""
    if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Lt | ast.LtE):
        return bool(_called(each) & _ERROR)
    return isinstance(each, ast.Call | ast.Compare) and bool(_called(each) & _CLOSE)


def _called(node: ast.AST) -> set[str]:
    """Names of the functions that are called in it."""
    functions = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return {
        one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in functions
    }
