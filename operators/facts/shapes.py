"""Kinds and symbolic tile shapes of a kernel's expressions (`facts/dims.py` says what those
are). None means that the analysis does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.dims import Shape as Shape
from gatecert.operators.facts.dims import ShapeConflict as ShapeConflict
from gatecert.operators.facts.dims import Sizes
from gatecert.operators.facts.kinds import Kind as Kind
from gatecert.operators.facts.kinds import Kinds
from gatecert.operators.facts.language import ATOMICS, REDUCTIONS, SCANS

_MAX_PASSES = 12
"""Shapes settle after one pass per nested loop; the limit only guards against a mistake."""


@dataclass(frozen=True, slots=True)
class Supposition:
    """Shapes are asked for as if the kernel reduced or broadcast otherwise than it does."""

    axes: Mapping[cst.CSTNode, int | None] = field(default_factory=dict)
    """Reductions and the axis that they shall have; None reduces the whole tile."""
    turned: frozenset[cst.CSTNode] = frozenset()
    """Broadcasts `[:, None]` to read as `[None, :]`, and the reverse."""
    bare: frozenset[cst.CSTNode] = frozenset()
    """Broadcasts to leave out."""


class Typing:
    """Kinds and shapes of one kernel's expressions, each computed once.

    A conflict is local: what uses the expression in conflict has an unknown shape, and the
    rest of the kernel is typed as ever.
    """

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self._kinds = Kinds(flow)
        self._right = _Shapes(flow)
        self._right.settle(flow.evaluation_order)

    def kind(self, node: cst.CSTNode) -> Kind:
        """The kind of an expression; UNKNOWN where nothing in the source tells."""
        return self._kinds.kind(node)

    def shape(self, node: cst.CSTNode) -> Shape | None:
        """The tile shape of an expression.

        Raises `ShapeConflict` if its operands cannot be broadcast together.
        """
        if node in self._right.conflicts:
            raise ShapeConflict(self.flow.source(node))
        return self.safe_shape(node)

    def safe_shape(self, node: cst.CSTNode) -> Shape | None:
        """Like `shape`, but a conflict is only something not known."""
        return self._right.sizes.canonical(self._right.shapes.get(node))

    @property
    def conflicts(self) -> frozenset[cst.CSTNode]:
        """Expressions that surely have no shape, as far as the analysis can follow."""
        return frozenset(self._right.conflicts)

    def new_conflicts(self, supposition: Supposition) -> frozenset[cst.CSTNode]:
        """Expressions that have no shape any more if the kernel is as supposed."""
        changed = (*supposition.axes, *supposition.turned, *supposition.bare)
        touched = self.flow.influenced(changed)
        supposed = _Shapes(self.flow, supposition, self._right, touched)
        supposed.settle([n for n in self.flow.evaluation_order if n in touched])
        return frozenset(supposed.conflicts) - self.conflicts


def conflicts(flow: Dataflow) -> frozenset[cst.CSTNode]:
    """Expressions of the kernel that surely have no shape."""
    return Typing(flow).conflicts


class _NotYet(Exception):
    """An operand comes around a loop and has no shape so far."""


class _Shapes:
    """Least fixed point of the shapes of a kernel, or of what a supposition changes in it."""

    def __init__(
        self,
        flow: Dataflow,
        supposition: Supposition | None = None,
        right: _Shapes | None = None,
        touched: frozenset[cst.CSTNode] = frozenset(),
    ) -> None:
        self.flow = flow
        self.sizes: Sizes = Sizes() if right is None else Sizes(right.sizes)
        self.shapes: dict[cst.CSTNode, Shape | None] = {}
        self.conflicts: set[cst.CSTNode] = set()
        self._suppose = supposition or Supposition()
        self._learning = right is None
        self._given: dict[str, Shape] = _given_tiles(flow) if right is None else right._given
        if right is not None:
            self.shapes = {n: s for n, s in right.shapes.items() if n not in touched}

    def settle(self, order: Sequence[cst.CSTNode]) -> None:
        """Compute the shapes of these expressions, operands first."""
        for _ in range(_MAX_PASSES):
            self.conflicts.clear()
            if not self._pass(order):
                return

    def _pass(self, order: Sequence[cst.CSTNode]) -> bool:
        moved = False
        for node in order:
            try:
                shape = self.sizes.canonical(self._shape(node))
            except _NotYet:
                continue
            except ShapeConflict:
                self.conflicts.add(node)
                shape = None
            if node not in self.shapes or self.shapes[node] != shape:
                self.shapes[node] = shape
                moved = True
        return moved

    def _of(self, node: cst.CSTNode) -> Shape | None:
        if node not in self.shapes:
            raise _NotYet
        return self.sizes.canonical(self.shapes[node])

    def _shape(self, node: cst.CSTNode) -> Shape | None:
        match node:
            case cst.BaseNumber() | cst.SimpleString():
                return ()
            case cst.Comparison():
                return self._broadcast([node.left, *(t.comparator for t in node.comparisons)])
            case cst.Name():
                return self._name(node)
            case cst.Subscript():
                return self._subscript(node)
            case cst.Call():
                return self._call(node)
            case cst.Attribute():
                inner = self._of(node.value) if node.attr.value == "T" else ()
                return None if inner is None else tuple(reversed(inner))
            case cst.AugAssign():
                return self._broadcast([node.target, node.value])
            case cst.BinaryOperation():
                return self._broadcast([node.left, node.right])
            case cst.UnaryOperation():
                return self._of(node.expression)
            case cst.IfExp():
                return self._broadcast([node.body, node.orelse])
            case _:
                return None

    def _broadcast(self, nodes: Iterable[cst.CSTNode]) -> Shape | None:
        return self.sizes.broadcast_all([self._of(n) for n in nodes])

    # -- names

    def _name(self, node: cst.Name) -> Shape | None:
        """The shape of all definitions that reach a use.

        Arms of a branch may differ in shape (only one of them is compiled if the condition is
        a constexpr), so the use has the shape that both broadcast to. A value that a loop
        carries may not: Triton rejects a loop that changes a variable's shape.
        """
        found: dict[tuple[cst.CSTNode, ...], Shape] = {}
        unknown = False
        for definition in self.flow.reaching(node):
            shape = self._defined(definition)
            if shape is None:
                unknown = unknown or definition.value is None or definition.value in self.shapes
                continue
            loops = self.flow.loops(definition.node)
            found[loops] = self._arms(found.get(loops, ()), shape)
        self._learn(node, found)
        if found:
            first, *others = found.values()
            for shape in others:
                if not self._alike(first, shape):
                    raise ShapeConflict(self.flow.source(node))
            return first
        if not self.flow.reaching(node):
            return ()
        if unknown:
            return None
        raise _NotYet

    def _defined(self, definition: Definition) -> Shape | None:
        if definition.kind is DefinitionKind.PARAMETER:
            return self._given.get(definition.name, ())
        if definition.value is None:
            return ()
        return None if definition.element is not None else self.shapes.get(definition.value)

    def _arms(self, left: Shape, right: Shape) -> Shape:
        shape = self.sizes.broadcast(left, right)
        assert shape is not None
        return shape

    def _alike(self, left: Shape, right: Shape) -> bool:
        return len(left) == len(right) and all(
            self.sizes.agree(a, b) for a, b in zip(left, right, strict=True)
        )

    def _learn(self, node: cst.Name, found: dict[tuple[cst.CSTNode, ...], Shape]) -> None:
        """A parameter that a loop carries is a tile if what replaces it is one."""
        tile = next((shape for loops, shape in found.items() if loops and shape), None)
        if tile is None or found.get(()) != () or not self._learning:
            return
        outside = [d for d in self.flow.reaching(node) if not self.flow.loops(d.node)]
        if all(d.kind is DefinitionKind.PARAMETER for d in outside):
            self._given.update((d.name, tile) for d in outside)
            found[()] = tile

    # -- expressions

    def _subscript(self, node: cst.Subscript) -> Shape | None:
        base = self._of(node.value)
        if base is None or node in self._suppose.bare:
            return base
        left = list(base)
        result: list[str] = []
        parts = [element.slice for element in node.slice]
        for part in reversed(parts) if node in self._suppose.turned else parts:
            if isinstance(part, cst.Slice) and left:
                result.append(left.pop(0))
            elif isinstance(part, cst.Index) and _is_none(part.value):
                result.append("1")
            elif isinstance(part, cst.Slice):
                raise ShapeConflict(self.flow.source(node))
            else:
                return None
        return (*result, *left)

    def _call(self, node: cst.Call) -> Shape | None:
        flow = self.flow
        name = flow.call_name(node)
        arguments = {a.parameter: a.value for a in flow.arguments(node)}
        if name in ("program_id", "num_programs", "builtins.float", "builtins.int", "cdiv"):
            return ()
        if name == "arange" and "end" in arguments:
            return (self._extent(arguments.get("start"), arguments["end"]),)
        if name in ("zeros", "full", "broadcast_to", "reshape") and "shape" in arguments:
            return self._spelled(arguments["shape"])
        if name == "make_block_ptr" and "block_shape" in arguments:
            return self._spelled(arguments["block_shape"])
        if name in ("load", "store") or name in ATOMICS:
            pointer = arguments.get("pointer")
            return None if pointer is None else self._memory(name, pointer, arguments)
        if name in REDUCTIONS:
            return self._reduced(node, arguments)
        if name == "dot" and "input" in arguments and "other" in arguments:
            return self._dot(node, arguments)
        if name == "trans" and len(arguments) == 1:
            shape = self._of(next(iter(arguments.values())))
            return None if shape is None else tuple(reversed(shape))
        if name in ("expand_dims", "associative_scan") or name.startswith("helper."):
            return None
        if name in SCANS or name in ("advance", "to", "zeros_like"):
            first = next(iter(arguments.values()), None)
            return None if first is None else self._of(first)
        if name.startswith("descriptor_"):
            return None
        values = [n for role, n in flow.operands(node) if role.value in ("value", "condition")]
        return self._broadcast(values) if values else None

    def _memory(
        self, name: str, pointer: cst.CSTNode, arguments: dict[str, cst.BaseExpression]
    ) -> Shape | None:
        shape = self._of(pointer)
        for part in ("mask", "other", "value", "cmp"):
            given = self._of(arguments[part]) if part in arguments else ()
            if shape is None or given is None:
                continue
            if self.sizes.broadcast(shape, given) != self.sizes.canonical(shape):
                raise ShapeConflict(f"{part} of {name}")
        return shape

    def _dot(self, node: cst.Call, arguments: dict[str, cst.BaseExpression]) -> Shape | None:
        """Rows of the left by columns of the right; one of the two may be unknown."""
        left, right = self._of(arguments["input"]), self._of(arguments["other"])
        known = [shape for shape in (left, right) if shape is not None]
        if not known or any(len(shape) != 2 for shape in known):
            return None
        name = f"?{self.flow.kernel.module.span(node)[0]}"
        left = left or (f"{name}.0", f"{name}.1")
        right = right or (f"{name}.1", f"{name}.2")
        if not self.sizes.agree(left[1], right[0]):
            raise ShapeConflict("dot")
        product = (left[0], right[1])
        acc = self._of(arguments["acc"]) if "acc" in arguments else None
        return product if acc is None else self.sizes.broadcast(product, acc)

    def _reduced(self, node: cst.Call, arguments: dict[str, cst.BaseExpression]) -> Shape | None:
        shape = self._of(arguments["input"]) if "input" in arguments else None
        if "return_indices" in arguments:
            return None
        whole = "axis" not in arguments or _is_none(arguments["axis"])
        axis = None if whole else integer(self.flow.resolve(arguments["axis"]))
        if node in self._suppose.axes:
            axis = self._suppose.axes[node]
            whole = axis is None
        if whole:
            return None if _true(arguments.get("keep_dims")) else ()
        if shape is None or axis is None:
            return None
        if not -len(shape) <= axis < len(shape):
            raise ShapeConflict("axis")
        axis %= len(shape)
        kept = ("1",) if _true(arguments.get("keep_dims")) else ()
        return (*shape[:axis], *kept, *shape[axis + 1 :])

    def _extent(self, start: cst.CSTNode | None, end: cst.CSTNode) -> str:
        if start is None or integer(start) == 0:
            return self._size(end)
        return f"{self._size(end)}-{self._size(start)}"

    def _size(self, node: cst.CSTNode) -> str:
        return "".join(self.flow.source(node).split())

    def _spelled(self, node: cst.CSTNode) -> Shape | None:
        node = self.flow.resolve(node)
        if isinstance(node, cst.Tuple | cst.List):
            return tuple(self._size(e.value) for e in node.elements)
        return None


def _given_tiles(flow: Dataflow) -> dict[str, Shape]:
    """Parameters that a function uses as tiles, with sizes that only its callers know."""
    kinds = flow.parameters()
    found: dict[str, Shape] = {}
    for definition in flow.definitions():
        if definition.kind is not DefinitionKind.PARAMETER:
            continue
        if kinds[definition.name] is not ParameterKind.SCALAR:
            continue
        ranks = {r for use in flow.uses(definition) for r in _ranks(flow, use)}
        if len(ranks) == 1:
            rank = ranks.pop()
            found[definition.name] = tuple(f"?{definition.name}.{i}" for i in range(rank))
    return found


def _ranks(flow: Dataflow, use: cst.CSTNode) -> Iterator[int]:
    """How many dims the uses of a value, or of a copy or cast of it, say that it has."""
    for copy in flow.copies(use):
        for _, holder in flow.outputs(copy):
            if isinstance(holder, cst.Subscript) and holder.value is copy:
                yield from _slices(holder)
            elif isinstance(holder, cst.BinaryOperation):
                if _is_plain_scalar(flow, holder.left if holder.right is copy else holder.right):
                    yield from _ranks(flow, holder)
            elif flow.call_name(holder) in ("dot", "trans"):
                yield 2
            elif flow.call_name(holder) in REDUCTIONS:
                broadcasts = (n for c in flow.copies(holder) for _, n in flow.outputs(c))
                subscripts = (n for n in broadcasts if isinstance(n, cst.Subscript))
                yield from (rank + 1 for n in subscripts for rank in _slices(n))


def _is_plain_scalar(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is made from numbers, constexpr parameters and loop variables alone."""
    kinds = flow.parameters()
    parts = {node, *flow.backward(node)}
    if not all(isinstance(n, cst.BaseNumber | cst.BinaryOperation | cst.Name) for n in parts):
        return False
    definitions = {d for n in parts if isinstance(n, cst.Name) for d in flow.reaching(n)}
    return all(
        d.value is not None
        or d.kind is DefinitionKind.LOOP_VARIABLE
        or kinds.get(d.name) is ParameterKind.CONSTEXPR
        for d in definitions
    )


def _slices(node: cst.Subscript) -> Iterator[int]:
    count = sum(isinstance(element.slice, cst.Slice) for element in node.slice)
    if count:
        yield count


def integer(node: cst.CSTNode) -> int | None:
    """The value of an integer literal, negative ones included."""
    if isinstance(node, cst.Integer):
        return node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = integer(node.expression)
        return None if inner is None else -inner
    return None


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _true(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"
