"""The small number that keeps a quantity off zero stands in the wrong place, or is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.constants import known_number
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind, language_name
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.edits import drop_statement, keep, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_LARGEST = 1e-3
"""Larger numbers are part of the formula."""
_ROOTS = ("sqrt", "rsqrt")
_UNDEFINED_AT_ZERO = ("rsqrt", "log", "log2", "div")
_MAXIMA = ("maximum", "builtins.max")
_COPIES = ("to", "broadcast_to", "reshape", "expand_dims")


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Sums and maxima with an epsilon, which then are inverted, or have a root or logarithm."""
    facts = analysis(kernel)
    for guard in _guards(facts.typing):
        if not facts.flow.reaches_output(guard.whole):
            continue
        for variant, edits, detail in _variants(facts.flow, guard):
            yield Site(
                edits=edits,
                line=kernel.module.line(guard.whole),
                detail=detail,
                observable_by=(ObservableBy.VALUES,),
                reveal=(Reveal.NEAR_ZERO,),
                variant=variant,
            )


@dataclass(frozen=True, slots=True)
class _Guard:
    """`whole` is `quantity + epsilon` or the larger of the two."""

    whole: cst.CSTNode
    quantity: cst.BaseExpression
    epsilon: cst.BaseExpression
    root: cst.Call | None
    """The square root that the sum goes into, and nothing else."""


def _guards(typing: Typing) -> Iterator[_Guard]:
    flow = typing.flow
    for node in flow.expressions():
        for quantity, epsilon in _sides(flow, node):
            if typing.kind(node) in (Kind.INTEGER, Kind.POINTER, Kind.BOOLEAN):
                continue
            if not _is_data(flow, quantity):
                continue
            if not _is_epsilon(flow, epsilon) or not _keeps_off_zero(flow, node):
                continue
            yield _Guard(node, quantity, epsilon, _root(flow, node, epsilon))
            break


def _sides(
    flow: Dataflow, node: cst.CSTNode
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """A quantity and what may be its epsilon, either way round."""
    match node:
        case cst.BinaryOperation() if isinstance(node.operator, cst.Add):
            yield node.left, node.right
            yield node.right, node.left
        case cst.AugAssign() if isinstance(node.operator, cst.AddAssign):
            yield node.target, node.value
        case cst.Call() if flow.call_name(node) in _MAXIMA:
            values = [a.value for a in flow.arguments(node)]
            if len(node.args) == len(values) == 2:
                yield values[0], values[1]
                yield values[1], values[0]


def _is_data(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a quantity comes from memory, or from the caller of a function that returns."""
    loads = any(
        flow.call_name(n).startswith(("load", "descriptor_load", "helper."))
        for n in (node, *flow.backward(node))
    )
    return loads or any(
        (held := flow.consumer(n)) is not None and isinstance(held[1], cst.Return)
        for n in flow.expressions()
    )


def _is_epsilon(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether it is a small number, or a parameter that is used for nothing else."""
    number = known_number(flow, node)
    if number is not None:
        return 0.0 < number <= _LARGEST
    parameter = _parameter(flow, node)
    return parameter is not None and all(
        _guards_with(flow, use) for use in _last_copies(flow, parameter)
    )


def _parameter(flow: Dataflow, node: cst.CSTNode) -> Definition | None:
    """The scalar parameter that an expression is, perhaps cast."""
    while True:
        if isinstance(node, cst.Name):
            reaching = flow.reaching(node)
            if len(reaching) != 1 or reaching[0].element is not None:
                # Casts in the arms of a branch are of one parameter all the same.
                origins = {_parameter_of(flow, d) for d in reaching}
                return origins.pop() if len(origins) == 1 else None
            return _parameter_of(flow, reaching[0])
        if isinstance(node, cst.Call) and flow.call_name(node) == "to":
            node = flow.arguments(node)[0].value
        else:
            return None


def _parameter_of(flow: Dataflow, definition: Definition) -> Definition | None:
    if definition.kind is DefinitionKind.PARAMETER:
        kind = flow.parameters().get(definition.name)
        return None if kind is ParameterKind.POINTER else definition
    if definition.kind is not DefinitionKind.ASSIGNED or definition.value is None:
        return None
    return _parameter(flow, definition.value)


def _last_copies(flow: Dataflow, parameter: Definition) -> Iterator[cst.CSTNode]:
    """Uses of a parameter, after names and casts that only hand it on."""
    queue: list[cst.CSTNode] = list(flow.uses(parameter))
    seen: set[cst.CSTNode] = set()
    while queue:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        steps = flow.outputs(node)
        handed_on = [m for _, m in steps if isinstance(m, cst.Name) or flow.call_name(m) == "to"]
        if len(handed_on) < len(steps) or not steps:
            yield node
        queue += handed_on


def _guards_with(flow: Dataflow, use: cst.CSTNode) -> bool:
    held = flow.consumer(use)
    if held is None:
        return False
    return any(e is use for _, e in _sides(flow, held[1])) and _keeps_off_zero(flow, held[1])


def _keeps_off_zero(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether all that is made of a value is an inverse, a root or a logarithm."""
    ends = list(_ends(flow, node, frozenset()))
    return bool(ends) and all(ends)


def _ends(flow: Dataflow, node: cst.CSTNode, seen: frozenset[cst.CSTNode]) -> Iterator[bool]:
    if node in seen:
        return
    for role, holder in flow.outputs(node):
        name = flow.call_name(holder)
        if role is not Role.VALUE:
            yield False
        elif isinstance(holder, cst.Name) or name in _COPIES or isinstance(holder, cst.Subscript):
            yield from _ends(flow, holder, seen | {node})
        elif name == "div":
            yield flow.arguments(cst.ensure_type(holder, cst.Call))[-1].value is node
        elif isinstance(holder, cst.BinaryOperation) and isinstance(holder.operator, cst.Divide):
            yield holder.right is node
        elif isinstance(holder, cst.AugAssign) and isinstance(holder.operator, cst.DivideAssign):
            yield holder.value is node
        else:
            yield name in _UNDEFINED_AT_ZERO or name == "sqrt"


def _root(flow: Dataflow, node: cst.CSTNode, epsilon: cst.CSTNode) -> cst.Call | None:
    """The square root of a sum that is used for nothing else, here or where it has a name."""
    if not isinstance(node, cst.BinaryOperation):
        return None
    current: cst.CSTNode = node
    while True:
        steps = flow.outputs(current)
        if len(steps) != 1:
            return None
        ((_, holder),) = steps
        if isinstance(holder, cst.Call) and flow.call_name(holder) in _ROOTS:
            named = isinstance(current, cst.Name)
            constant = known_number(flow, epsilon) is not None or _parameter(flow, epsilon)
            return holder if not named or constant else None
        if not isinstance(holder, cst.Name) or len(flow.reaching(holder)) != 1:
            return None
        current = holder


def _variants(flow: Dataflow, guard: _Guard) -> Iterator[tuple[str, tuple[Edit, ...], str]]:
    epsilon = flow.source(guard.epsilon)
    if guard.root is not None:
        yield "outside", _outside(flow, guard, guard.root), f"`{epsilon}` is added to the root"
    yield "dropped", (_dropped(flow, guard),), f"`{epsilon}` is gone"


def _dropped(flow: Dataflow, guard: _Guard) -> Edit:
    module = flow.kernel.module
    if isinstance(guard.whole, cst.AugAssign):
        return drop_statement(module, guard.whole)
    if isinstance(guard.whole, cst.Call):
        bare = isinstance(guard.quantity, cst.Name | cst.Call | cst.Subscript | cst.Attribute)
        text = flow.source(guard.quantity)
        return replace(module, guard.whole, text if bare or guard.quantity.lpar else f"({text})")
    return keep(module, guard.whole, guard.quantity)


def _outside(flow: Dataflow, guard: _Guard, root: cst.Call) -> tuple[Edit, ...]:
    """`sqrt(v + eps)` -> `sqrt(v) + eps`, `rsqrt(v + eps)` -> `1 / (sqrt(v) + eps)`."""
    module = flow.kernel.module
    argument = flow.arguments(root)[0].value
    inverse = flow.call_name(root) == "rsqrt"
    function = f"{language_name(flow)}.sqrt" if inverse else flow.source(root.func)
    inside = argument is guard.whole
    edits = () if inside else (keep(module, guard.whole, guard.quantity),)
    text = flow.source(guard.quantity if inside else argument)
    text = f"{function}({text}) + {flow.source(guard.epsilon)}"
    return *edits, replace(module, root, f"(1.0 / ({text}))" if inverse else f"({text})")


_RMSNORM = """\
@triton.jit
def rmsnorm(x_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    {lines}
    tl.store(y_ptr + row * N + cols, x * r, mask=cols < N)
"""


def _rmsnorm(*lines: str) -> str:
    return _RMSNORM.format(lines="\n    ".join(lines))


_MEAN = "tl.sum(x * x, axis=0) / N"

OPERATOR = Operator(
    name="misplaced-epsilon",
    bug_class="eps-placement",
    summary="An epsilon is added outside the root, or left out.",
    evidence="flagos-ai/FlagGems#631 (added to the cube of a norm instead of the norm)",
    find=find,
    applies=(
        Example(
            _rmsnorm(f"r = tl.rsqrt({_MEAN} + eps)"),
            (
                _rmsnorm(f"r = (1.0 / (tl.sqrt({_MEAN}) + eps))"),
                _rmsnorm(f"r = tl.rsqrt({_MEAN})"),
            ),
        ),
        Example(
            _rmsnorm(f"v = eps + {_MEAN}", "r = 1.0 / tl.sqrt(v)"),
            (
                _rmsnorm(f"v = {_MEAN}", "r = 1.0 / (tl.sqrt(v) + eps)"),
                _rmsnorm(f"v = {_MEAN}", "r = 1.0 / tl.sqrt(v)"),
            ),
        ),
        Example(
            _rmsnorm("n = tl.sqrt(tl.sum(x * x, axis=0))", "r = 1.0 / tl.maximum(n, 1e-12)"),
            (_rmsnorm("n = tl.sqrt(tl.sum(x * x, axis=0))", "r = 1.0 / n"),),
        ),
        Example(
            _rmsnorm("r = tl.sum(x * x, axis=0)", "r += 1e-6", "r = N / r"),
            (_rmsnorm("r = tl.sum(x * x, axis=0)", "pass", "r = N / r"),),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def shifted(x_ptr, y_ptr, N, offset, eps, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    y = tl.sqrt(x + offset) + offset
    tl.store(y_ptr + cols, y / (tl.exp(x) + 1.0) + eps, mask=cols < N)
""",
        """\
@triton.jit
def polynomial(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + cols, x * (x + 1e-4) + tl.maximum(x, 1e-4), mask=cols < N)
""",
    ),
)
