"""Benign rewrite: other block sizes, where the launcher follows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import libcst as cst

from gatecert.mutants.discover import find_kernels, kernel_syntax
from gatecert.mutants.names import module_names
from gatecert.mutants.records import Kernel
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind, analyse
from gatecert.operators.facts.kernel import ModuleSyntax
from gatecert.operators.facts.launched import launched
from gatecert.operators.records import Edit

_LEAST = 2
_LEAST_FOR_DOT = 16
_MOST = 4096
_MOST_FOR_DOT = 128
_RANGES = frozenset({"range", "builtins.range", "static_range"})


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Constexpr parameters of a kernel by what they tile."""

    looped: frozenset[str]
    """Steps or bounds of a loop: the kernel itself covers the whole dim."""
    gridded: frozenset[str]
    """Multiplied by a program's index: the grid must follow."""
    parameters: tuple[str, ...]
    has_dot: bool

    def limits(self) -> tuple[int, int]:
        return (_LEAST_FOR_DOT, _MOST_FOR_DOT) if self.has_dot else (_LEAST, _MOST)


@dataclass(frozen=True, slots=True)
class _Literal:
    """An integer literal that sets a block size."""

    name: str
    value: int
    spans: tuple[tuple[int, int], ...]
    limits: tuple[int, int]


def block_rewrites(
    module: ModuleSyntax, kernels: Sequence[Kernel]
) -> Iterator[tuple[str, str, list[Edit]]]:
    """Every block size of these kernels, all of one module, halved and doubled."""
    found = _Module(module, kernels[0].module, kernels[0].path)
    for literal in found.literals({kernel.qualname for kernel in kernels}):
        least, most = literal.limits
        for word, value in (("halved", literal.value // 2), ("doubled", literal.value * 2)):
            if least <= value <= most:
                edits = [Edit(start, end, str(value)) for start, end in literal.spans]
                detail = f"{literal.name} is {value} in the place of {literal.value}"
                yield f"{literal.name}-{word}", detail, edits


class _Module:
    """A module's launches and the literals that reach their constexpr parameters."""

    def __init__(self, module: ModuleSyntax, name: str, path: str) -> None:
        self._module = module
        self._tree = ast.parse(module.text)
        found, _ = find_kernels(name, path, module.text)
        self._kernels = {kernel.qualname: kernel for kernel in found}
        is_package = PurePath(path).name == "__init__.py"
        self._imported = module_names(name, is_package, self._tree).imported
        self._tiles: dict[str, _Tiles] = {}
        self._parents = {
            child: node for node in ast.walk(self._tree) for child in ast.iter_child_nodes(node)
        }

    def literals(self, wanted: set[str]) -> list[_Literal]:
        """Literals that may change, at least one launch of a wanted kernel behind each."""
        found: dict[tuple[tuple[int, int], ...], _Literal] = {}
        for qualname, call in self._launches():
            if qualname not in wanted:
                continue
            tiles = self._tiles_of(qualname)
            for parameter, value in self._constexpr_arguments(call, tiles):
                literal = self._literal_behind(qualname, parameter, value, call)
                if literal is not None:
                    found.setdefault(literal.spans, literal)
        for qualname in sorted(wanted & set(self._kernels)):
            for literal in self._configs(qualname):
                found.setdefault(literal.spans, literal)
        return list(found.values())

    def _tiles_of(self, qualname: str) -> _Tiles:
        if qualname not in self._tiles:
            self._tiles[qualname] = _tiles(analyse(kernel_syntax(self._module, qualname)))
        return self._tiles[qualname]

    def _launches(self) -> Iterator[tuple[str, ast.Call]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and (kernel := self._launched(node)) is not None:
                yield kernel, node

    def _launched(self, call: ast.Call) -> str | None:
        """The kernel of this module that a call launches."""
        kernel = launched(call.func, self._imported)
        return kernel if kernel in self._kernels else None

    def _constexpr_arguments(self, call: ast.Call, tiles: _Tiles) -> Iterator[tuple[str, ast.expr]]:
        """Tiled constexpr parameters and what the launch gives them."""
        tiled = tiles.looped | tiles.gridded
        for keyword in call.keywords:
            if keyword.arg in tiled:
                yield keyword.arg, keyword.value
        if not any(isinstance(arg, ast.Starred) for arg in call.args):
            for name, arg in zip(tiles.parameters, call.args, strict=False):
                if name in tiled:
                    yield name, arg

    def _literal_behind(
        self, qualname: str, parameter: str, value: ast.expr, call: ast.Call
    ) -> _Literal | None:
        tiles = self._tiles_of(qualname)
        scope = self._function_of(call)
        if _is_power(value):
            # A literal in the launch itself: only a loop follows it.
            if parameter in tiles.gridded:
                return None
            return self._literal(parameter, [value], tiles)
        if isinstance(value, ast.Name):
            for where in (scope, self._tree):
                assigned = self._only_assignment(value.id, where)
                if assigned is not None:
                    cap = _cap(assigned)
                    if cap is not None:
                        return self._literal(value.id, [cap], tiles)
                    if _is_power(assigned) and self._all_follow(value.id, where):
                        return self._literal(value.id, [assigned], tiles)
                    return None
        cap = _cap(value)
        if cap is not None and parameter not in tiles.gridded:
            return self._literal(parameter, [cap], tiles)
        return None

    def _literal(self, name: str, nodes: Sequence[ast.expr], tiles: _Tiles) -> _Literal:
        first = nodes[0]
        assert isinstance(first, ast.Constant) and isinstance(first.value, int)
        spans = tuple(self._span(node) for node in nodes)
        return _Literal(name, first.value, spans, tiles.limits())

    def _only_assignment(self, name: str, scope: ast.AST) -> ast.expr | None:
        """The value of a name that its scope assigns exactly once."""
        stores = [
            node
            for node in self._nodes_of(scope)
            if isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Store | ast.Del)
        ]
        if len(stores) != 1:
            return None
        statement = self._parents[stores[0]]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            return statement.value
        return statement.value if isinstance(statement, ast.AnnAssign) else None

    def _all_follow(self, name: str, scope: ast.AST) -> bool:
        """Whether every use of a constant is a launch's tile or the size of a grid, and every
        launch with a tile over the grid has both."""
        uses = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Load)
            and not self._is_shadowed(node, name, scope)
        ]
        launched: dict[ast.AST, bool] = {}
        counted: set[ast.AST] = set()
        for use in uses:
            if self._is_divisor(use):
                counted.add(self._function_of(use))
                continue
            tile = self._tile_given(use)
            if tile is None:
                return False
            function = self._function_of(use)
            launched[function] = launched.get(function, False) or tile
        return all(function in counted for function, gridded in launched.items() if gridded)

    def _is_shadowed(self, use: ast.Name, name: str, scope: ast.AST) -> bool:
        node: ast.AST = use
        while node is not scope:
            node = self._parents[node]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node is not scope:
                arguments = node.args
                named = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                if any(arg.arg == name for arg in named):
                    return True
                if self._only_assignment(name, node) is not None:
                    return True
        return False

    def _is_divisor(self, use: ast.Name) -> bool:
        """`triton.cdiv(n, BLOCK)`."""
        call = self._parents[use]
        if not isinstance(call, ast.Call) or len(call.args) != 2 or call.args[1] is not use:
            return False
        name = call.func.attr if isinstance(call.func, ast.Attribute) else None
        return name == "cdiv" or (isinstance(call.func, ast.Name) and call.func.id == "cdiv")

    def _tile_given(self, use: ast.Name) -> bool | None:
        """Whether the use gives a launch's tile, and then whether the grid must follow it."""
        parent = self._parents[use]
        call = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call):
            return None
        kernel = self._launched(call)
        if kernel is None:
            return None
        tiles = self._tiles_of(kernel)
        for parameter, value in self._constexpr_arguments(call, tiles):
            if value is use:
                return parameter in tiles.gridded
        return None

    def _configs(self, qualname: str) -> Iterator[_Literal]:
        """Sizes in `triton.Config({...})` above a kernel: an autotuned grid follows any."""
        tiles = self._tiles_of(qualname)
        function = next(
            node
            for node in ast.walk(self._tree)
            if isinstance(node, ast.FunctionDef) and node.lineno == self._kernels[qualname].line
        )
        sizes: dict[str, list[ast.expr]] = {}
        for decorator in function.decorator_list:
            for node in ast.walk(decorator):
                if isinstance(node, ast.Dict) and _is_config(self._parents[node]):
                    for key, value in zip(node.keys, node.values, strict=True):
                        if isinstance(key, ast.Constant) and _is_power(value):
                            sizes.setdefault(str(key.value), []).append(value)
        for name, values in sizes.items():
            same = len({value.value for value in values if isinstance(value, ast.Constant)}) == 1
            if name in tiles.looped | tiles.gridded and same:
                yield self._literal(name, values, tiles)

    def _nodes_of(self, scope: ast.AST) -> Iterator[ast.AST]:
        """Nodes of a scope, not those of functions within it."""
        queue = list(ast.iter_child_nodes(scope))
        while queue:
            node = queue.pop()
            yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                queue += ast.iter_child_nodes(node)

    def _function_of(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            node = self._parents[node]
        return node

    def _span(self, node: ast.expr) -> tuple[int, int]:
        """Character offsets (ast counts columns in bytes)."""
        lines = self._module.text.split("\n")
        assert node.end_lineno is not None and node.end_col_offset is not None

        def offset(line: int, column: int) -> int:
            before = sum(len(text) + 1 for text in lines[: line - 1])
            return before + len(lines[line - 1].encode()[:column].decode())

        return (
            offset(node.lineno, node.col_offset),
            offset(node.end_lineno, node.end_col_offset),
        )


def _tiles(flow: Dataflow) -> _Tiles:
    kinds = flow.parameters()
    constexprs = {name for name, kind in kinds.items() if kind is ParameterKind.CONSTEXPR}
    looped: set[str] = set()
    gridded: set[str] = set()
    for node in flow.expressions():
        if flow.call_name(node) in _RANGES:
            looped |= _names(node) & constexprs
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if (
                    isinstance(side, cst.Name)
                    and side.value in constexprs
                    and _is_program(flow, other)
                ):
                    gridded.add(side.value)
    return _Tiles(
        looped=frozenset(looped),
        gridded=frozenset(gridded),
        parameters=tuple(kinds),
        has_dot=any(True for _ in flow.calls("dot")),
    )


def _is_program(flow: Dataflow, node: cst.CSTNode) -> bool:
    return any(
        flow.call_name(n) in ("program_id", "num_programs") for n in (node, *flow.backward(node))
    )


def _names(node: cst.CSTNode) -> set[str]:
    found = {node.value} if isinstance(node, cst.Name) else set()
    for child in node.children:
        found |= _names(child)
    return found


def _is_power(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and type(node.value) is int
        and node.value > 1
        and node.value & (node.value - 1) == 0
    )


def _cap(node: ast.expr) -> ast.expr | None:
    """The literal of `min(size, LITERAL)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "min":
        literals = [arg for arg in node.args if _is_power(arg)]
        if len(literals) == 1 and len(node.args) == 2:
            return literals[0]
    return None


def _is_config(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else None
    return name == "Config" or (isinstance(node.func, ast.Name) and node.func.id == "Config")
