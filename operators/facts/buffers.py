"""What a kernel does to a buffer that it is given: read it, fill it, or store to some of it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import ATOMICS
from gatecert.operators.facts.memory import mask_terms
from gatecert.operators.facts.values import Access, AccessKind, ConjunctKind


class BufferUse(enum.Enum):
    """What becomes of a buffer's first content."""

    READ = "read"
    """Loads or atomics may use it, or a function that is not looked into."""
    SPARED = "spared"
    """Stores under a condition leave some of it as it was."""
    FILLED = "filled"
    """Plain stores, left out only past a size, replace it."""
    UNTOUCHED = "untouched"
    """The kernel never uses the buffer."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """One pointer parameter's use.

    `program_axes` are those on which programs alone, under no bound, decide which elements
    are stored: the buffer is filled only if the grid has as many programs there.
    """

    use: BufferUse
    program_axes: frozenset[int] = frozenset()


def buffer_use(kernel: KernelSyntax, parameter: str) -> Buffer:
    """What the kernel does to the memory behind one of its parameters."""
    flow, memory = analysis(kernel).flow, analysis(kernel).memory
    mine = [
        access
        for access in memory.accesses(AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC)
        if _rests_on(flow, access.argument("pointer"), parameter)
    ]
    known = {access.node for access in mine}
    if any(a.kind is not AccessKind.STORE for a in mine) or _leaves(flow, parameter, known):
        return Buffer(BufferUse.READ)
    if not mine:
        return Buffer(BufferUse.UNTOUCHED)
    filling = [a for a in mine if not _is_conditional(flow, a)]
    if not filling:
        return Buffer(BufferUse.SPARED)
    axes = [frozenset(_program_axes(flow, access)) for access in filling]
    return Buffer(BufferUse.FILLED, min(axes, key=len))


def _rests_on(flow: Dataflow, node: cst.CSTNode | None, parameter: str) -> bool:
    if node is None:
        return False
    return any(
        definition.kind is DefinitionKind.PARAMETER and definition.name == parameter
        for part in (node, *flow.backward(node))
        if isinstance(part, cst.Name)
        for definition in flow.reaching(part)
    )


def _leaves(flow: Dataflow, parameter: str, known: set[cst.Call]) -> bool:
    """Whether the pointer goes where it is not followed: a helper, a block pointer, a descriptor,
    an access that is not among the known ones."""
    for node in flow.expressions():
        if not isinstance(node, cst.Call) or node in known:
            continue
        name = flow.call_name(node)
        given = flow.arguments(node)
        if name in ATOMICS or name in ("load", "store") or name.startswith("descriptor_"):
            given = tuple(a for a in given if a.parameter == "pointer")
        elif not name.startswith("helper.") and not name.endswith(("block_ptr", "descriptor")):
            continue
        if any(_rests_on(flow, argument.value, parameter) for argument in given):
            return True
    return False


def _is_conditional(flow: Dataflow, access: Access) -> bool:
    """Whether something other than a size decides if a lane is stored."""
    for term in mask_terms(access):
        if term.kind is not ConjunctKind.BOUND or term.standing or term.loaded:
            return True
    return any(_is_runtime(flow, test) for test in _guards(flow, access.node))


def _guards(flow: Dataflow, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Tests of branches around a node, and of those before it that return."""
    module = flow.kernel.module
    place = module.span(node)[0]
    parents = module.parents
    for statement in _descendants(flow.kernel.function.body):
        if isinstance(statement, cst.Return) and module.span(statement)[0] < place:
            yield from (test for test in _tests_around(flow, statement))
    current = node
    while current is not flow.kernel.function and current in parents:
        above = parents[current]
        if isinstance(above, cst.If | cst.While):
            yield above.test
        current = above


def _tests_around(flow: Dataflow, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    parents = flow.kernel.module.parents
    while node is not flow.kernel.function and node in parents:
        node = parents[node]
        if isinstance(node, cst.If):
            yield node.test


def _is_runtime(flow: Dataflow, test: cst.BaseExpression) -> bool:
    """Whether the test depends on more than compile-time choices and absent arguments."""
    kinds = flow.parameters()
    for node in (test, *_descendants(test)):
        if not isinstance(node, cst.Name) or _is_attribute_name(flow, node):
            continue
        for definition in flow.reaching(node):
            fixed = kinds.get(definition.name) is ParameterKind.CONSTEXPR
            parameter = definition.kind is DefinitionKind.PARAMETER
            if not (parameter and (fixed or _is_compared_to_none(flow, node))):
                return True
    return any(isinstance(node, cst.Call) for node in (test, *_descendants(test)))


def _is_attribute_name(flow: Dataflow, node: cst.Name) -> bool:
    parent = flow.kernel.module.parents.get(node)
    return isinstance(parent, cst.Attribute) and parent.attr is node


def _is_compared_to_none(flow: Dataflow, node: cst.Name) -> bool:
    parent = flow.kernel.module.parents.get(node)
    return isinstance(parent, cst.Comparison) and all(
        isinstance(t.comparator, cst.Name) and t.comparator.value == "None"
        for t in parent.comparisons
    )


def _program_axes(flow: Dataflow, access: Access) -> Iterator[int]:
    """Axes of program ids in an address that no term of the mask bounds."""
    pointer = access.argument("pointer")
    bounded = {
        program
        for term in mask_terms(access)
        if term.node is not None
        for side in (term.node.left, *(t.comparator for t in term.node.comparisons))
        for program in _programs(flow, side)
    }
    for program in _programs(flow, pointer) if pointer is not None else ():
        if program not in bounded:
            axis = flow.argument(program, "axis")
            literal = axis.value if axis is not None else None
            yield int(literal.value) if isinstance(literal, cst.Integer) else -1


def _programs(flow: Dataflow, node: cst.CSTNode) -> Iterator[cst.Call]:
    for part in (node, *flow.backward(node)):
        if isinstance(part, cst.Call) and flow.call_name(part) == "program_id":
            yield part


def _descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        yield child
        yield from _descendants(child)
