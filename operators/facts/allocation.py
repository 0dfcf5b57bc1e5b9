"""What a launcher says of its tensors: where it sets them to zero or fills them, their sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.edits import drop_argument, drop_statement, keep, replace
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.launcher import LauncherSyntax, bare_text
from gatecert.operators.records import Edit

_ZEROED = {"zeros": "empty", "zeros_like": "empty_like", "new_zeros": "new_empty"}
_FILLED = {"full": "empty", "full_like": "empty_like", "new_full": "new_empty"}
_IN_PLACE = frozenset({"zero_", "fill_"})
_SIZED = frozenset(
    {"zeros", "new_zeros", "empty", "new_empty", "full", "new_full", "ones", "new_ones"}
)
_MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class Initialisation:
    """A place that gives memory its first content, and the edits that leave it as it was.

    `tensor` is the expression of the memory; `dims` are its sizes as text, as far as the
    launcher spells them out.
    """

    node: cst.CSTNode
    tensor: cst.BaseExpression
    dims: frozenset[str]
    edits: tuple[Edit, ...]


def initialisations(launcher: LauncherSyntax) -> Iterator[Initialisation]:
    """Every zeroed or filled tensor of a launcher, in source order."""
    module = launcher.module
    for node in launcher.nodes:
        if not isinstance(node, cst.Call):
            continue
        name = _function(launcher, node)
        method = launcher.method(node)
        if name in _ZEROED or name in _FILLED:
            edits = _as_empty(launcher, node, name)
            if edits:
                yield Initialisation(node, node, sizes(launcher, node), edits)
        elif method is not None and method[1] in _IN_PLACE:
            statement = module.parents[node]
            bare = isinstance(statement, cst.Expr)
            edit = (
                drop_statement(module, statement)
                if isinstance(statement, cst.Expr)
                else keep(module, node, method[0])
            )
            tensor = method[0] if bare else node
            yield Initialisation(node, tensor, sizes(launcher, method[0]), (edit,))


def sizes(launcher: LauncherSyntax, tensor: cst.BaseExpression) -> frozenset[str]:
    """The sizes of a tensor as texts, under every name that the launcher has for them."""
    found: set[str] = set()
    for node in launcher.tensors(tensor):
        name = dotted(node)
        if name is not None:
            found.update(launcher.shape_names(name))
            found.update(f"{name}.shape[{i}]" for i in range(_MAX_RANK))
            found.update(f"{name}.size({i})" for i in range(_MAX_RANK))
            found.add(f"{name}.numel()")
        found.update(bare_text(launcher.module, part) for part in _spelled(launcher, node))
        like = _like(launcher, node)
        if like is not None:
            found |= sizes(launcher, like)
    return frozenset(found - {""})


def least_rank(launcher: LauncherSyntax, tensor: cst.BaseExpression) -> int:
    """How many dims a tensor has at least, by what the launcher does with it; 0 if unknown."""
    least = 0
    for node in launcher.tensors(tensor):
        name = dotted(node)
        if name is not None:
            least = max(least, len(launcher.shape_names(name)), *_dims_asked(launcher, name))
        least = max(least, len(_spelled(launcher, node)))
        like = _like(launcher, node)
        if like is not None:
            least = max(least, least_rank(launcher, like))
    return least


def integer(node: cst.BaseExpression) -> int | None:
    """The value of a literal integer, with or without a minus."""
    if isinstance(node, cst.Integer):
        return int(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        value = integer(node.expression)
        return None if value is None else -value
    return None


def _dims_asked(launcher: LauncherSyntax, name: str) -> Iterator[int]:
    """Ranks that `name.shape[i]`, `name.size(i)` and `name.stride(i)` imply."""
    yield 0
    for node in launcher.nodes:
        asked: cst.BaseExpression | None = None
        method = launcher.method(node)
        if method is not None and method[1] in ("size", "stride") and dotted(method[0]) == name:
            assert isinstance(node, cst.Call)
            asked = node.args[0].value if len(node.args) == 1 else None
        elif isinstance(node, cst.Subscript) and dotted(node.value) == f"{name}.shape":
            index = node.slice[0].slice
            asked = index.value if isinstance(index, cst.Index) else None
        dim = integer(asked) if asked is not None else None
        if dim is not None:
            yield dim + 1 if dim >= 0 else -dim


def _spelled(launcher: LauncherSyntax, node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """Sizes that an allocation or a view spells out."""
    if not isinstance(node, cst.Call):
        return ()
    function, method = _function(launcher, node), launcher.method(node)
    views = method is not None and method[1] in ("view", "reshape")
    if function not in _SIZED and not views:
        return ()
    given = [arg for arg in node.args if arg.keyword is None or arg.keyword.value == "size"]
    if not given or any(arg.star for arg in given):
        return ()
    tuples = tuple(_tuples(launcher, given[0].value))
    if tuples:
        return tuple(element.value for found in tuples for element in found.elements)
    return (given[0].value,) if function in _FILLED else tuple(arg.value for arg in given)


def _tuples(launcher: LauncherSyntax, node: cst.BaseExpression) -> Iterator[cst.Tuple | cst.List]:
    """The tuples that a shape may be, through names and branches."""
    if isinstance(node, cst.Tuple | cst.List):
        yield node
    elif isinstance(node, cst.IfExp):
        yield from _tuples(launcher, node.body)
        yield from _tuples(launcher, node.orelse)
    elif isinstance(node, cst.Name):
        for value in launcher.values(node.value):
            if not isinstance(value, cst.Name):
                yield from _tuples(launcher, value)


def _like(launcher: LauncherSyntax, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor whose sizes a new one takes over."""
    if isinstance(node, cst.Call) and _function(launcher, node).endswith("_like") and node.args:
        return node.args[0].value
    return None


def _function(launcher: LauncherSyntax, call: cst.Call) -> str:
    """`zeros` for `torch.zeros(...)`, `new_zeros` for `x.new_zeros(...)`; "" for others."""
    module, _, name = launcher.resolve(call.func).rpartition(".")
    if module == "torch":
        return name
    method = launcher.method(call)
    return method[1] if method is not None and method[1].startswith("new_") else ""


def _as_empty(launcher: LauncherSyntax, call: cst.Call, function: str) -> tuple[Edit, ...]:
    """Edits that make the call one of `empty`; none where its dtype would be another."""
    if not isinstance(call.func, cst.Attribute):
        return ()
    name = {**_ZEROED, **_FILLED}[function]
    renamed = replace(launcher.module, call.func.attr, name)
    if function in _ZEROED:
        return (renamed,)
    named = {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    fill = named.get("fill_value", call.args[1] if len(call.args) > 1 else None)
    if fill is None or (fill.keyword is not None and fill.keyword.value != "fill_value"):
        return ()
    # `full` takes its dtype from the value where none is given.
    if function == "full" and "dtype" not in named and not isinstance(fill.value, cst.Float):
        return ()
    return (renamed, drop_argument(launcher.module, call, fill))
