"""A walk over a kernel that follows chosen lanes of its tiles in the original and in a mutant.

Given the lanes in which one term of a mask is false (the padding of a tile) or last true, and
one change of the source, the walk computes for every expression what those lanes hold before
and after, and whether the difference gets into other lanes, into memory, or past a buffer's
end. It is a flow-sensitive abstract interpretation: loops run until nothing changes, branches
are joined, helper functions of the same module are entered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import libcst as cst

from gatecert.operators.facts.calls import Calls
from gatecert.operators.facts.elements import TRUE
from gatecert.operators.facts.expressions import operator_symbol
from gatecert.operators.facts.scene import Scene, parameters
from gatecert.operators.facts.values import Change, Findings, Lanes, Value, join_values

_MAX_TURNS = 6


def walk(scene: Scene, lanes: Lanes | None = None, change: Change | None = None) -> Findings:
    """Walk the kernel once; without lanes and change, only accesses are found."""
    return _Walk(scene, lanes, change).run()


class _Walk(Calls):
    """The statements of a kernel."""

    def run(self) -> Findings:
        function = self._scene.kernel.function
        for parameter in parameters(function):
            self._names[parameter] = Value(parameter)
        self._block(function.body)
        for value in self._returned:
            self._output(function, value, TRUE, TRUE)
        return self.findings

    def _block(self, body: cst.BaseSuite) -> None:
        for statement in body.body:
            self._statement(statement)

    def _statement(self, node: cst.CSTNode) -> None:
        match node:
            case cst.SimpleStatementLine():
                for small in node.body:
                    self._statement(small)
            case cst.Assign():
                value = self._eval(node.value)
                for target in node.targets:
                    self._bind(target.target, value)
            case cst.AnnAssign() if node.value is not None:
                self._bind(node.target, self._eval(node.value))
            case cst.AugAssign():
                old, step = self._eval(node.target), self._eval(node.value)
                self._bind(node.target, self._binary(operator_symbol(node.operator), old, step))
            case cst.Expr():
                self._eval(node.value)
            case cst.Return() if node.value is not None:
                self._returned.append(self._eval(node.value))
            case cst.If():
                self._branch(node)
            case cst.For():
                self._eval(node.iter)
                self._loop(node, node.body, node.target)
            case cst.While():
                self._loop(node, node.body, None)
            case cst.With():
                self._block(node.body)
            case _:
                pass

    def _bind(self, target: cst.BaseExpression, value: Value) -> None:
        if isinstance(target, cst.Name):
            self._names[target.value] = replace(value, parts=value.parts)
        elif isinstance(target, cst.Tuple | cst.List):
            for position, element in enumerate(target.elements):
                known = position < len(value.parts)
                part = value.parts[position] if known else _element(value, position)
                self._bind(element.value, part)

    def _branch(self, node: cst.If) -> None:
        condition = self._eval(node.test)
        if condition.leak is not None:
            self.findings.outputs[node] = condition.leak
        entry = dict(self._names)
        self._block(node.body)
        taken, self._names = self._names, entry
        if isinstance(node.orelse, cst.Else):
            self._block(node.orelse.body)
        elif isinstance(node.orelse, cst.If):
            self._branch(node.orelse)
        self._names = self._joined(taken, self._names, node)

    def _loop(self, node: cst.For | cst.While, body: cst.BaseSuite, target: object) -> None:
        line = self._module.line(node)
        carried = [name for name in self._scene.assigned(node) if name in self._names]
        if isinstance(target, cst.Name):
            self._names[target.value] = Value(f"{target.value}@{line}", index=True)
        for _ in range(_MAX_TURNS):
            for name in carried:
                self._names[name] = _carried(self._names[name], f"{name}@{line}")
            entry = dict(self._names)
            if isinstance(node, cst.While):
                self._eval(node.test)
            self._block(body)
            self._names = self._joined(entry, self._names, node)
            for name in carried:
                self._names[name] = _carried(self._names[name], f"{name}@{line}")
            if self._names == entry:
                return

    def _joined(
        self, x: Mapping[str, Value], y: Mapping[str, Value], node: cst.CSTNode
    ) -> dict[str, Value]:
        line = self._module.line(node)
        names = dict(x)
        for name, value in y.items():
            names[name] = join_values(x[name], value, f"{name}@{line}") if name in x else value
        return names


def _carried(value: Value, text: str) -> Value:
    """A name at the start of a loop's turn: what it holds depends on the turn."""
    return replace(value.named(text), conjuncts=())


def _element(value: Value, position: int) -> Value:
    """One part of a tuple that is not spelled out."""
    return replace(value.named(f"{value.text}.{position}"), conjuncts=())
