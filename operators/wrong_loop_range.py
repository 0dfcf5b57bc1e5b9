"""A loop leaves out its last or its first step, or runs on past a limit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.cancellation import Factor
from gatecert.operators.facts.changes import SHIFTED
from gatecert.operators.facts.conditions import Deciding, below, effect, nested
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import stand_in
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import ATOMICS
from gatecert.operators.facts.polynomials import added, counter_of, scaled
from gatecert.operators.facts.values import Change, ChangeKind, Value
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_RANGES = ("builtins.range", "range")
_MINIMA = ("minimum", "builtins.min")
_UNKNOWN = ((ObservableBy.VALUES, ObservableBy.BOUNDS), (Reveal.TAIL,))
_TIGHT = (cst.Name, cst.Integer, cst.Attribute, cst.Call, cst.Subscript)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop with its end, and where it counts by itself its start, as far as they are given."""

    node: cst.For | cst.While
    counter: cst.Name
    end: cst.BaseExpression
    start: cst.BaseExpression | None
    step: cst.BaseExpression | None


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Sites per loop that runs at run time: its last step, its first, its upper limit.

    A lost step shows in values on any input, for it may be the only one; where the loop only
    finds a maximum that cancels, it must be. A loop that runs on does what its masks let it.
    """
    facts = analysis(kernel)
    for loop in _loops(facts.flow):
        lost = _lost(facts, loop)
        yield _site(facts, loop, _later(facts.flow, loop), "skips-last", lost)
        if isinstance(loop.node, cst.For) and _counts(facts.flow, loop.node):
            yield _site(facts, loop, _earlier(facts.flow, loop), "skips-first", lost)
        call = _minimum(facts.flow, loop)
        if call is not None:
            kept = facts.flow.arguments(call)[0].value
            edit = stand_in(kernel.module, call, kept)
            yield _site(facts, loop, edit, "unclamped", _unclamped(facts, loop, call))


def _site(
    facts: Analysis,
    loop: _Loop,
    edit: Edit,
    variant: str,
    labels: tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]],
) -> Site:
    words = {
        "skips-last": "leaves out its last step",
        "skips-first": "leaves out its first step",
        "unclamped": "runs on past a limit",
    }
    return Site(
        edits=(edit,),
        line=facts.flow.kernel.module.line(loop.node),
        detail=f"the loop over {loop.counter.value} {words[variant]}",
        observable_by=labels[0],
        reveal=labels[1],
        variant=variant,
    )


def _loops(flow: Dataflow) -> Iterator[_Loop]:
    for node in nested(flow.kernel.function.body):
        loop = _for(flow, node) if isinstance(node, cst.For) else None
        if isinstance(node, cst.While):
            loop = _while(node)
        if loop is not None:
            yield loop


def _for(flow: Dataflow, node: cst.For) -> _Loop | None:
    if not isinstance(node.iter, cst.Call) or flow.call_name(node.iter) not in _RANGES:
        return None
    given = [arg.value for arg in node.iter.args if arg.keyword is None and not arg.star]
    if not given or not isinstance(node.target, cst.Name):
        return None
    if len(given) == 1:
        return _Loop(node, node.target, given[0], None, None)
    return _Loop(node, node.target, given[1], given[0], given[2] if len(given) > 2 else None)


def _while(node: cst.While) -> _Loop | None:
    """`while i < end`, where the body moves `i` by a step once."""
    test = node.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    target = test.comparisons[0]
    if not isinstance(target.operator, cst.LessThan) or not isinstance(test.left, cst.Name):
        return None
    steps = [
        part.value
        for part in nested(node.body)
        if isinstance(part, cst.AugAssign)
        and isinstance(part.operator, cst.AddAssign)
        and isinstance(part.target, cst.Name)
        and part.target.value == test.left.value
    ]
    return _Loop(node, test.left, target.comparator, None, steps[0]) if len(steps) == 1 else None


def _counts(flow: Dataflow, node: cst.For) -> bool:
    """Whether the loop uses its counter: if not, its first step is as good as its last."""
    return any(flow.uses(d) for d in flow.definitions() if d.node is node)


def _later(flow: Dataflow, loop: _Loop) -> Edit:
    """The end, one step before."""
    module = flow.kernel.module
    start, end = module.span(loop.end)
    sign, step = _signed(flow, loop.step)
    other = {"+": "-", "-": "+"}[sign]
    return Edit(start, end, f"{_operand(flow, loop.end)} {other} {step}")


def _earlier(flow: Dataflow, loop: _Loop) -> Edit:
    """The start, one step later."""
    module = flow.kernel.module
    sign, step = _signed(flow, loop.step)
    if loop.start is None:
        place = module.span(loop.end)[0]
        return Edit(place, place, f"{step}, ")
    start, end = module.span(loop.start)
    if isinstance(loop.start, cst.Integer) and loop.start.evaluated_value == 0 and sign == "+":
        return Edit(start, end, step)
    return Edit(start, end, f"{_operand(flow, loop.start)} {sign} {step}")


def _signed(flow: Dataflow, step: cst.BaseExpression | None) -> tuple[str, str]:
    if isinstance(step, cst.UnaryOperation) and isinstance(step.operator, cst.Minus):
        return "-", flow.source(step.expression)
    if step is None:
        return "+", "1"
    text = flow.source(step)
    tight = isinstance(step, _TIGHT) or (
        isinstance(step, cst.BinaryOperation) and isinstance(step.operator, cst.Multiply)
    )
    return "+", text if tight or step.lpar else f"({text})"


def _operand(flow: Dataflow, node: cst.BaseExpression) -> str:
    """The text of a bound, as the left operand of a sum."""
    text = flow.source(node)
    arithmetic = isinstance(node, cst.BinaryOperation) and isinstance(
        node.operator, cst.Add | cst.Subtract | cst.Multiply | cst.FloorDivide | cst.Modulo
    )
    return text if isinstance(node, _TIGHT) or arithmetic or node.lpar else f"({text})"


def _lost(facts: Analysis, loop: _Loop) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """A loop that only finds maxima which cancel must lose its one step, else any will do."""
    flow = facts.flow
    inside = set(nested(loop.node.body))
    results = {
        definition.value
        for definition in flow.definitions()
        if definition.value is not None
        and definition.node in inside
        and any(use not in inside for use in flow.uses(definition))
    }
    stores = any(flow.call_name(n) == "store" or flow.call_name(n) in ATOMICS for n in inside)
    maxima = [n for n in results if flow.call_name(n) in ("maximum", "builtins.max")]
    reveal = Reveal.ANY
    if maxima and len(maxima) == len(results) and not stores:
        shape = facts.typing.safe_shape(maxima[0])
        if facts.cancellation.cancels(dict.fromkeys(maxima, SHIFTED), Factor(shape)):
            reveal = Reveal.SHORT
    return (ObservableBy.VALUES,), (reveal,)


def _minimum(flow: Dataflow, loop: _Loop) -> cst.Call | None:
    """A minimum of two in the end of a loop, or in a name that only ends loops."""
    resolved = flow.resolve(loop.end)
    if resolved is not loop.end:
        used = [use for d in flow.definitions() if d.value is resolved for use in flow.uses(d)]
        if len(used) != 1:
            return None
    found = [n for n in (resolved, *nested(resolved)) if flow.call_name(n) in _MINIMA]
    call = found[0] if found else None
    if not isinstance(call, cst.Call) or len(flow.arguments(call)) != 2:
        return None
    return call


def _unclamped(
    facts: Analysis, loop: _Loop, call: cst.Call
) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """What steps past the limit show: those in which the counter is not below it."""
    flow = facts.flow
    bound = flow.arguments(call)[1].value
    limit = facts.memory.value(bound)
    if flow.resolve(loop.end) is not call or limit is None or isinstance(loop.node, cst.While):
        return _UNKNOWN
    counter = f"{loop.counter.value}@{flow.kernel.module.line(loop.node)}"
    term = below(Value(counter, index=True), limit, inclusive=False)
    definition = counter_of(flow, loop.node)
    assert definition is not None
    excess = added(facts.integers.counter(definition), scaled(facts.integers.of(bound), -1))
    change = Change(ChangeKind.OPENED, loop.node, denied=facts.integers.denied(excess))
    return effect(facts, change, (Deciding(term),)).labels()


_SUM = """\
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    for i in tl.range(tl.cdiv(n, BLOCK), num_stages=2):
        acc += tl.load(x_ptr + i * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc, axis=0))
"""
_SPLIT = """\
@triton.jit
def split(x_ptr, out_ptr, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * SPLIT
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(first, tl.minimum(first + SPLIT, n), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    place = 0
    while place < n:
        tl.store(out_ptr + place + tl.arange(0, BLOCK), acc)
        place += BLOCK
"""

OPERATOR = Operator(
    name="wrong-loop-range",
    bug_class="loop-range",
    summary="A loop leaves out its last or its first step, or runs on past a limit.",
    evidence="xformers #785; openai/gpt-oss#196; flash-linear-attention 370fe304",
    find=find,
    applies=(
        Example(
            _SUM,
            (
                _SUM.replace("range(0, n, BLOCK)", "range(0, n - BLOCK, BLOCK)"),
                _SUM.replace("range(0, n, BLOCK)", "range(BLOCK, n, BLOCK)"),
                _SUM.replace("tl.cdiv(n, BLOCK), num", "tl.cdiv(n, BLOCK) - 1, num"),
                _SUM.replace("tl.cdiv(n, BLOCK), num", "1, tl.cdiv(n, BLOCK), num"),
            ),
        ),
        Example(
            _SPLIT,
            (
                _SPLIT.replace("n), BLOCK)", "n) - BLOCK, BLOCK)"),
                _SPLIT.replace("range(first,", "range(first + BLOCK,"),
                _SPLIT.replace("tl.minimum(first + SPLIT, n)", "first + SPLIT"),
                _SPLIT.replace("place < n", "place < n - BLOCK"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def unrolled(x_ptr, out_ptr, BLOCK: tl.constexpr, N: tl.constexpr):
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for i in tl.static_range(0, N, BLOCK):
        acc += tl.load(x_ptr + i + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc, axis=0))
""",
        """\
@triton.jit
def lock(lock_ptr, out_ptr, x):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, x)
    tl.atomic_xchg(lock_ptr, 0)
""",
    ),
)
