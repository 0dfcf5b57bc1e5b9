"""Reaching definitions over the structured statements of one function."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.language import Role, Vocabulary, argument_role, call_arguments


class DefinitionKind(enum.Enum):
    """How a name gets its value."""

    PARAMETER = "parameter"
    """It is a parameter of the kernel."""
    ASSIGNED = "assigned"
    """By `name = value`, alone or in a tuple."""
    AUGMENTED = "augmented"
    """By `name op= value`, from its old value."""
    LOOP_VARIABLE = "loop_variable"
    """It counts the turns of a `for` loop."""


@dataclass(frozen=True, eq=False)
class Definition:
    """One place where a name gets a value.

    `value` is the assigned expression, the `AugAssign` statement itself (whose operands are
    the old value and the right-hand side), or None for parameters and loop variables.
    `element` is the position in an unpacked tuple whose parts are not spelled out.
    """

    name: str
    kind: DefinitionKind
    node: cst.CSTNode
    value: cst.CSTNode | None
    element: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What one walk over a function found; all in program order."""

    definitions: tuple[Definition, ...]
    reaching: dict[cst.Name, frozenset[Definition]]
    consumer: dict[cst.CSTNode, tuple[Role, cst.CSTNode]]
    expressions: tuple[cst.CSTNode, ...]


def parameters_of(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """All named parameters in order."""
    p = function.params
    return (*p.posonly_params, *p.params, *p.kwonly_params)


def trace(function: cst.FunctionDef, words: Vocabulary) -> Trace:
    """Walk the function; loop bodies are walked until nothing new reaches their start."""
    walk = _Walk(words)
    environment: _Environment = {}
    for param in parameters_of(function):
        environment = walk.define(
            environment, param.name.value, DefinitionKind.PARAMETER, param, None
        )
    walk.block(function.body, environment)
    return Trace(
        definitions=tuple(walk.definitions.values()),
        reaching=walk.reaching,
        consumer=walk.consumer,
        expressions=tuple(walk.expressions),
    )


_Environment = dict[str, frozenset[Definition]]


def _join(*environments: _Environment | None) -> _Environment | None:
    """Union of what may reach a point; None stands for a point that is not reached."""
    live = [e for e in environments if e is not None]
    if not live:
        return None
    names = {name for e in live for name in e}
    return {n: frozenset().union(*(e.get(n, frozenset()) for e in live)) for n in names}


class _Walk:
    """The walk's state: what was found so far, and the jumps out of the loops around."""

    def __init__(self, words: Vocabulary) -> None:
        self.words = words
        self.definitions: dict[tuple[cst.CSTNode, str], Definition] = {}
        self.reaching: dict[cst.Name, frozenset[Definition]] = {}
        self.consumer: dict[cst.CSTNode, tuple[Role, cst.CSTNode]] = {}
        self.expressions: dict[cst.CSTNode, None] = {}
        self.breaks: list[list[_Environment]] = []
        self.continues: list[list[_Environment]] = []

    def define(
        self,
        environment: _Environment,
        name: str,
        kind: DefinitionKind,
        node: cst.CSTNode,
        value: cst.CSTNode | None,
        element: int | None = None,
    ) -> _Environment:
        definition = self.definitions.setdefault(
            (node, name), Definition(name, kind, node, value, element)
        )
        return {**environment, name: frozenset({definition})}

    def block(self, body: cst.BaseSuite, environment: _Environment | None) -> _Environment | None:
        for statement in body.body:
            if environment is None:
                return None
            environment = self.statement(statement, environment)
        return environment

    def statement(self, node: cst.CSTNode, environment: _Environment) -> _Environment | None:
        match node:
            case cst.SimpleStatementLine():
                current: _Environment | None = environment
                for part in node.body:
                    current = None if current is None else self.simple(part, current)
                return current
            case cst.If():
                self.read(node.test, environment, Role.CONTROL, node)
                taken = self.block(node.body, environment)
                other: _Environment | None = environment
                if isinstance(node.orelse, cst.If):
                    other = self.statement(node.orelse, environment)
                elif isinstance(node.orelse, cst.Else):
                    other = self.block(node.orelse.body, environment)
                return _join(taken, other)
            case cst.For() | cst.While():
                return self.loop(node, environment)
            case cst.With():
                return self.block(node.body, environment)
            case cst.BaseSmallStatement():  # the body of `if c: x = y`
                return self.simple(node, environment)
            case _:
                return environment

    def simple(
        self, node: cst.BaseSmallStatement, environment: _Environment
    ) -> _Environment | None:
        match node:
            case cst.Assign():
                self.read(node.value, environment, None, node)
                for target in node.targets:
                    environment = self.assign(target.target, node.value, environment)
            case cst.AnnAssign() if node.value is not None:
                self.read(node.value, environment, None, node)
                environment = self.assign(node.target, node.value, environment)
            case cst.AugAssign():
                self.read(node.value, environment, Role.VALUE, node)
                self.read(node.target, environment, Role.VALUE, node)
                self.expressions.setdefault(node)
                if isinstance(node.target, cst.Name):
                    kind = DefinitionKind.AUGMENTED
                    environment = self.define(environment, node.target.value, kind, node, node)
            case cst.Expr():
                self.read(node.value, environment, None, node)
                self.effects(node.value)
            case cst.Return():
                if node.value is not None:
                    self.read(node.value, environment, Role.RETURNED, node)
                return None
            case cst.Assert():
                self.read(node.test, environment, Role.CONTROL, node)
            case cst.Break() if self.breaks:
                self.breaks[-1].append(environment)
                return None
            case cst.Continue() if self.continues:
                self.continues[-1].append(environment)
                return None
        return environment

    def effects(self, node: cst.BaseExpression) -> None:
        """A helper called for its effect may store what it is given."""
        if isinstance(node, cst.Call) and self.words.call_name(node).startswith("helper."):
            for argument in call_arguments(self.words, node):
                self.consumer[argument.value] = (Role.RETURNED, node)

    def loop(self, node: cst.For | cst.While, environment: _Environment) -> _Environment | None:
        if isinstance(node, cst.For):
            self.read(node.iter, environment, Role.CONTROL, node)
        start: _Environment = environment
        while True:
            self.breaks.append([])
            self.continues.append([])
            inside = start
            if isinstance(node, cst.For):
                for name in _target_names(node.target):
                    kind = DefinitionKind.LOOP_VARIABLE
                    inside = self.define(inside, name, kind, node, None)
            else:
                self.read(node.test, inside, Role.CONTROL, node)
            end = _join(self.block(node.body, inside), *self.continues.pop())
            broken = self.breaks.pop()
            again = _join(environment, end) or environment
            if again == start:
                return _join(environment, end, *broken)
            start = again

    def assign(
        self, target: cst.BaseExpression, value: cst.BaseExpression, environment: _Environment
    ) -> _Environment:
        if isinstance(target, cst.Name):
            return self.define(environment, target.value, DefinitionKind.ASSIGNED, target, value)
        if not isinstance(target, cst.Tuple | cst.List):
            return environment
        spelled = isinstance(value, cst.Tuple | cst.List) and len(value.elements) == len(
            target.elements
        )
        for position, element in enumerate(target.elements):
            if spelled and isinstance(value, cst.Tuple | cst.List):
                environment = self.assign(
                    element.value, value.elements[position].value, environment
                )
            elif isinstance(element.value, cst.Name):
                environment = self.define(
                    environment, element.value.value, DefinitionKind.ASSIGNED, element.value,
                    value, position,
                )  # fmt: skip
        return environment

    def read(
        self,
        node: cst.CSTNode,
        environment: _Environment,
        role: Role | None,
        holder: cst.CSTNode,
    ) -> None:
        """Record an expression read at this point, held by `holder` in that role."""
        self.expressions.setdefault(node)
        if role is not None:
            self.consumer[node] = (role, holder)
        if isinstance(node, cst.Name):
            known = environment.get(node.value, frozenset())
            self.reaching[node] = self.reaching.get(node, frozenset()) | known
        for child_role, child in operands(self.words, node):
            self.read(child, environment, child_role, node)


def _target_names(target: cst.BaseExpression) -> Iterator[str]:
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            yield from _target_names(element.value)


def operands(words: Vocabulary, node: cst.CSTNode) -> tuple[tuple[Role, cst.CSTNode], ...]:
    """Direct inputs of an expression or augmented assignment, with their roles."""
    value = Role.VALUE
    match node:
        case cst.Call():
            name = words.call_name(node)
            return tuple(
                (argument_role(name, a.parameter), a.value) for a in call_arguments(words, node)
            )
        case cst.BinaryOperation():
            return ((value, node.left), (value, node.right))
        case cst.AugAssign():
            return ((value, node.target), (value, node.value))
        case cst.UnaryOperation():
            role = Role.CONDITION if isinstance(node.operator, cst.Not) else value
            return ((role, node.expression),)
        case cst.BooleanOperation():
            return ((Role.CONDITION, node.left), (Role.CONDITION, node.right))
        case cst.Comparison():
            right = tuple((Role.CONDITION, t.comparator) for t in node.comparisons)
            return ((Role.CONDITION, node.left), *right)
        case cst.IfExp():
            return ((Role.CONDITION, node.test), (value, node.body), (value, node.orelse))
        case cst.Subscript():
            indices = tuple((Role.META, s) for e in node.slice for s in _index_parts(e.slice))
            return ((value, node.value), *indices)
        case cst.Attribute():
            return ((value if node.attr.value == "T" else Role.META, node.value),)
        case cst.Tuple() | cst.List():
            return tuple((value, e.value) for e in node.elements)
        case cst.NamedExpr():
            return ((value, node.value),)
        case _:
            return ()


def _index_parts(part: cst.BaseSlice) -> tuple[cst.BaseExpression, ...]:
    if isinstance(part, cst.Index):
        return (part.value,)
    if isinstance(part, cst.Slice):
        return tuple(p for p in (part.lower, part.upper, part.step) if p is not None)
    return ()
