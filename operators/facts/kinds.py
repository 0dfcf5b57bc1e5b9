"""Kinds (integer, float, pointer, ...) of a kernel's expressions."""

from __future__ import annotations

import enum

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import Definition, DefinitionKind


class Kind(enum.Enum):
    """What sort of value an expression has."""

    INTEGER = "integer"
    FLOAT = "float"
    POINTER = "pointer"
    BOOLEAN = "boolean"
    UNKNOWN = "unknown"


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


class Kinds:
    """Kinds of one kernel's expressions, each computed once."""

    def __init__(self, flow: Dataflow) -> None:
        self.flow = flow
        self._pointers = {n for n, k in flow.parameters().items() if k.value == "pointer"}
        self._kinds: dict[cst.CSTNode, Kind] = {}

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
