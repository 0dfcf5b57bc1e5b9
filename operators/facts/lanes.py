"""A walk over a kernel that follows chosen lanes of its tiles in the original and in a mutant.

Given the lanes in which one term of a mask is false (the padding of a tile) or last true, and
one change of the source, the walk computes for every expression what those lanes hold before
and after, and whether the difference gets into other lanes, into memory, or past a buffer's
end. It is a flow-sensitive abstract interpretation: loops run until nothing changes, branches
are joined, or walked path by path where they set several names that belong together, and
helper functions of the same module are entered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import libcst as cst

from gatecert.operators.facts.calls import Calls
from gatecert.operators.facts.elements import FALSE, TRUE, Element, Lane
from gatecert.operators.facts.expressions import operator_symbol
from gatecert.operators.facts.scene import Scene, parameters
from gatecert.operators.facts.values import (
    Change,
    ChangeKind,
    Findings,
    Lanes,
    Value,
    join_values,
    weakest,
)

_MAX_TURNS = 6
_MAX_FORKS = 3
"""How many branches inside one another are walked path by path."""


def walk(scene: Scene, lanes: Lanes | None = None, change: Change | None = None) -> Findings:
    """Walk the kernel once; without lanes and change, only accesses are found."""
    return _Walk(scene, lanes, change).run()


class _Walk(Calls):
    """The statements of a kernel."""

    def __init__(self, scene: Scene, lanes: Lanes | None, change: Change | None) -> None:
        super().__init__(scene, lanes, change)
        self._forks = 0
        self._decided: dict[str, bool] = {}
        self._loops = 0

    def run(self) -> Findings:
        function = self._scene.kernel.function
        vectors = self._scene.vectors
        for name in parameters(function):
            self._names[name] = self._tile(name) if name in vectors else Value(name, foreign=True)
        self._block(function.body)
        for value in self._returned:
            shown = Findings()
            shown.outputs[function] = weakest(value.leak, None if value.same else self._reveal())
            self.findings.absorb(shown)
        return self.findings

    def _tile(self, name: str) -> Value:
        """An index vector that a caller passes in."""
        outside = self._lanes is not None and name in self._lanes.outside_tiles
        element = Lane.OUTSIDE if outside else Lane.DATA
        placed = frozenset({(name, -1)})
        return Value(name, 1, placed, element, element, index=True, foreign=True)

    def _block(self, body: cst.BaseSuite) -> None:
        self._statements(body.body)

    def _statements(self, statements: Sequence[cst.CSTNode]) -> None:
        for position, statement in enumerate(statements):
            rest = statements[position + 1 :]
            if isinstance(statement, cst.If) and self._is_changed(statement):
                self._changed_branch(statement, rest)
                return
            choice = _choice(statement)
            walked = choice is None or choice in self._taken
            if choice is not None and not walked and self._correlates(statement, rest):
                self._forks += 1
                if isinstance(choice, cst.If):
                    self._branch(choice, rest)
                else:
                    self._paths(choice, (statement, *rest), (statement, *rest))
                self._forks -= 1
                return
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
                self._controls(node, self._eval(node.iter))
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

    def _correlates(self, node: cst.CSTNode, rest: Sequence[cst.CSTNode]) -> bool:
        """Whether branches set a mask, or load tiles, for use with others of that branch."""
        if not rest or self._forks >= _MAX_FORKS:
            return False
        used = self._scene.names_used(rest)
        tiles = self._scene.loads_set(node) & used
        again = bool(tiles) and bool(self._scene.tests((node,)) & self._scene.tests(rest))
        return again or len(tiles) > 1 or bool(self._scene.masks_set(node) & used)

    def _branch(self, node: cst.If, rest: Sequence[cst.CSTNode] = ()) -> None:
        otherwise: Sequence[cst.CSTNode] = ()
        if isinstance(node.orelse, cst.Else):
            otherwise = node.orelse.body.body
        elif isinstance(node.orelse, cst.If):
            otherwise = (node.orelse,)
        self._paths(node, (*node.body.body, *rest), (*otherwise, *rest))

    def _is_changed(self, node: cst.CSTNode) -> bool:
        """Whether the change is that this branch or loop runs in other lanes."""
        change = self._change
        kinds = (ChangeKind.OPENED, ChangeKind.CLOSED)
        return change is not None and change.kind in kinds and change.node is node

    def _changed_branch(self, node: cst.If, rest: Sequence[cst.CSTNode]) -> None:
        """A branch whose body the mutant runs where the original does not, or the reverse."""
        assert self._change is not None
        opened, left = self._change.kind is ChangeKind.OPENED, self._change.part
        if self._eval(left or node.test).after == float(not opened) and left is not None:
            self._branch(node)  # what is left of the test decides as the whole did
            self._statements(rest)
            return
        in_body, elsewhere = ((FALSE, TRUE), (TRUE, FALSE)) if opened else (
            (TRUE, FALSE), (FALSE, TRUE)
        )  # fmt: skip
        self._only(in_body, node.body.body)
        if isinstance(node.orelse, cst.Else):
            self._only(elsewhere, node.orelse.body.body)
        elif isinstance(node.orelse, cst.If):
            self._only(elsewhere, (node.orelse,))
        if leaves(node.body):
            self._only(elsewhere, rest)
            self._running = elsewhere  # what comes after the blocks around runs there too
        else:
            self._statements(rest)

    def _only(self, running: tuple[Element, Element], statements: Sequence[cst.CSTNode]) -> None:
        """Walk statements that run only in the original or only in the mutant.

        A name to which they add nothing that counts (padding of zeros to a sum) stays as it was.
        """
        entry, outer = dict(self._names), self._running
        changed = {name for s in statements for name in self._scene.names_set(s)} & entry.keys()
        for name in changed:
            self._names[name] = entry[name].holds(Lane.KEPT, Lane.KEPT, same=True)
        self._running = running
        self._statements(statements)
        self._running = outer
        for name in changed:
            old, new = entry[name], self._names[name]
            if self._loops:  # an earlier turn, of other programs or lanes, has been here
                old = old.holds(Lane.DATA, Lane.DATA, old.same)
            joined = join_values(old, new, new.text)
            if new.after is Lane.KEPT:
                self._names[name] = joined.holds(old.before, old.after, old.same)
                continue
            before, after = (new, old) if running[0] == TRUE else (old, new)
            self._names[name] = joined.holds(before.before, after.after, same=False)

    def _paths(
        self, node: cst.If | cst.IfExp, yes: Sequence[cst.CSTNode], no: Sequence[cst.CSTNode]
    ) -> None:
        """Walk both ways from a test and join them; a test decided before goes the same way."""
        condition = self._eval(node.test)
        self._controls(node, condition)
        test = condition.text.removeprefix("~")
        negated = test != condition.text
        known = self._decided.get(test)
        stable = not condition.loaded and not set("@#") & set(test)
        entry, findings = dict(self._names), self.findings
        ends: list[dict[str, Value]] = []
        seen = Findings()
        for taken, statements in ((True, yes), (False, no)):
            holds = taken is not negated
            if known is not None and known is not holds:
                continue
            self._names, self.findings = dict(entry), Findings()
            if known is None and stable:
                self._decided[test] = holds
            self._taken[node] = taken
            self._statements(statements)
            del self._taken[node]
            if known is None:
                self._decided.pop(test, None)
            ends.append(self._names)
            seen.absorb(self.findings)
        self.findings = findings
        self.findings.replace(seen)
        self._names = self._joined(ends[0], ends[-1], node)

    def _controls(self, node: cst.CSTNode, value: Value) -> None:
        """What decides which statements run, and differs, shows."""
        own = None if value.same or self._lanes is None or self._indices() else self._reveal()
        leak = weakest(value.leak, own)
        if leak is not None:
            self.findings.outputs[node] = leak

    def _loop(self, node: cst.For | cst.While, body: cst.BaseSuite, target: object) -> None:
        line = self._module.line(node)
        carried = sorted(self._scene.names_set(node.body) & self._names.keys())
        if isinstance(target, cst.Name):
            self._names[target.value] = Value(f"{target.value}@{line}", index=True)
            self._standings.add(f"{target.value}@{line}")
        self._loops += 1
        for _ in range(_MAX_TURNS):
            for name in carried:
                self._names[name] = _carried(self._names[name], f"{name}@{line}")
            entry = dict(self._names)
            if isinstance(node, cst.While):
                self._eval(node.test)
            if self._is_changed(node):
                self._only((FALSE, TRUE), body.body)
            else:
                self._block(body)
            self._names = self._joined(entry, self._names, node)
            for name in carried:
                self._names[name] = _carried(self._names[name], f"{name}@{line}")
            if self._names == entry:
                break
        self._loops -= 1

    def _joined(
        self, x: Mapping[str, Value], y: Mapping[str, Value], node: cst.CSTNode
    ) -> dict[str, Value]:
        line = self._module.line(node)
        names = dict(x)
        for name, value in y.items():
            names[name] = join_values(x[name], value, f"{name}@{line}") if name in x else value
        return names


def leaves(body: cst.BaseSuite) -> bool:
    """Whether a block ends by returning nothing."""
    last = body.body[-1] if body.body else None
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Return) and last.value is None


def _choice(statement: cst.CSTNode) -> cst.If | cst.IfExp | None:
    """A branch, or the conditional expression that an assignment chooses its value by."""
    if isinstance(statement, cst.If):
        return statement
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.IfExp):
            return small.value
    return None


def _carried(value: Value, text: str) -> Value:
    """A name at the start of a loop's turn: what it holds depends on the turn."""
    return replace(value.named(text), conjuncts=())


def _element(value: Value, position: int) -> Value:
    """One part of a tuple that is not spelled out."""
    return replace(value.named(f"{value.text}.{position}"), conjuncts=())
