"""What a walk over a kernel needs to know of its module, computed once per kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Vocabulary, vocabulary


@dataclass(frozen=True, slots=True)
class Scene:
    """A kernel with its vocabulary and its module's helper functions and constants.

    `vectors` names parameters that a caller fills with index vectors, `fixed` those that are
    compile-time constants.
    """

    kernel: KernelSyntax
    words: Vocabulary
    helpers: Mapping[str, cst.FunctionDef]
    constants: Mapping[str, cst.BaseExpression]
    vectors: frozenset[str]
    fixed: frozenset[str]
    _set: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)
    _masks: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)
    _loads: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)
    _tests: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)
    _used: dict[cst.CSTNode, frozenset[str]] = field(default_factory=dict)

    def names_set(self, node: cst.CSTNode) -> frozenset[str]:
        """Names that a statement gives a value to; looked up once per statement."""
        if node not in self._set:
            self._set[node] = frozenset(_assigned(node))
        return self._set[node]

    def masks_set(self, node: cst.CSTNode) -> frozenset[str]:
        """Names that a statement gives the result of a comparison; looked up once."""
        if node not in self._masks:
            self._masks[node] = frozenset(_set_from(node, _is_comparison))
        return self._masks[node]

    def loads_set(self, node: cst.CSTNode) -> frozenset[str]:
        """Names that a statement gives what it loads; looked up once."""
        if node not in self._loads:
            self._loads[node] = frozenset(_set_from(node, self._is_load))
        return self._loads[node]

    def tests(self, statements: Sequence[cst.CSTNode]) -> frozenset[str]:
        """Texts of the tests that statements branch on; looked up once per statement."""
        for node in statements:
            if node not in self._tests:
                every = (node, *_descendants(node))
                self._tests[node] = frozenset(self.test(n) for n in every if isinstance(n, cst.If))
        return frozenset[str]().union(*(self._tests[node] for node in statements))

    def test(self, node: cst.If) -> str:
        """The text of a branch's test, without a leading `not`."""
        return self.kernel.module.source(node.test).strip("() ").removeprefix("not ")

    def _is_load(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and self.words.call_name(node) == "load"

    def names_used(self, statements: Sequence[cst.CSTNode]) -> frozenset[str]:
        """Names that occur in statements; looked up once per statement."""
        for node in statements:
            if node not in self._used:
                self._used[node] = frozenset(_names(node))
        return frozenset[str]().union(*(self._used[node] for node in statements))


def scene(kernel: KernelSyntax) -> Scene:
    """Look around a kernel."""
    helpers: dict[str, cst.FunctionDef] = {}
    constants: dict[str, cst.BaseExpression] = {}
    for statement in kernel.module.tree.body:
        if isinstance(statement, cst.FunctionDef):
            helpers[statement.name.value] = statement
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                constants.update(_constant(small))
    vectors = frozenset(_vectors(kernel.function))
    fixed = frozenset(_fixed(kernel))
    return Scene(kernel, vocabulary(kernel), helpers, constants, vectors, fixed)


def callers(kernel: KernelSyntax) -> tuple[KernelSyntax, ...]:
    """The functions of the module from which a helper is reached and that nothing here calls."""
    functions = {
        node.name.value: node
        for node in kernel.module.tree.body
        if isinstance(node, cst.FunctionDef)
    }
    name = kernel.function.name.value
    if functions.get(name) is not kernel.function:
        return ()
    called = {
        caller: frozenset(_called(function)) & functions.keys()
        for caller, function in functions.items()
    }
    above, queue = {name}, [name]
    while queue:
        callee = queue.pop()
        found = {caller for caller, callees in called.items() if callee in callees} - above
        above |= found
        queue.extend(found)
    inner = frozenset[str]().union(*called.values())
    return tuple(
        replace(kernel, function=function, qualname=caller)
        for caller, function in functions.items()
        if caller in above - inner - {name}
    )


def parameters(function: cst.FunctionDef) -> tuple[str, ...]:
    """The function's named parameters in order."""
    found = function.params
    every = (*found.posonly_params, *found.params, *found.kwonly_params)
    return tuple(parameter.name.value for parameter in every)


def _fixed(kernel: KernelSyntax) -> Iterator[str]:
    for parameter in kernel.function.params.params:
        note = parameter.annotation
        if note is not None and "constexpr" in kernel.module.source(note.annotation):
            yield parameter.name.value


def _constant(statement: cst.BaseSmallStatement) -> Iterator[tuple[str, cst.BaseExpression]]:
    target: cst.BaseExpression | None = None
    value: cst.BaseExpression | None = None
    if isinstance(statement, cst.Assign):
        target, value = statement.targets[0].target, statement.value
    elif isinstance(statement, cst.AnnAssign):
        target, value = statement.target, statement.value
    if isinstance(target, cst.Name) and value is not None:
        yield target.value, value


def _vectors(function: cst.FunctionDef) -> Iterator[str]:
    """Parameters spread along an axis (`x[:, None]`) and never reassigned, or added to what is."""
    spread: set[str] = set()
    sums: dict[str, set[str]] = {}
    for node in _descendants(function.body):
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
            if any(isinstance(element.slice, cst.Slice) for element in node.slice):
                spread.add(node.value.value)
        elif isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
            addends = set(_addends(node.value))
            if len(addends) > 1:
                sums.setdefault(node.targets[0].target.value, set()).update(addends)
    given = set(parameters(function)) - set(_assigned(function.body))
    yield from given & spread
    for name in spread & sums.keys():
        rest = given & sums[name]
        if len(rest) == 1:  # a start and the vector: of two parameters, which is which?
            yield from rest


def _addends(node: cst.BaseExpression) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        yield from _addends(node.left)
        yield from _addends(node.right)


def _called(function: cst.FunctionDef) -> Iterator[str]:
    for node in _descendants(function.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            yield node.func.value


def _assigned(body: cst.CSTNode) -> Iterator[str]:
    for node in _descendants(body):
        targets: tuple[cst.BaseExpression, ...] = ()
        if isinstance(node, cst.Assign):
            targets = tuple(target.target for target in node.targets)
        elif isinstance(node, cst.AnnAssign | cst.AugAssign | cst.For):
            targets = (node.target,)
        for target in targets:
            for name in (target, *_descendants(target)):
                if isinstance(name, cst.Name):
                    yield name.value


def _is_comparison(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Comparison)


def _set_from(body: cst.CSTNode, source: Callable[[cst.CSTNode], bool]) -> Iterator[str]:
    """Names set by expressions of which some part is such a source."""
    for node in _descendants(body):
        if isinstance(node, cst.Assign | cst.AugAssign) and any(
            source(part) for part in (node.value, *_descendants(node.value))
        ):
            target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
            if isinstance(target, cst.Name):
                yield target.value


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (child.value for child in _descendants(node) if isinstance(child, cst.Name))


def _descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _descendants(child)
