"""What a function's values are held in before and after a planted loss of precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from gatecert.operators.facts.constants import known_number
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.formats import (
    ANY,
    HALVES,
    INTEGER,
    POINTER,
    PYTHON,
    TENSOR_NUMBER,
    WIDE,
    Format,
    Formats,
    Held,
    Loss,
    combined,
    fits_halves,
    named,
    same,
    worst,
)
from gatecert.operators.facts.language import ATOMICS, Role, dotted

CHOOSING = frozenset({"maximum", "minimum", "builtins.max", "builtins.min", "clamp", "where"})
SUMMING = frozenset({"sum", "cumsum", "cumprod"})
REARRANGING = frozenset(
    {"abs", "builtins.abs", "broadcast_to", "broadcast", "reshape", "ravel", "trans",
     "expand_dims", "flip", "sort", "multiple_of", "max_contiguous", "max_constancy", "split",
     "zeros_like"}
)  # fmt: skip
WHOLE = frozenset(
    {"program_id", "num_programs", "arange", "cdiv", "argmax", "argmin", "builtins.int",
     "builtins.len", "builtins.range", "randint", "range", "static_range"}
)  # fmt: skip
_WIDE_ONLY = frozenset(
    {"exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "floor", "ceil",
     "sigmoid", "softmax", "tanh", "div", "rand", "randn"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A planted loss of precision, by the expressions at which it begins."""

    dropped: frozenset[cst.CSTNode] = frozenset()
    """Casts that hand on what they are given; sums that are without their type."""
    narrowed: frozenset[cst.CSTNode] = frozenset()
    """Expressions that are cast to the buffers' format."""
    lowered: frozenset[cst.CSTNode] = frozenset()
    """Dots that give float16 where their operands are float16."""
    widened: frozenset[cst.CSTNode] = frozenset()
    """Expressions that are cast to float32."""
    carried: frozenset[cst.CSTNode] = frozenset()
    """Reads of a narrowed running sum where it is added to."""
    fresh: frozenset[cst.CSTNode] = frozenset()
    """Reads of a running sum that is zero so far."""

    @property
    def nodes(self) -> frozenset[cst.CSTNode]:
        """Expressions at which the change begins."""
        return self.dropped | self.narrowed | self.lowered | self.widened

    def first_turn(self) -> Change:
        """The change as far as a loop of one turn goes."""
        return replace(self, fresh=self.carried)


@dataclass(slots=True)
class Lowering:
    """Least fixed point over one function's expressions, in a world of one 16-bit format.

    `known` holds the values without the change: only what the change may reach is computed.
    """

    flow: Dataflow
    element: Format
    change: Change
    given: Mapping[str, Held]
    known: Mapping[cst.CSTNode, Held] = field(default_factory=dict)
    values: dict[cst.CSTNode, Held] = field(default_factory=dict)

    def settle(self) -> Sequence[cst.CSTNode]:
        """Compute the values; the answer is the expressions that the change may reach."""
        order: Sequence[cst.CSTNode] = self.flow.evaluation_order
        if self.known:
            reached = self._reached()
            order = [n for n in order if n in reached]
            self.values = {n: held for n, held in self.known.items() if n not in reached}
        moved = True
        while moved:
            moved = False
            for node in order:
                known = self.of(node)
                new = known | self._held(node)
                if new != known:
                    self.values[node] = new
                    moved = True
        return order

    def _reached(self) -> frozenset[cst.CSTNode]:
        """Expressions that the change may reach; it may lie in a function that is called."""
        mine = self.change.nodes & self.known.keys()
        calls = (n for n in self.known if self.flow.call_name(n).startswith("helper."))
        return self.flow.influenced(mine if mine == self.change.nodes else (*mine, *calls))

    def of(self, node: cst.CSTNode) -> Held:
        """What an expression is held in."""
        return self.values.get(node, Held())

    def defined(self, definition: Definition) -> Held:
        """What a definition gives its name."""
        if definition.kind is DefinitionKind.PARAMETER:
            return self.given.get(definition.name, same(TENSOR_NUMBER))
        if definition.value is None:
            return same(INTEGER)
        held = self.of(definition.value)
        if Format.PYTHON not in held.after or _is_constexpr(self.flow, definition):
            return held
        # An assigned number becomes a tensor.
        number = definition.value
        whole, point = isinstance(number, cst.Integer), isinstance(number, cst.Float)
        tensor = INTEGER if whole else WIDE if point else TENSOR_NUMBER
        return held.both(lambda f: tensor if f is Format.PYTHON else frozenset({f}))

    def helper(self, node: cst.Call, name: str) -> Held:
        """What a function of a module gives back."""
        raise NotImplementedError

    def _held(self, node: cst.CSTNode) -> Held:
        change = self.change
        held = self._as_written(node)
        if node in change.fresh:
            held = held.lossy(Loss.NONE)
        if node in change.widened:
            return held.becomes(WIDE)
        if node not in change.narrowed or not held.pairs:
            return held
        zero = self.flow.call_name(node) in ("zeros", "full")
        exact = zero or held.after <= HALVES
        loss = held.loss if exact else max(held.loss, Loss.ONCE)
        return held.becomes(frozenset({self.element})).lossy(loss)

    def _as_written(self, node: cst.CSTNode) -> Held:
        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                return same(PYTHON)
            case cst.Name():
                return self._name(node)
            case cst.BinaryOperation() | cst.AugAssign():
                return self._binary(node)
            case cst.Comparison() | cst.BooleanOperation():
                return self._compared(node)
            case cst.UnaryOperation() if isinstance(node.operator, cst.Not):
                return same(INTEGER).lossy(self.of(node.expression).loss)
            case cst.UnaryOperation():
                return self.of(node.expression)
            case cst.IfExp():
                return self.of(node.body) | self.of(node.orelse)
            case cst.Call():
                return self._call(node)
            case cst.Attribute() if node.attr.value != "T":
                return same(PYTHON)
            case _:
                found = Held()
                for role, part in self.flow.operands(node):
                    if role is Role.VALUE:
                        found |= self.of(part)
                return found

    def _name(self, node: cst.Name) -> Held:
        reaching = self.flow.reaching(node)
        found = Held() if reaching else same(PYTHON)
        for definition in reaching:
            found |= self.defined(definition)
        return found

    def _binary(self, node: cst.BinaryOperation | cst.AugAssign) -> Held:
        nodes = [n for _, n in self.flow.operands(node)]
        parts = [self.of(n) for n in nodes]
        held = combined(parts, isinstance(node.operator, cst.Divide | cst.DivideAssign))
        if not held.narrower:
            return held.lossy(worst(parts))
        for read, other in zip(nodes, reversed(parts), strict=True):
            if read in self.change.fresh:
                return held.lossy(other.loss)
        exact = worst(parts) is Loss.NONE and self._numbers_fit(nodes)
        return held.lossy(Loss.ONCE if exact else Loss.SOME)

    def _compared(self, node: cst.CSTNode) -> Held:
        nodes = [n for _, n in self.flow.operands(node)]
        parts = [self.of(n) for n in nodes]
        moved = any(p.narrower for p in parts) and not self._numbers_fit(nodes)
        return same(INTEGER).lossy(Loss.SOME if moved else worst(parts))

    def _numbers_fit(self, nodes: Sequence[cst.CSTNode]) -> bool:
        """Whether the numbers that take on a 16-bit format here lose nothing."""
        return all(
            _is_special(self.flow, n) or fits_halves(known_number(self.flow, n))
            for n in nodes
            if self.of(n).after & (PYTHON | INTEGER)
        )

    # -- calls

    def _call(self, node: cst.Call) -> Held:
        name = self.flow.call_name(node)
        nodes = [n for role, n in self.flow.operands(node) if role is Role.VALUE]
        parts = [self.of(n) for n in nodes]
        first = parts[0] if parts else Held()
        if name in ("load", "descriptor_load", *ATOMICS):
            return same(frozenset({self.element}))
        if name == "to":
            return self._cast(node, first)
        if name in ("zeros", "full"):
            return self._dtype(node)
        if name == "dot":
            return self._dot(node, parts)
        if name in SUMMING:
            return self._sum(node, first)
        if name == "fma" and parts:
            held = combined(parts)
            return held.lossy(Loss.SOME if held.narrower else worst(parts))
        if name in CHOOSING and parts:
            return self._chosen(node, nodes)
        if name in ("max", "min"):
            indices = self.flow.argument(node, "return_indices") is not None
            return first if indices else first.both(_maximum)
        if name in REARRANGING:
            return first
        if name in WHOLE:
            return same(INTEGER).lossy(worst(parts))
        if name in ("make_block_ptr", "advance"):
            return same(POINTER)
        if name in _WIDE_ONLY:
            return same(WIDE).lossy(worst(parts))
        if name in ("builtins.float", "constexpr"):
            return same(PYTHON)
        if name.startswith("helper."):
            return self.helper(node, name.removeprefix("helper."))
        return same(ANY).lossy(worst(parts))

    def _cast(self, node: cst.Call, operand: Held) -> Held:
        held = self._dtype(node)
        if node in self.change.dropped:
            return held.becomes(operand.after).lossy(operand.loss)
        if held.narrower:  # cast to the type of what the change made narrower
            rounds = not operand.after <= HALVES
            return held.lossy(max(operand.loss, Loss.ONCE if rounds else Loss.NONE))
        if held.after == frozenset({self.element}) and operand.loss is Loss.ONCE:
            return held  # rounded to the same format before or now
        whole = held.after <= INTEGER and operand.loss
        return held.lossy(Loss.SOME if whole else operand.loss)

    def _dtype(self, node: cst.Call) -> Held:
        argument = self.flow.argument(node, "dtype")
        if argument is None:
            return same(WIDE)
        dtype = self.flow.resolve(argument.value)
        if isinstance(dtype, cst.Attribute) and dtype.attr.value == "dtype":
            return self.of(dtype.value).lossy(Loss.NONE)
        if isinstance(dtype, cst.Call):
            return same(POINTER)
        name = (dotted(dtype) if isinstance(dtype, cst.BaseExpression) else None) or ""
        return same(named(name.split(".")[-1], self.element))

    def _dot(self, node: cst.Call, parts: Sequence[Held]) -> Held:
        acc = self.flow.argument(node, "acc")
        held = same(WIDE) if acc is None else self.of(acc.value)
        if node in self.change.lowered and parts and Format.FP16 in parts[0].after:
            held = held.becomes(frozenset({Format.FP16}))
        return held.lossy(Loss.SOME if held.narrower else worst(parts))

    def _sum(self, node: cst.Call, operand: Held) -> Held:
        held = operand
        if self.flow.argument(node, "dtype") is not None:
            held = self._dtype(node)
            if node in self.change.dropped:
                held = held.becomes(operand.after)
        return held.lossy(Loss.SOME if held.narrower else worst([operand]))

    def _chosen(self, node: cst.Call, nodes: Sequence[cst.CSTNode]) -> Held:
        """A maximum, a minimum or a selection: one of the operands as it is."""
        parts = [self.of(n) for n in nodes]
        held = combined(parts)
        tests = [self.of(n) for r, n in self.flow.operands(node) if r is Role.CONDITION]
        if worst(tests) or (held.narrower and not self._numbers_fit(nodes)):
            return held.lossy(Loss.SOME)
        most = max(p.loss for p in parts)
        return held.lossy(most if held.after <= HALVES else worst(parts))


def _is_special(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether it is `float("inf")` or the like, perhaps with a sign."""
    node = flow.resolve(node)
    if isinstance(node, cst.UnaryOperation):
        node = flow.resolve(node.expression)
    return (
        isinstance(node, cst.Call)
        and flow.call_name(node) == "builtins.float"
        and any(isinstance(a.value, cst.SimpleString) for a in node.args)
    )


def _maximum(format_: Format) -> Formats:
    """The format of a tile's maximum: Triton widens 16-bit numbers for it."""
    return WIDE if format_ in HALVES else frozenset({format_})


def _is_constexpr(flow: Dataflow, definition: Definition) -> bool:
    above = flow.kernel.module.parents.get(definition.node)
    if isinstance(above, cst.AnnAssign):
        return "constexpr" in flow.source(above.annotation.annotation)
    return definition.value is not None and flow.call_name(definition.value) == "constexpr"
