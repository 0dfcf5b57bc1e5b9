"""What leaving a cast to float32 out does to a kernel.

Three answers: whether Triton still compiles it, whether a 16-bit format comes about at all, and
whether more than one rounding to the format of the output gets into memory. Buffers are taken
to hold one 16-bit format, each of the two in turn: in wider ones, less is lost.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind, analyse
from gatecert.operators.facts.definitions import parameters_of
from gatecert.operators.facts.formats import (
    ANY,
    POINTER,
    PYTHON,
    TENSOR_NUMBER,
    WIDE,
    Format,
    Held,
    same,
    worst,
)
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import ATOMICS, Role
from gatecert.operators.facts.lowering import (
    CHOOSING,
    REARRANGING,
    SUMMING,
    WHOLE,
    Change,
    Lowering,
)
from gatecert.operators.facts.merges import mismatched
from gatecert.operators.facts.scalars import float_parameters
from gatecert.operators.facts.scene import callers

_WORLDS = (Format.FP16, Format.BF16)
_MAX_DEPTH = 4
_SINKS = frozenset({Role.STORED, Role.RETURNED, Role.MASK, Role.ADDRESS, Role.CONTROL, Role.PAD})
_IN_ANY_FORMAT = frozenset(
    {*CHOOSING, *REARRANGING, *SUMMING, *WHOLE, *ATOMICS, "dot", "to", "div", "fma", "max", "min",
     "store", "descriptor_store", "full", "builtins.float"}
) - {"atomic_cas"}  # fmt: skip
"""Functions that 16-bit numbers may be given, too; Triton refuses them to the others."""


class Step(enum.Enum):
    """What sort of arithmetic a change brings down to 16 bits."""

    ELEMENTWISE = "elementwise"
    """Sums, products and the like of single values."""
    REDUCTION = "reduction"
    """A sum along an axis, or a contraction."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does."""

    refused: bool = False
    """Whether Triton does not compile the function any more."""
    visible: bool = False
    """Whether an output, an address or a branch is affected by more than its own rounding."""
    narrower: bool = False
    """Whether a changed expression may be a 16-bit value now."""
    steps: frozenset[Step] = frozenset()

    def __or__(self, other: Effect) -> Effect:
        return Effect(
            self.refused or other.refused,
            self.visible or other.visible,
            self.narrower or other.narrower,
            self.steps | other.steps,
        )


class Precision:
    """Answers for one function, through the kernels of its module that call it if there are any."""

    def __init__(self, flow: Dataflow) -> None:
        self._walks: list[_Walk] = []
        for kernel in callers(flow.kernel) or (flow.kernel,):
            root = flow if kernel.function is flow.kernel.function else analyse(kernel, flow.words)
            for element in _WORLDS:
                self._walks.append(_Walk(root, element, Change(), _given(root, element)))

    def effect(self, change: Change) -> Effect:
        """What a change does."""
        found = Effect()
        for walk in self._walks:
            found |= walk.changed(change).effect
        return found


def _given(flow: Dataflow, element: Format) -> dict[str, Held]:
    """What a function that nothing here calls is given."""
    floats = float_parameters(flow.kernel)
    returns = any(_is_returned(flow, node) for node in flow.expressions())
    given: dict[str, Held] = {}
    for name, kind in flow.parameters().items():
        if kind is ParameterKind.CONSTEXPR:
            formats = PYTHON
        elif kind is ParameterKind.POINTER:
            formats = POINTER
        elif returns:  # a number or a tile
            formats = TENSOR_NUMBER | PYTHON | {element}
        else:
            formats = WIDE if name in floats else TENSOR_NUMBER
        given[name] = same(formats)
    return given


def _is_returned(flow: Dataflow, node: cst.CSTNode) -> bool:
    consumer = flow.consumer(node)
    return consumer is not None and isinstance(consumer[1], cst.Return)


class _Walk(Lowering):
    """One function in one world, with a change; functions of the module are entered."""

    def __init__(
        self,
        flow: Dataflow,
        element: Format,
        change: Change,
        given: Mapping[str, Held],
        known: Mapping[cst.CSTNode, Held] | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(flow, element, change, given, known or {})
        self._depth = depth
        self._inner: dict[cst.CSTNode, Effect] = {}
        self.effect = Effect()
        for node in self.settle():
            self.effect |= self._outcome(node)
        narrower = {d: self.defined(d).narrower for d in flow.definitions()}
        self.effect |= Effect(refused=mismatched(flow, narrower))

    def changed(self, change: Change) -> _Walk:
        """The same function with a change."""
        return _Walk(self.flow, self.element, change, self.given, self.values)

    def helper(self, node: cst.Call, name: str) -> Held:
        arguments = [self.of(a.value) for a in node.args]
        function = next(_functions(self.flow.kernel, name), None)
        if function is None or self._depth >= _MAX_DEPTH or any(a.star for a in node.args):
            # Nothing is known of it, least of all whether it takes 16-bit numbers.
            self._inner[node] = Effect(refused=any(a.narrower for a in arguments))
            return same(ANY).lossy(worst(arguments))
        if not all(a.pairs for a in arguments):
            return Held()
        kernel = replace(self.flow.kernel, function=function, qualname=name)
        inner = analyse(kernel, self.flow.words)
        given = dict.fromkeys(inner.parameters(), same(PYTHON)) | _bound(function, node, arguments)
        walk = _Walk(inner, self.element, self.change, given, depth=self._depth + 1)
        self._inner[node] = walk.effect
        found = Held()
        for part in inner.expressions():
            if _is_returned(inner, part):
                found |= walk.of(part)
        return found

    def _outcome(self, node: cst.CSTNode) -> Effect:
        held = self.of(node)
        consumer = self.flow.consumer(node)
        shows = consumer is not None and consumer[0] in _SINKS and bool(held.loss)
        if consumer is not None and consumer[0] is Role.RETURNED:
            # A caller that is looked into says itself what it makes of it.
            in_call = self.flow.call_name(consumer[1]).startswith("helper.")
            shows = shows and not in_call and self._depth == 0
        return self._inner.get(node, Effect()) | Effect(
            refused=self._refused(node),
            visible=shows,
            narrower=node in self.change.nodes and held.narrower,
            steps=self._steps(node, held),
        )

    def _steps(self, node: cst.CSTNode, held: Held) -> frozenset[Step]:
        if not held.narrower or not held.loss:
            return frozenset()
        name = self.flow.call_name(node)
        if node in self.change.narrowed:
            return frozenset({Step.ELEMENTWISE})
        if name == "dot" or name in SUMMING:
            return frozenset({Step.REDUCTION})
        rounds = isinstance(node, cst.BinaryOperation | cst.AugAssign)
        return frozenset({Step.ELEMENTWISE} if rounds or name in ("fma", *CHOOSING) else ())

    def _refused(self, node: cst.CSTNode) -> bool:
        """Whether Triton would not compile this expression any more."""
        if isinstance(node, cst.IfExp):
            return self.of(node.body).narrower is not self.of(node.orelse).narrower
        if not isinstance(node, cst.Call):
            return False
        name = self.flow.call_name(node)
        if name.startswith("helper."):
            return False  # what is inside says so
        values = [n for role, n in self.flow.operands(node) if role is Role.VALUE]
        narrower = [self.of(n).narrower for n in values]
        if name == "dot":
            return len(set(narrower[:2])) > 1 or any(narrower[2:])
        if not any(narrower):
            return False
        if name == "to":
            return self.flow.argument(node, "bitcast") is not None
        exact = name == "div" and "_rn" in self.flow.source(node.func)
        return exact or name not in _IN_ANY_FORMAT


def _bound(function: cst.FunctionDef, call: cst.Call, arguments: Sequence[Held]) -> dict[str, Held]:
    """A call's arguments under the names of the function's parameters."""
    names = [param.name.value for param in parameters_of(function)]
    bound: dict[str, Held] = {}
    for position, (argument, held) in enumerate(zip(call.args, arguments, strict=True)):
        if argument.keyword is not None:
            bound[argument.keyword.value] = held
        elif position < len(names):
            bound[names[position]] = held
    return bound


def _functions(kernel: KernelSyntax, name: str) -> Iterator[cst.FunctionDef]:
    for statement in kernel.module.tree.body:
        if isinstance(statement, cst.FunctionDef) and statement.name.value == name:
            yield statement
