"""What the addresses of a kernel are made from: origins, sums and the buffers they reach."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from gatecert.operators.facts.cancellation import Factor
from gatecert.operators.facts.changes import SHIFTED
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.records import ObservableBy, Reveal

if TYPE_CHECKING:
    from gatecert.operators.facts.analysis import Analysis

_LOADS = frozenset({"load", "descriptor_load"})
_LOCKS = frozenset({"atomic_cas", "atomic_xchg"})
_WRAPPERS = frozenset(
    {"to", "multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "expand_dims"}
)


class Origin(enum.Enum):
    """Where a part of an index comes from."""

    PROGRAM = "program"
    """A program id."""
    TILE = "tile"
    """`tl.arange`, or an index vector that a caller gives."""
    LOOP = "loop"
    """A loop variable, or a counter that a loop carries."""
    LOADED = "loaded"
    """Memory: a gathered index, the start of a sequence."""


INDEX = frozenset(Origin)


def origins(typing: Typing, node: cst.CSTNode) -> frozenset[Origin]:
    """Where the parts of a value come from; empty for what parameters and numbers make."""
    return frozenset(_origins(typing, node))


def _origins(typing: Typing, node: cst.CSTNode) -> Iterator[Origin]:
    flow = typing.flow
    for part in {node, *flow.backward(node)}:
        name = flow.call_name(part)
        if name == "program_id":
            yield Origin.PROGRAM
        elif name == "arange":
            yield Origin.TILE
        elif name in _LOADS:
            yield Origin.LOADED
        elif isinstance(part, cst.Name):
            if flow.is_loop_carried(part):
                yield Origin.LOOP
            for definition in flow.reaching(part):
                if definition.kind is DefinitionKind.LOOP_VARIABLE:
                    yield Origin.LOOP
                    if any(flow.call_name(n) == "program_id" for n in _start(flow, definition)):
                        yield Origin.PROGRAM
                elif definition.kind is DefinitionKind.PARAMETER and _is_tile(typing, part):
                    yield Origin.TILE


def _is_tile(typing: Typing, name: cst.Name) -> bool:
    return typing.kind(name) is not Kind.POINTER and bool(typing.safe_shape(name))


def _start(flow: Dataflow, definition: Definition) -> Iterator[cst.CSTNode]:
    """All that the first value of a loop variable is made from."""
    iterated = definition.node.iter if isinstance(definition.node, cst.For) else None
    if isinstance(iterated, cst.Call) and len(iterated.args) > 1:
        start = iterated.args[0].value
        yield from (start, *flow.backward(start))


def is_fixed(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is made from numbers, constexpr parameters and module constants alone."""
    kinds = flow.parameters()
    for part in {node, *flow.backward(node)}:
        if isinstance(part, cst.Name):
            for definition in flow.reaching(part):
                if definition.kind is DefinitionKind.LOOP_VARIABLE:
                    return False
                given = definition.kind is DefinitionKind.PARAMETER
                if given and kinds[definition.name] is not ParameterKind.CONSTEXPR:
                    return False
        elif isinstance(part, cst.Call) and flow.call_name(part) not in ("cdiv", "constexpr"):
            return False
    return True


def factors(node: cst.CSTNode) -> tuple[cst.CSTNode, cst.CSTNode] | None:
    """The operands of a product; None for anything else."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return node.left, node.right
    return None


def is_sum(node: cst.CSTNode) -> bool:
    """Whether an expression is spelled as a sum."""
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add)


def is_scaled_by_block(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is a product by something fixed at compile time, as `pid * BLOCK` is."""
    parts = factors(flow.resolve(node))
    return parts is not None and any(is_fixed(flow, part) for part in parts)


def addends(typing: Typing, node: cst.CSTNode, deep: bool = False) -> Iterator[cst.CSTNode]:
    """Addends of an address in source order, also those of the pointers that it starts from.

    Names of pointers are followed to what defines them, names of integers only if `deep`.
    What is subtracted is no addend.
    """
    return _addends(typing, node, deep, set())


def _addends(
    typing: Typing, node: cst.CSTNode, deep: bool, seen: set[cst.CSTNode]
) -> Iterator[cst.CSTNode]:
    if node in seen:
        return
    seen.add(node)
    flow = typing.flow
    parts: list[cst.CSTNode] = []
    if is_sum(node) and isinstance(node, cst.BinaryOperation):
        parts = [node.left, node.right]
    elif isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Subtract):
        parts = [node.left]
    elif isinstance(node, cst.AugAssign) and isinstance(node.operator, cst.AddAssign):
        parts = [node.target, node.value]
    elif deep or typing.kind(node) is Kind.POINTER:
        if isinstance(node, cst.Name):
            definitions = [d for d in flow.reaching(node) if d.element is None]
            parts = [d.value for d in definitions if d.value is not None]
        elif isinstance(node, cst.Subscript) or flow.call_name(node) in _WRAPPERS:
            parts = [flow.operands(node)[0][1]]
    for part in parts:
        yield from _addends(typing, part, deep, seen)
    if not parts:
        yield node


class Addresses:
    """The addresses of one kernel and the buffers behind them."""

    def __init__(self, facts: Analysis) -> None:
        self.facts = facts
        self.flow = facts.flow
        self.typing = facts.typing
        self._hidden: dict[cst.CSTNode, bool] = {}
        self._accesses = [
            (node, holder, self.flow.backward(node))
            for node in self.flow.expressions()
            for role, holder in self.flow.outputs(node)
            if role is Role.ADDRESS
        ]

    def all(self) -> tuple[cst.CSTNode, ...]:
        """Every address, in program order."""
        return tuple(address for address, _, _ in self._accesses)

    def of(self, node: cst.CSTNode) -> tuple[tuple[cst.CSTNode, cst.CSTNode], ...]:
        """Addresses that a value enters, each with the call that uses it."""
        return tuple((a, call) for a, call, parts in self._accesses if node is a or node in parts)

    def uses(self, node: cst.CSTNode) -> bool:
        """Whether a value enters an address of data, and not just one of locks."""
        return any(self.flow.call_name(call) not in _LOCKS for _, call in self.of(node))

    def loads(self, node: cst.CSTNode) -> bool:
        """Whether a value enters the address of a load."""
        return any(self.flow.call_name(call) in _LOADS for _, call in self.of(node))

    def buffers(self, address: cst.CSTNode) -> frozenset[str]:
        """Pointer parameters that an address is built on."""
        kinds = self.flow.parameters()
        names = (n for n in (address, *self.flow.backward(address)) if isinstance(n, cst.Name))
        return frozenset(
            definition.name
            for name in names
            for definition in self.flow.reaching(name)
            if definition.kind is DefinitionKind.PARAMETER
            and kinds[definition.name] is ParameterKind.POINTER
        )

    def is_masked(self, node: cst.CSTNode) -> bool:
        """Whether a value also decides a comparison, so that a bound may follow its change."""
        return bool(self.flow.sinks(node) & {Role.MASK, Role.CONDITION})

    def counts_blocks(self, node: cst.CSTNode) -> bool:
        """Whether a value is a number of blocks: something fixed at compile time scales it."""
        return any(
            any(is_fixed(self.flow, part) for part in factors(product) or ())
            for product in self.flow.forward(node)
        )

    def labels(
        self, node: cst.CSTNode, bounds: bool, reveal: set[Reveal]
    ) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
        """`observable_by` and `reveal` of a change to a part of addresses.

        Wrong data that would cancel (a maximum that a softmax subtracts) shows only where it
        is so far from the right one that exponentials overflow.
        """
        observable = (
            (ObservableBy.VALUES, ObservableBy.BOUNDS) if bounds else (ObservableBy.VALUES,)
        )
        calls = [call for _, call in self.of(node)]
        if calls and all(self._cancels(call) for call in calls):
            reveal = reveal | {Reveal.LARGE_MAGNITUDE}
        if len(reveal) > 1:
            reveal = reveal - {Reveal.ANY}
        return observable, tuple(sorted(reveal)) or (Reveal.ANY,)

    def _cancels(self, call: cst.CSTNode) -> bool:
        """Whether other data in the place of what a call loads cancels on its way."""
        if self.flow.call_name(call) != "load":
            return False
        if call not in self._hidden:
            factor = Factor(self.typing.safe_shape(call), frozenset(self.flow.loops(call)))
            cancels = self.facts.cancellation.cancels
            self._hidden[call] = cancels({call: SHIFTED}, factor)
        return self._hidden[call]
