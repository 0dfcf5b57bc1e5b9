"""An atomic update becomes a load, an operation and a store: updates in between are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import Dataflow, language_name
from gatecert.operators.facts.edits import drop_argument, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Argument
from gatecert.operators.facts.ownership import lanes_collide, programs_collide
from gatecert.operators.facts.shapes import Typing
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_PLAIN: Mapping[str, str] = {
    "atomic_add": "{old} + {new}",
    "atomic_and": "{old} & {new}",
    "atomic_or": "{old} | {new}",
    "atomic_xor": "{old} ^ {new}",
    "atomic_max": "{tl}.maximum({old}, {new})",
    "atomic_min": "{tl}.minimum({old}, {new})",
}
_TIGHT = (cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.Integer, cst.Float)


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Atomic updates whose result nobody uses; an exchange is a store already."""
    facts = analysis(kernel)
    for call in facts.flow.calls(*_PLAIN):
        pointer, value = (facts.flow.argument(call, name) for name in ("pointer", "value"))
        unused = isinstance(kernel.module.parents.get(call), cst.Expr)
        if not unused or pointer is None or value is None or any(a.star for a in call.args):
            continue
        observable, reveal = _labels(facts.typing, pointer.value)
        yield Site(
            edits=tuple(_edits(facts.flow, call, pointer.value, value)),
            line=kernel.module.line(call),
            detail="the update is a load and a store, and no longer one step",
            observable_by=observable,
            reveal=reveal,
        )


def _edits(
    flow: Dataflow, call: cst.Call, pointer: cst.BaseExpression, value: Argument
) -> Iterator[Edit]:
    """Store what is loaded from the same place, updated; the order of memory is nobody's now."""
    module = flow.kernel.module
    tl = language_name(flow)
    mask = flow.argument(call, "mask")
    address, new = flow.source(pointer), flow.source(value.value)
    if not isinstance(value.value, _TIGHT) and not value.value.lpar:
        new = f"({new})"
    guard = ""
    if mask is not None and not _is_none(mask.value):
        guard = f", mask={flow.source(mask.value)}, other=0.0"
    updated = _PLAIN[flow.call_name(call)].format(
        tl=tl, old=f"{tl}.load({address}{guard})", new=new
    )
    start, end = module.span(value.value)
    if flow.words.is_method(call):
        pass_on = "" if mask is None else f", mask={flow.source(mask.value)}"
        yield replace(module, call, f"{tl}.store({address}, {updated}{pass_on})")
        return
    yield replace(module, call.func, f"{tl}.store")
    yield Edit(start, end, updated)
    for argument in flow.arguments(call):
        if argument.arg is not None and argument.parameter not in ("pointer", "value", "mask"):
            yield drop_argument(module, call, argument.arg)


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _labels(
    typing: Typing, address: cst.CSTNode
) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """Lanes that share an address lose updates at once; programs only if they interleave."""
    observable: list[ObservableBy] = []
    reveal: tuple[Reveal, ...] = ()
    if programs_collide(typing, address):
        observable, reveal = [ObservableBy.RACE], (Reveal.SEVERAL_PROGRAMS,)
    if lanes_collide(typing, address):
        observable, reveal = [ObservableBy.VALUES, *observable], (Reveal.REPEATED_INDICES,)
    return tuple(observable), reveal


_GRADIENT = """\
@triton.jit
def weight_gradient(x_ptr, dw_ptr, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)
    {line}
"""
_LARGEST = """\
@triton.jit
def largest(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    {line}
"""

OPERATOR = Operator(
    name="atomic-to-plain",
    bug_class="race",
    summary="An atomic update becomes a load, an operation and a store.",
    evidence="jmschrei/cherimoya#25 (overlapping taps of a gradient), "
    "fla-org/flash-linear-attention#360 (weight gradients of several batches)",
    find=find,
    applies=(
        Example(
            _GRADIENT.format(line="tl.atomic_add(dw_ptr + cols, x * 2.0, mask=cols < N)"),
            (
                _GRADIENT.format(
                    line="tl.store(dw_ptr + cols, tl.load(dw_ptr + cols, mask=cols < N, other=0.0)"
                    " + (x * 2.0), mask=cols < N)"
                ),
            ),
        ),
        Example(
            _LARGEST.format(
                line="tl.atomic_max(y_ptr, tl.max(tl.load(x_ptr + offsets)), sem='relaxed')"
            ),
            (
                _LARGEST.format(
                    line="tl.store(y_ptr, tl.maximum(tl.load(y_ptr),"
                    " tl.max(tl.load(x_ptr + offsets))))"
                ),
            ),
        ),
        Example(
            _LARGEST.format(line="tl.atomic_or(y_ptr + offsets, tl.load(x_ptr + offsets), None)"),
            (
                _LARGEST.format(
                    line="tl.store(y_ptr + offsets, tl.load(y_ptr + offsets)"
                    " | tl.load(x_ptr + offsets), None)"
                ),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def ticket(lock_ptr, y_ptr, BLOCK: tl.constexpr):
    turn = tl.atomic_add(lock_ptr, 1)
    tl.store(y_ptr + turn * BLOCK + tl.arange(0, BLOCK), 0.0)
""",
        """\
@triton.jit
def release(lock_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), 0.0)
    tl.atomic_xchg(lock_ptr, 0)
""",
    ),
)
