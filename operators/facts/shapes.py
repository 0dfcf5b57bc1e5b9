"""Kinds (integer, float, pointer, ...) and symbolic tile shapes of a kernel's expressions.

A shape is a tuple of dims, each the source text of its size (`"BLOCK_M"`, `"1"`); `()` is a
scalar. None means that the analysis does not know. Two different texts count as different
sizes, so shapes that agree here agree for any block sizes.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.language import REDUCTIONS, SCANS

Shape = tuple[str, ...]


class Kind(enum.Enum):
    """What sort of value an expression has."""

    INTEGER = "integer"
    FLOAT = "float"
    POINTER = "pointer"
    BOOLEAN = "boolean"
    UNKNOWN = "unknown"


class ShapeConflict(Exception):
    """Two operands whose shapes cannot be broadcast, or an axis that is not there."""


_INTEGER_CALLS = frozenset(
    {"program_id", "num_programs", "arange", "cdiv", "argmax", "argmin", "builtins.range",
     "builtins.len", "builtins.int"}
)  # fmt: skip
_FLOAT_CALLS = frozenset(
    {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid",
     "softmax", "builtins.float", "pow", "rand", "randn"}
)  # fmt: skip
_TRANSPARENT = frozenset(
    {"abs", "max_contiguous", "multiple_of", "max_constancy", "broadcast_to", "reshape", "trans",
     "expand_dims", "sum", "max", "min", "reduce", "cumsum", "cumprod", "maximum", "minimum",
     "fma", "where", "clamp", "builtins.max", "builtins.min", "builtins.abs", "advance", "flip"}
)  # fmt: skip


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
    """Kinds and shapes of one kernel's expressions, each computed once."""

    def __init__(self, flow: Dataflow, supposition: Supposition | None = None) -> None:
        self.flow = flow
        self._suppose = supposition or Supposition()
        self._pointers = {n for n, k in flow.parameters().items() if k.value == "pointer"}
        self._kinds: dict[cst.CSTNode, Kind] = {}
        self._shapes: dict[cst.CSTNode, Shape | None] = {}
        self._busy: set[cst.CSTNode] = set()

    # -- kinds

    def kind(self, node: cst.CSTNode) -> Kind:
        """The kind of an expression; UNKNOWN where nothing in the source tells."""
        if node not in self._kinds:
            self._kinds[node] = Kind.UNKNOWN
            self._kinds[node] = self._kind(node)
        return self._kinds[node]

    def _kind(self, node: cst.CSTNode) -> Kind:
        match node:
            case cst.Integer():
                return Kind.INTEGER
            case cst.Float():
                return Kind.FLOAT
            case cst.Comparison() | cst.BooleanOperation():
                return Kind.BOOLEAN
            case cst.Name():
                if node.value in ("True", "False"):
                    return Kind.BOOLEAN
                return self._joined([self._defined_kind(d) for d in self.flow.reaching(node)])
            case cst.BinaryOperation():
                if isinstance(node.operator, cst.Divide):
                    return Kind.FLOAT
                return self._joined([self.kind(node.left), self.kind(node.right)])
            case cst.AugAssign():
                return self._joined([self.kind(node.target), self.kind(node.value)])
            case cst.Call():
                return self._call_kind(node)
            case _:
                values = [n for role, n in self.flow.operands(node) if role.value == "value"]
                return self._joined([self.kind(n) for n in values])

    def _defined_kind(self, definition: Definition) -> Kind:
        if definition.kind is DefinitionKind.LOOP_VARIABLE:
            return Kind.INTEGER
        if definition.kind is DefinitionKind.PARAMETER:
            return Kind.POINTER if definition.name in self._pointers else Kind.UNKNOWN
        return Kind.UNKNOWN if definition.value is None else self.kind(definition.value)

    def _joined(self, kinds: list[Kind]) -> Kind:
        for decisive in (Kind.POINTER, Kind.FLOAT):
            if decisive in kinds:
                return decisive
        if kinds and all(k is Kind.BOOLEAN for k in kinds):
            return Kind.BOOLEAN
        known = [k for k in kinds if k is not Kind.UNKNOWN]
        # An integer beside an unknown operand (a loop-carried counter, an unannotated size).
        return Kind.INTEGER if Kind.INTEGER in known and len(known) == len(kinds) else Kind.UNKNOWN

    def _call_kind(self, node: cst.Call) -> Kind:
        name = self.flow.call_name(node)
        if name in _INTEGER_CALLS:
            return Kind.INTEGER
        if name in _FLOAT_CALLS or name in ("dot", "div"):
            return Kind.FLOAT
        if name in ("to", "zeros", "full"):
            dtype = self.flow.argument(node, "dtype")
            text = "" if dtype is None else self.flow.source(dtype.value)
            for kind in (Kind.INTEGER, Kind.FLOAT, Kind.POINTER):
                if kind.value.removesuffix("eger") in text:
                    return kind
        if name == "make_block_ptr":
            return Kind.POINTER
        if name == "to" or name in _TRANSPARENT:
            values = [n for role, n in self.flow.operands(node) if role.value == "value"]
            return self._joined([self.kind(n) for n in values])
        return Kind.UNKNOWN

    # -- shapes

    def shape(self, node: cst.CSTNode) -> Shape | None:
        """The tile shape of an expression.

        Raises `ShapeConflict` if operands cannot be broadcast together.
        """
        if node in self._shapes:
            return self._shapes[node]
        if node in self._busy:
            return None
        self._busy.add(node)
        try:
            shape = self._shape(node)
        finally:
            self._busy.discard(node)
        if shape is not None or not self._busy:  # inside a cycle, None may only be "not yet"
            self._shapes[node] = shape
        return shape

    def safe_shape(self, node: cst.CSTNode) -> Shape | None:
        """Like `shape`, but a conflict is only something not known."""
        try:
            return self.shape(node)
        except ShapeConflict:
            return None

    def _shape(self, node: cst.CSTNode) -> Shape | None:
        match node:
            case cst.BaseNumber() | cst.SimpleString():
                return ()
            case cst.Comparison():
                return self._broadcast([node.left, *(t.comparator for t in node.comparisons)])
            case cst.Name():
                return self._name_shape(node)
            case cst.Subscript():
                return self._subscript_shape(node)
            case cst.Call():
                return self._call_shape(node)
            case cst.Attribute():
                inner = self.shape(node.value) if node.attr.value == "T" else ()
                return None if inner is None else tuple(reversed(inner))
            case cst.AugAssign():
                return self._broadcast([node.target, node.value])
            case cst.BinaryOperation():
                return self._broadcast([node.left, node.right])
            case cst.UnaryOperation():
                return self.shape(node.expression)
            case cst.IfExp():
                return self._broadcast([node.body, node.orelse])
            case _:
                return None

    def _name_shape(self, node: cst.Name) -> Shape | None:
        found: list[Shape] = []
        for definition in self.flow.reaching(node):
            if definition.element is not None:
                return None
            if definition.value is None:
                found.append(())
                continue
            shape = self.shape(definition.value)
            if shape is not None:
                found.append(shape)
        if not found:
            return () if not self.flow.reaching(node) else None
        if len(set(found)) == 1:
            return found[0]
        # A scalar initial value (`m = -inf`) takes the shape of what replaces it only where
        # Triton would reject the loop, so differing definitions are a conflict in loops.
        raise ShapeConflict(self.flow.source(node))

    def _subscript_shape(self, node: cst.Subscript) -> Shape | None:
        base = self.shape(node.value)
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
        if left:
            return (*result, *left)
        return tuple(result)

    def _broadcast(self, nodes: list[cst.CSTNode]) -> Shape | None:
        shapes = [self.shape(n) for n in nodes]
        result: Shape | None = ()
        for shape in shapes:
            result = broadcast(result, shape)
        return result

    def _call_shape(self, node: cst.Call) -> Shape | None:
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
        if name in ("load", "store"):
            pointer = arguments.get("pointer")
            return None if pointer is None else self._memory_shape(name, pointer, arguments)
        if name in REDUCTIONS:
            return self._reduced(node, arguments)
        if name == "dot" and "input" in arguments and "other" in arguments:
            return self._dot_shape(arguments)
        if name == "trans" and len(arguments) == 1:
            shape = self.shape(next(iter(arguments.values())))
            return None if shape is None else tuple(reversed(shape))
        if name in ("expand_dims", "associative_scan") or name.startswith("helper."):
            return None
        if name in SCANS or name in ("advance", "to", "zeros_like"):
            first = next(iter(arguments.values()), None)
            return None if first is None else self.shape(first)
        if name.startswith(("atomic_", "descriptor_")):
            return None
        values = [n for role, n in flow.operands(node) if role.value in ("value", "condition")]
        return self._broadcast(values) if values else None

    def _memory_shape(
        self, name: str, pointer: cst.CSTNode, arguments: dict[str, cst.BaseExpression]
    ) -> Shape | None:
        shape = self.shape(pointer)
        for part in ("mask", "other", "value"):
            given = self.shape(arguments[part]) if part in arguments else ()
            if shape is not None and given is not None and broadcast(shape, given) != shape:
                raise ShapeConflict(f"{part} of {name}")
        return shape

    def _dot_shape(self, arguments: dict[str, cst.BaseExpression]) -> Shape | None:
        left, right = self.shape(arguments["input"]), self.shape(arguments["other"])
        if left is None or right is None or len(left) != 2 or len(right) != 2:
            return None
        if left[1] != right[0]:
            raise ShapeConflict("dot")
        return (left[0], right[1])

    def _reduced(self, node: cst.Call, arguments: dict[str, cst.BaseExpression]) -> Shape | None:
        shape = self.shape(arguments["input"]) if "input" in arguments else None
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


def broadcast(left: Shape | None, right: Shape | None) -> Shape | None:
    """The shape of an elementwise result; raises `ShapeConflict` if there is none.

    As in NumPy, missing leading dims count as 1.
    """
    if left is None or right is None:
        return None
    rank = max(len(left), len(right))
    left = ("1",) * (rank - len(left)) + left
    right = ("1",) * (rank - len(right)) + right
    result: list[str] = []
    for a, b in zip(left, right, strict=True):
        if a != b and "1" not in (a, b):
            raise ShapeConflict(f"{left} and {right}")
        result.append(b if a == "1" else a)
    return tuple(result)


def conflicts(flow: Dataflow, supposition: Supposition | None = None) -> bool:
    """Whether some expression of the kernel surely has no shape."""
    typing = Typing(flow, supposition)
    for node in flow.expressions():
        try:
            typing.shape(node)
        except ShapeConflict:
            return True
    return False


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
