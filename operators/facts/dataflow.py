"""Where the values of one kernel come from and where they go.

The analysis is flow-sensitive over Python's structured statements: every use of a name knows
the definitions that reach it, around loops and through branches. On top of it, every
expression knows its operands and its consumers, each with a role (value, address, mask, ...),
so that an operator can ask "does this factor reach a stored value?" without looking at names.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

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
    dotted,
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
    _reaching: dict[cst.Name, tuple[Definition, ...]]
    _uses: dict[Definition, tuple[cst.Name, ...]]
    _defined_by: dict[cst.CSTNode, tuple[Definition, ...]]
    _consumer: dict[cst.CSTNode, tuple[Role, cst.CSTNode]]
    _expressions: tuple[cst.CSTNode, ...]
    _forward: dict[cst.CSTNode, frozenset[cst.CSTNode]] = field(default_factory=dict)
    _loops: dict[cst.CSTNode, tuple[cst.CSTNode, ...]] = field(default_factory=dict)
    _callers: tuple[str, ...] = ()
    """Functions through whose calls this one is looked at; ends the recursion of helpers."""

    # -- definitions and uses

    def definitions(self, name: str | None = None) -> tuple[Definition, ...]:
        """Definitions in program order, of one name or of all."""
        return tuple(d for d in self._definitions if name is None or d.name == name)

    def reaching(self, use: cst.Name) -> tuple[Definition, ...]:
        """Definitions that may give this use its value, in program order; () if global."""
        return self._reaching.get(use, ())

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

    @functools.cached_property
    def evaluation_order(self) -> tuple[cst.CSTNode, ...]:
        """All expressions, operands before what holds them."""
        where = self.kernel.module.inner

        def place(node: cst.CSTNode) -> tuple[int, int, int, int]:
            start, end = where[node].start, where[node].end
            return end.line, end.column, -start.line, -start.column

        return tuple(sorted(self._expressions, key=place))

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
        if held is None:
            return tuple(steps)
        if self.call_name(held[1]).startswith("helper."):
            held = (self._role_in_helper(held[1], node) or held[0], held[1])
        return (held, *steps)

    def _role_in_helper(self, call: cst.CSTNode, argument: cst.CSTNode) -> Role | None:
        """What a function of the module makes of an argument, if it only addresses, masks or
        decides with it."""
        assert isinstance(call, cst.Call)
        flow = self._helpers.get(self.call_name(call).removeprefix("helper."))
        if flow is None:
            return None
        names = [p.name.value for p in parameters_of(flow.kernel.function)]
        for position, arg in enumerate(call.args):
            if arg.value is not argument:
                continue
            name = arg.keyword.value if arg.keyword is not None else (
                names[position] if position < len(names) and not arg.star else ""
            )  # fmt: skip
            sinks = flow.parameter_sinks(name)
            if not sinks or sinks & {Role.RETURNED, Role.STORED, Role.PAD}:
                return None
            return next(role for role in Role if role in sinks)
        return None

    def parameter_sinks(self, name: str) -> frozenset[Role]:
        """Roles in which a parameter's value leaves arithmetic; empty if it is not used."""
        uses = (
            use
            for definition in self.definitions(name)
            if definition.kind is DefinitionKind.PARAMETER
            for use in self.uses(definition)
        )
        return frozenset[Role]().union(*(self.sinks(use) for use in uses))

    @functools.cached_property
    def _helpers(self) -> dict[str, Dataflow]:
        """Flows of the functions of the module that this one calls, by name."""
        name = self.kernel.function.name.value
        called = {
            self.call_name(n).removeprefix("helper.")
            for n in self._expressions
            if self.call_name(n).startswith("helper.")
        }
        functions = [f for f in self.kernel.module.tree.body if isinstance(f, cst.FunctionDef)]
        callers = (*self._callers, name)
        return {
            f.name.value: analyse(
                replace(self.kernel, function=f, qualname=f.name.value), self.words, callers
            )
            for f in functions
            if f.name.value in called and f.name.value not in callers
        }

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

    def influenced(self, nodes: Iterable[cst.CSTNode]) -> frozenset[cst.CSTNode]:
        """The nodes and every expression that they reach in any role."""
        nodes = tuple(nodes)
        reached = (_closure(n, lambda m: (out for _, out in self.outputs(m))) for n in nodes)
        return frozenset(nodes).union(*reached)

    def copies(self, node: cst.CSTNode) -> frozenset[cst.CSTNode]:
        """The node, and every name and cast that hands its value on unchanged."""
        return _closure(
            node,
            lambda n: (
                m
                for role, m in self.outputs(n)
                if role is Role.VALUE and (isinstance(m, cst.Name) or self.call_name(m) == "to")
            ),
        ) | {node}

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
        if node not in self._loops:
            self._loops[node] = tuple(self._loops_around(node))
        return self._loops[node]

    def _loops_around(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        parents = self.kernel.module.parents
        current = node
        while current is not self.kernel.function and current in parents:
            above = parents[current]
            if isinstance(above, cst.For | cst.While) and current is above.body:
                yield above
            current = above

    def is_loop_carried(self, use: cst.Name) -> bool:
        """Whether the use may read a value of an earlier turn of a loop around it."""
        return use in self.forward(use)

    # -- parameters

    def parameters(self) -> dict[str, ParameterKind]:
        """Every parameter and what it is; a pointer is one that addresses are built on."""
        return self._parameters

    @functools.cached_property
    def _parameters(self) -> dict[str, ParameterKind]:
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


def language_name(flow: Dataflow) -> str:
    """How the kernel spells `triton.language` where it calls its functions."""
    for node in flow.expressions():
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            root = dotted(node.func.value)
            if root is not None and root in flow.words.language:
                return root
    return min(flow.words.language)


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


def analyse(
    kernel: KernelSyntax, words: Vocabulary | None = None, callers: tuple[str, ...] = ()
) -> Dataflow:
    """Analyse one kernel; `words` spares reading the module's imports again."""
    words = words or vocabulary(kernel)
    found = trace(kernel.function, words)
    position = {definition: i for i, definition in enumerate(found.definitions)}
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
        _reaching={
            use: tuple(sorted(definitions, key=position.__getitem__))
            for use, definitions in found.reaching.items()
        },
        _uses={d: tuple(names) for d, names in uses.items()},
        _defined_by={n: tuple(ds) for n, ds in defined_by.items()},
        _consumer=found.consumer,
        _expressions=found.expressions,
        _callers=callers,
    )
