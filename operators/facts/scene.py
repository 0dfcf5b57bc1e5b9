"""What a walk over a kernel needs to know of its module, computed once per kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import libcst as cst

from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Vocabulary, vocabulary


@dataclass(frozen=True, slots=True)
class Scene:
    """A kernel with its vocabulary and its module's helper functions and constants."""

    kernel: KernelSyntax
    words: Vocabulary
    helpers: Mapping[str, cst.FunctionDef]
    constants: Mapping[str, cst.BaseExpression]
    _assigned: dict[cst.CSTNode, tuple[str, ...]] = field(default_factory=dict)

    def assigned(self, loop: cst.For | cst.While) -> tuple[str, ...]:
        """Names that the body of a loop gives a value to; looked up once per loop."""
        if loop not in self._assigned:
            self._assigned[loop] = tuple(sorted(set(_assigned(loop.body))))
        return self._assigned[loop]


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
    return Scene(kernel, vocabulary(kernel), helpers, constants)


def parameters(function: cst.FunctionDef) -> tuple[str, ...]:
    """The function's named parameters in order."""
    found = function.params
    every = (*found.posonly_params, *found.params, *found.kwonly_params)
    return tuple(parameter.name.value for parameter in every)


def _constant(statement: cst.BaseSmallStatement) -> Iterator[tuple[str, cst.BaseExpression]]:
    target: cst.BaseExpression | None = None
    value: cst.BaseExpression | None = None
    if isinstance(statement, cst.Assign):
        target, value = statement.targets[0].target, statement.value
    elif isinstance(statement, cst.AnnAssign):
        target, value = statement.target, statement.value
    if isinstance(target, cst.Name) and value is not None:
        yield target.value, value


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


def _descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _descendants(child)
