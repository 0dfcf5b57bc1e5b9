"""Where the values of one kernel come from and where they go.

The analysis is flow-sensitive over Python's structured statements: every use of a name knows
the definitions that reach it, around loops and through branches. On top of it, every
expression knows its operands and its consumers, each with a role (value, address, mask, ...),
so that an operator can ask "does this factor reach a stored value?" without looking at names.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import libcst as cst

from gatecert.operators.facts.definitions import (
    Definition,
    DefinitionKind,
    operands,
    parameters_of,
    trace,
)
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import (
    Argument,
    Role,
    Vocabulary,
    call_arguments,
    vocabulary,
)


class ParameterKind(enum.Enum):
    """What a kernel's parameter is."""

    CONSTEXPR = "constexpr"
    POINTER = "pointer"
    SCALAR = "scalar"


@dataclass(frozen=True)
class Dataflow:
    """Definitions, uses and roles in one kernel; made by `analyse`."""

    kernel: KernelSyntax
    words: Vocabulary
    _definitions: tuple[Definition, ...]
    _reaching: dict[cst.Name, frozenset[Definition]]
    _uses: dict[Definition, tuple[cst.Name, ...]]
    _defined_by: dict[cst.CSTNode, tuple[Definition, ...]]
    _consumer: dict[cst.CSTNode, tuple[Role, cst.CSTNode]]
    _expressions: tuple[cst.CSTNode, ...]
    _forward: dict[cst.CSTNode, frozenset[cst.CSTNode]] = field(default_factory=dict)

    # -- definitions and uses

    def definitions(self, name: str | None = None) -> tuple[Definition, ...]:
        """Definitions in program order, of one name or of all."""
        return tuple(d for d in self._definitions if name is None or d.name == name)

    def reaching(self, use: cst.Name) -> tuple[Definition, ...]:
        """Definitions that may give this use its value, in program order; () if global."""
        found = self._reaching.get(use, frozenset())
        return tuple(d for d in self._definitions if d in found)

    def uses(self, definition: Definition) -> tuple[cst.Name, ...]:
        """Uses that may read this definition, in program order."""
        return self._uses.get(definition, ())

    def resolve(self, node: cst.CSTNode) -> cst.CSTNode:
        """Follow a name to its defining expression as long as there is only one."""
        seen: set[cst.CSTNode] = set()
        while isinstance(node, cst.Name) and node not in seen:
            seen.add(node)
            reaching = self.reaching(node)
            if len(reaching) != 1 or reaching[0].value is None or reaching[0].element is not None:
                break
            if isinstance(reaching[0].value, cst.AugAssign):
                break
            node = reaching[0].value
        return node

    def same_value(self, left: cst.CSTNode, right: cst.CSTNode) -> bool:
        """Whether two expressions surely have one value: same tree, same definitions."""
        left, right = self.resolve(left), self.resolve(right)
        if left is right:
            return True
        if isinstance(left, cst.Name) and isinstance(right, cst.Name):
            return left.value == right.value and self.reaching(left) == self.reaching(right)
        if type(left) is not type(right) or isinstance(left, cst.Call):
            return False
        if isinstance(left, cst.BaseNumber) and isinstance(right, cst.BaseNumber):
            return self.source(left) == self.source(right)
        mine, others = self.operands(left), self.operands(right)
        if not mine or len(mine) != len(others):
            return False
        return _skeleton(left) == _skeleton(right) and all(
            self.same_value(a, b) for (_, a), (_, b) in zip(mine, others, strict=True)
        )

    # -- expressions

    def expressions(self) -> tuple[cst.CSTNode, ...]:
        """All expressions of the body in program order, and every augmented assignment."""
        return self._expressions

    def calls(self, *names: str) -> Iterator[cst.Call]:
        """Calls with one of these canonical names, in program order."""
        for node in self._expressions:
            if isinstance(node, cst.Call) and self.call_name(node) in names:
                yield node

    def call_name(self, node: cst.CSTNode) -> str:
        """Canonical name of a call (see `Vocabulary.call_name`); "" for other nodes."""
        return self.words.call_name(node) if isinstance(node, cst.Call) else ""

    def arguments(self, call: cst.Call) -> tuple[Argument, ...]:
        """Arguments of a call under their parameters' names, receiver first."""
        return call_arguments(self.words, call)

    def argument(self, call: cst.Call, parameter: str) -> Argument | None:
        """The argument for one parameter, if it is given."""
        return next((a for a in self.arguments(call) if a.parameter == parameter), None)

    def operands(self, node: cst.CSTNode) -> tuple[tuple[Role, cst.CSTNode], ...]:
        """Direct inputs of an expression with their roles (definitions not followed)."""
        return operands(self.words, node)

    def inputs(self, node: cst.CSTNode) -> tuple[tuple[Role, cst.CSTNode], ...]:
        """Like `operands`, but a name's inputs are the expressions that define it."""
        if isinstance(node, cst.Name):
            return tuple((Role.VALUE, d.value) for d in self.reaching(node) if d.value is not None)
        return self.operands(node)

    def consumer(self, node: cst.CSTNode) -> tuple[Role, cst.CSTNode] | None:
        """The expression or statement that holds this one, and this one's role there."""
        return self._consumer.get(node)

    def source(self, node: cst.CSTNode) -> str:
        """The node's text."""
        return self.kernel.module.source(node)

    # -- flow

    def outputs(self, node: cst.CSTNode) -> tuple[tuple[Role, cst.CSTNode], ...]:
        """One step forward: the consumer, or the uses of the names that this defines."""
        defined = self._defined_by.get(node, ())
        steps = [(Role.VALUE, use) for d in defined for use in self.uses(d)]
        held = self._consumer.get(node)
        return tuple(steps) if held is None else (held, *steps)

    def forward(self, node: cst.CSTNode) -> frozenset[cst.CSTNode]:
        """Every expression that the node's value enters by arithmetic alone (itself only if
        it is part of a cycle around a loop)."""
        if node not in self._forward:
            self._forward[node] = _closure(
                node, lambda n: (m for role, m in self.outputs(n) if role is Role.VALUE)
            )
        return self._forward[node]

    def backward(self, node: cst.CSTNode) -> frozenset[cst.CSTNode]:
        """Every expression whose value enters this one by arithmetic alone."""
        return _closure(node, lambda n: (m for role, m in self.inputs(n) if role is Role.VALUE))

    def flows_into(self, source: cst.CSTNode, target: cst.CSTNode) -> bool:
        """Whether the source's value enters the target's by arithmetic alone."""
        return target in self.forward(source)

    def sinks(self, node: cst.CSTNode) -> frozenset[Role]:
        """Roles in which the value leaves arithmetic (stored, address, mask, control, ...)."""
        reached = {node, *self.forward(node)}
        return frozenset(
            role for n in reached for role, _ in self.outputs(n) if role is not Role.VALUE
        )

    def reaches_output(self, node: cst.CSTNode) -> bool:
        """Whether the value ends up in memory or leaves the function."""
        return bool(self.sinks(node) & {Role.STORED, Role.RETURNED})

    # -- loops

    def loops(self, node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
        """Loops around a node, innermost first."""
        found: list[cst.CSTNode] = []
        parents = self.kernel.module.parents
        current = node
        while current is not self.kernel.function and current in parents:
            above = parents[current]
            if isinstance(above, cst.For | cst.While) and current is above.body:
                found.append(above)
            current = above
        return tuple(found)

    def is_loop_carried(self, use: cst.Name) -> bool:
        """Whether the use may read a value of an earlier turn of a loop around it."""
        return use in self.forward(use)

    # -- parameters

    def parameters(self) -> dict[str, ParameterKind]:
        """Every parameter and what it is; a pointer is one that addresses are built on."""
        pointers = self._pointer_names()
        kinds: dict[str, ParameterKind] = {}
        for param in parameters_of(self.kernel.function):
            if is_constexpr(param):
                kinds[param.name.value] = ParameterKind.CONSTEXPR
            elif param.name.value in pointers:
                kinds[param.name.value] = ParameterKind.POINTER
            else:
                kinds[param.name.value] = ParameterKind.SCALAR
        return kinds

    def _pointer_names(self) -> set[str]:
        found: set[str] = set()
        for node in self._expressions:
            for role, child in self.operands(node):
                name = self.call_name(node)
                is_base = name in ("make_block_ptr", "advance") and child is _first(self, node)
                if role is Role.ADDRESS or is_base:
                    base = self._base_parameter(child)
                    if base is not None:
                        found.add(base)
        return found

    def _base_parameter(self, address: cst.CSTNode) -> str | None:
        """The leftmost parameter among an address's addends that nothing else computes with."""
        for leaf in self._addends(address, set()):
            if isinstance(leaf, cst.Name):
                for d in self.reaching(leaf):
                    if d.kind is DefinitionKind.PARAMETER and not self._computes(d):
                        return d.name
        return None

    def _computes(self, definition: Definition) -> bool:
        if isinstance(definition.node, cst.Param) and is_constexpr(definition.node):
            return True
        for use in self.uses(definition):
            held = self._consumer.get(use)
            if held is None:
                continue
            role, holder = held
            additive = isinstance(holder, cst.BinaryOperation) and isinstance(
                holder.operator, cst.Add | cst.Subtract
            )
            if role is Role.VALUE and isinstance(holder, cst.BinaryOperation) and not additive:
                return True
            if role in (Role.CONTROL, Role.MASK):
                return True
            if isinstance(holder, cst.Comparison) and not _compares_none(holder):
                return True
        return False

    def _addends(self, node: cst.CSTNode, seen: set[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        if node in seen:
            return
        seen.add(node)
        if isinstance(node, cst.Name):
            yield node
        for role, child in self.inputs(node):
            additive = not isinstance(node, cst.BinaryOperation) or isinstance(
                node.operator, cst.Add | cst.Subtract
            )
            if role is Role.VALUE and additive:
                yield from self._addends(child, seen)


def _first(flow: Dataflow, node: cst.CSTNode) -> cst.CSTNode | None:
    if not isinstance(node, cst.Call):
        return None
    arguments = flow.arguments(node)
    return arguments[0].value if arguments else None


def _closure(
    start: cst.CSTNode, step: Callable[[cst.CSTNode], Iterable[cst.CSTNode]]
) -> frozenset[cst.CSTNode]:
    found: set[cst.CSTNode] = set()
    queue = [start]
    while queue:
        for node in step(queue.pop()):
            if node not in found:
                found.add(node)
                queue.append(node)
    return frozenset(found)


def _skeleton(node: cst.CSTNode) -> str:
    operator = getattr(node, "operator", None)
    return f"{type(node).__name__}:{type(operator).__name__}"


def _compares_none(node: cst.Comparison) -> bool:
    return any(
        isinstance(t.comparator, cst.Name) and t.comparator.value == "None"
        for t in node.comparisons
    )


def is_constexpr(param: cst.Param) -> bool:
    """Whether a parameter is annotated `tl.constexpr` (or `constexpr`)."""
    if param.annotation is None:
        return False
    note = param.annotation.annotation
    if isinstance(note, cst.SimpleString):
        return "constexpr" in note.value
    name = note.attr.value if isinstance(note, cst.Attribute) else getattr(note, "value", "")
    return name == "constexpr"


def analyse(kernel: KernelSyntax, words: Vocabulary | None = None) -> Dataflow:
    """Analyse one kernel; `words` spares reading the module's imports again."""
    words = words or vocabulary(kernel)
    found = trace(kernel.function, words)
    uses: dict[Definition, list[cst.Name]] = {}
    for use, definitions in found.reaching.items():
        for definition in definitions:
            uses.setdefault(definition, []).append(use)
    defined_by: dict[cst.CSTNode, list[Definition]] = {}
    for definition in found.definitions:
        if definition.value is not None:
            defined_by.setdefault(definition.value, []).append(definition)
    return Dataflow(
        kernel=kernel,
        words=words,
        _definitions=found.definitions,
        _reaching=found.reaching,
        _uses={d: tuple(names) for d, names in uses.items()},
        _defined_by={n: tuple(ds) for n, ds in defined_by.items()},
        _consumer=found.consumer,
        _expressions=found.expressions,
    )
