"""Benign rewrite: loops that run backwards where the order of their turns does not matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import Definition
from gatecert.operators.facts.language import ATOMICS
from gatecert.operators.facts.softmax import (
    exponent_difference,
    rescales,
    sides,
    stabilised_exponentials,
)
from gatecert.operators.records import Edit

_RANGES = frozenset({"range", "builtins.range"})
_MAXIMA = frozenset({"maximum", "builtins.max"})
_EXTREMA = _MAXIMA | {"minimum", "builtins.min"}


def loops_backwards(flow: Dataflow) -> list[Edit]:
    """Run every loop whose turns only add to accumulators from its last turn to its first.

    The header keeps its range; the body's first line counts the loop variable down. Accepted are
    sums, maxima, and online softmax (running maximum, and sums rescaled to it).
    """
    edits: list[Edit] = []
    for loop in _descendants(flow.kernel.function.body):
        if isinstance(loop, cst.For) and not flow.loops(loop):
            found = _backwards(flow, loop)
            if found is not None and _Loop(flow, loop).order_is_free():
                edits += found
    return edits


def _backwards(flow: Dataflow, loop: cst.For) -> list[Edit] | None:
    """The edits that count a plain `for name in range(...)` down, or None for other loops."""
    module = flow.kernel.module
    plain = (
        isinstance(loop.target, cst.Name)
        and isinstance(loop.iter, cst.Call)
        and flow.call_name(loop.iter) in _RANGES
        and isinstance(loop.body, cst.IndentedBlock)
        and loop.orelse is None
    )
    if not plain or not isinstance(loop.iter, cst.Call) or not isinstance(loop.target, cst.Name):
        return None
    bounds = [module.source(arg.value) for arg in loop.iter.args if arg.keyword is None]
    if len(bounds) == 1:
        bounds = ["0", *bounds]
    low, high, step = (*bounds, "1")[:3]
    if step.startswith("-"):
        return None
    variable, turn = loop.target.value, f"{loop.target.value}_turn"
    length = f"({high})" if low == "0" else f"({high}) - ({low})"
    last = (
        f"{length} - 1"
        if step == "1"
        else f"(({length} + ({step}) - 1) // ({step}) - 1) * ({step})"
    )
    value = f"{last} - {turn}" if low == "0" else f"({low}) + {last} - ({turn} - ({low}))"
    first = module.inner_span(loop.body.body[0])[0]
    column = first - (module.text.rfind("\n", 0, first) + 1)
    return [
        Edit(*module.span(loop.target), turn),
        Edit(first, first, f"{variable} = {value}\n{' ' * column}"),
    ]


class _Loop:
    """What one turn of a loop reads of the turns before it, and what is read after the loop."""

    def __init__(self, flow: Dataflow, loop: cst.For) -> None:
        self._flow = flow
        self._span = flow.kernel.module.span(loop.body)
        self._loop = loop
        self._definitions = [d for d in flow.definitions() if self._inside(d.node)]
        self._uses = [
            node for node in flow.expressions() if isinstance(node, cst.Name) and self._inside(node)
        ]
        self._carried = self._carried_names()

    def order_is_free(self) -> bool:
        """Whether the turns give the same result, up to rounding, in any order."""
        if not self._carried or self._has_other_effects() or self._leaks():
            return False
        others = {name for name in self._carried if not self._accumulates(name)}
        return not others or self._is_online_softmax(others)

    def _inside(self, node: cst.CSTNode) -> bool:
        start, _ = self._flow.kernel.module.span(node)
        return self._span[0] <= start < self._span[1]

    def _carried_names(self) -> set[str]:
        """Names that a turn may read as an earlier turn left them."""
        module = self._flow.kernel.module
        found = set()
        for use in self._uses:
            for definition in self._flow.reaching(use):
                if definition not in self._definitions:
                    continue
                augmented = definition.node
                in_itself = isinstance(augmented, cst.AugAssign) and augmented.target is use
                later = module.span(definition.node)[0] > module.span(use)[0]
                value_end = definition.value and module.span(definition.value)[1]
                same = bool(value_end) and (
                    module.span(definition.node)[0] < module.span(use)[0] < (value_end or 0)
                )
                if in_itself or later or same:
                    found.add(use.value)
        return found

    def _has_other_effects(self) -> bool:
        """Stores, branches, jumps and inner loops: not for this rule."""
        for node in _descendants(self._loop.body):
            if isinstance(node, cst.If | cst.For | cst.While | cst.Break | cst.Continue):
                return True
            if isinstance(node, cst.Call):
                name = self._flow.call_name(node)
                if name == "store" or name in ATOMICS or name in ("advance", "make_block_ptr"):
                    return True
        bounds = {n.value for n in _descendants(self._loop.iter) if isinstance(n, cst.Name)}
        return bool(bounds & {d.name for d in self._definitions})

    def _leaks(self) -> bool:
        """Whether code after the loop reads what only the last turn computed."""
        for use in self._flow.expressions():
            if isinstance(use, cst.Name) and not self._inside(use):
                for definition in self._flow.reaching(use):
                    ours = definition in self._definitions or definition.node is self._loop
                    if ours and use.value not in self._carried:
                        return True
        return False

    def _accumulates(self, name: str) -> bool:
        """Whether every update adds to the name, or every one takes an extremum with it, and
        nothing else in the body reads it."""
        kinds = set()
        reads = [use for use in self._uses if use.value == name]
        for definition in self._definitions:
            if definition.name == name:
                kind, read = self._update(definition)
                if kind == "":
                    return False
                kinds.add(kind)
                reads = [use for use in reads if use is not read]
        return len(kinds) == 1 and not reads

    def _update(self, definition: Definition) -> tuple[str, cst.CSTNode | None]:
        """How a definition updates its own name ("" if in no known way), and where it reads it."""
        value = definition.value
        if isinstance(value, cst.AugAssign):
            if isinstance(value.operator, cst.AddAssign | cst.SubtractAssign):
                if self._depends(value.value):
                    return "", None
                return "sum", value.target
            return "", None
        if value is None or definition.element is not None:
            return "", None
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
            parts: list[cst.CSTNode] = [value.left, value.right]
            kind = "sum"
        elif isinstance(value, cst.Call):
            called = self._flow.call_name(value)
            parts = [a.value for a in self._flow.arguments(value) if a.arg is None or a.value]
            if called == "dot":
                accumulator = self._flow.argument(value, "acc")
                if accumulator is None or not self._is_name(accumulator.value, definition.name):
                    return "", None
                kind = "sum"
            elif called in _EXTREMA:
                kind = called
            else:
                return "", None
        else:
            return "", None
        own = [part for part in parts if self._is_name(part, definition.name)]
        rest = [part for part in parts if not self._is_name(part, definition.name)]
        if len(own) != 1 or any(self._depends(part) for part in rest):
            return "", None
        return kind, own[0]

    def _is_name(self, node: cst.CSTNode, name: str) -> bool:
        return isinstance(node, cst.Name) and node.value == name

    def _depends(
        self, node: cst.CSTNode, *, past: Callable[[cst.CSTNode], bool] | None = None
    ) -> bool:
        """Whether a value depends on a carried name; `past` nodes are not looked behind."""
        for found in _reach(self._flow, node, past or (lambda _: False)):
            if isinstance(found, cst.Name) and found.value in self._carried:
                if past is not None and past(found):
                    continue
                return True
        return False

    # -- online softmax

    def _is_online_softmax(self, names: set[str]) -> bool:
        """One running maximum, and sums that are brought to each new maximum as they grow."""
        maxima = {name: new for name in names if (new := self._running_maximum(name)) is not None}
        if len(maxima) != 1:
            return False
        [(maximum, new)] = maxima.items()
        if not self._is_safe_from_empty_tiles(new):
            return False
        return all(self._is_rescaled_sum(name, maximum) for name in names - {maximum})

    def _running_maximum(self, name: str) -> cst.Call | None:
        """The call that takes the maximum of the name and this turn's values."""
        updates = [d for d in self._definitions if d.name == name]
        if len(updates) != 1 or updates[0].value is None:
            return None
        new = self._flow.resolve(updates[0].value)
        if not isinstance(new, cst.Call) or self._flow.call_name(new) not in _MAXIMA:
            return None
        parts = [a.value for a in self._flow.arguments(new)]
        own = [part for part in parts if self._is_name(part, name)]
        rest = [part for part in parts if not self._is_name(part, name)]
        return new if len(own) == 1 and not any(self._depends(p) for p in rest) else None

    def _is_safe_from_empty_tiles(self, new: cst.Call) -> bool:
        """A tile of -inf alone that comes first makes NaN (-inf - -inf): either the kernel guards
        against it, or its scores are products whose masks are the same for every program."""
        differences = [
            difference
            for rescale in rescales(self._flow)
            if (difference := exponent_difference(self._flow, rescale.exponential)) is not None
        ]
        guards = [self._flow.resolve(sides(d)[1]) for d in differences]
        if guards and all(self._flow.call_name(guard) == "where" for guard in guards):
            return True
        behind = set(_reach(self._flow, new, lambda _: False))
        if not any(self._flow.call_name(node) == "dot" for node in behind):
            return False
        masks = [
            self._flow.arguments(node)[0].value
            for node in behind
            if isinstance(node, cst.Call) and self._flow.call_name(node) == "where"
        ]
        return not any(
            self._flow.call_name(node) == "program_id"
            for mask in masks
            for node in _reach(self._flow, mask, lambda _: False)
        )

    def _is_rescaled_sum(self, name: str, maximum: str) -> bool:
        """`name = name * exp(old - new) + terms`, in one statement or several, where the terms
        know the running maximum only through `exp(score - new)`."""
        scaled = [r for r in rescales(self._flow) if self._is_name(r.running, name)]
        if len(scaled) != 1 or not self._inside(scaled[0].whole):
            return False
        shifted: set[cst.CSTNode] = {e.call for e in stabilised_exponentials(self._flow)}
        shifted |= {scaled[0].whole, scaled[0].exponential}

        def past(node: cst.CSTNode) -> bool:
            return node in shifted or self._is_name(node, name)

        for definition in self._definitions:
            if definition.name != name or definition.value is None:
                continue
            value = definition.value
            additive = value is scaled[0].whole or (
                isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add)
            )
            if isinstance(value, cst.AugAssign):
                additive = value is scaled[0].whole or isinstance(value.operator, cst.AddAssign)
            if self._flow.call_name(value) == "dot":
                assert isinstance(value, cst.Call)
                additive = self._flow.argument(value, "acc") is not None
            if not additive or self._depends(value, past=past):
                return False
        reads = [use for use in self._uses if use.value == name]
        own = [d.value for d in self._definitions if d.name == name and d.value is not None]
        return all(any(use in set(_syntax(value)) for value in own) for use in reads)


def _reach(
    flow: Dataflow, start: cst.CSTNode, past: Callable[[cst.CSTNode], bool]
) -> Iterator[cst.CSTNode]:
    """Everything that a value is made of in any role, not looking behind `past` nodes."""
    seen: set[cst.CSTNode] = set()
    queue = [start]
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if not past(node):
            queue += [child for _, child in flow.inputs(node)]


def _syntax(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    yield node
    yield from _descendants(node)


def _descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _descendants(child)
