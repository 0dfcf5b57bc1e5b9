"""What a kernel stores is too large by a small factor: the rungs of a gate's detection limit.

It is in no certificate: `gatecert limits` alone plants it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import buffer_name
from gatecert.operators.facts.values import Access, AccessKind
from gatecert.operators.records import Example, ObservableBy, Operator, Reveal, Site

ERRORS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""The relative errors that are planted, smallest first."""

_INTEGER = re.compile(r"(\w+\.)?u?int\d+")
_WIDE = re.compile(r"(\w+\.)?float(32|64)")
_ATOMS = (cst.Name, cst.Call, cst.Attribute, cst.Subscript)


def variant_of(error: float) -> str:
    """The name of a rung: `x1.001`."""
    return f"x{1.0 + error:.10g}"


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Every stored or added value that is computed, before it is cast to what is stored."""
    flow = analysis(kernel).flow
    memory = analysis(kernel).memory
    for access in memory.accesses(AccessKind.STORE, AccessKind.ATOMIC):
        value = _computed(flow, access)
        if value is None:
            continue
        text = kernel.module.source(value)
        text = text if isinstance(value, _ATOMS) or value.lpar else f"({text})"
        for error in ERRORS:
            factor = variant_of(error)[1:]
            yield Site(
                edits=(replace(kernel.module, value, f"({text} * {factor})"),),
                line=kernel.module.line(access.node),
                detail=f"what is stored to {buffer_name(access)} is multiplied by {factor}",
                observable_by=(ObservableBy.VALUES,),
                reveal=(Reveal.ANY,),
                variant=variant_of(error),
                scored=False,
            )


def _computed(flow: Dataflow, access: Access) -> cst.BaseExpression | None:
    """The value without its casts; None for integers, numbers and exchanges.

    A cast to float32 stays: a narrower product would round a small error away.
    """
    if access.kind is AccessKind.ATOMIC and flow.call_name(access.node) != "atomic_add":
        return None
    argument = access.arguments.get("value") or access.arguments.get("val")
    node: cst.CSTNode | None = None if argument is None else argument.value
    while node is not None and flow.call_name(cast := flow.resolve(node)) == "to":
        receiver, *dtypes = flow.arguments(_call(cast))
        if any(_INTEGER.fullmatch(flow.source(dtype.value)) for dtype in dtypes):
            return None
        if any(_WIDE.fullmatch(flow.source(dtype.value)) for dtype in dtypes):
            break
        node = receiver.value
    if not isinstance(node, cst.BaseExpression) or isinstance(node, cst.BaseNumber):
        return None
    return node


def _call(node: cst.CSTNode) -> cst.Call:
    assert isinstance(node, cst.Call)
    return node


_TWICE = """\
@triton.jit
def twice(x_ptr, y_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, (x + x).to(y_ptr.dtype.element_ty), mask=offs < n)
    tl.atomic_add(sum_ptr, tl.sum(x))
"""

_DOUBLE = """\
@triton.jit
def double(x_ptr, y_ptr, q_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    y = tl.load(x_ptr + offs, mask=offs < n) * 2.0
    tl.store(y_ptr + offs, value=y, mask=offs < n)
    tl.store(q_ptr + offs, y.to(tl.int8), mask=offs < n)
"""

_WIDENED = """\
@triton.jit
def widened(x_ptr, y_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.atomic_add(sum_ptr + offs, x.to(tl.float32), mask=offs < n)
    y = x.to(tl.float32)
    tl.store(y_ptr + offs, y.to(y_ptr.dtype.element_ty), mask=offs < n)
"""

OPERATOR = Operator(
    name="scaled-result",
    bug_class="detection-limit",
    summary="What is stored is too large by a factor.",
    evidence="textbook",
    find=find,
    applies=(
        Example(
            _TWICE,
            tuple(
                _TWICE.replace(old, new.format(variant_of(error)[1:]))
                for old, new in (
                    ("(x + x).to", "(((x + x) * {})).to"),
                    ("tl.sum(x)", "(tl.sum(x) * {})"),
                )
                for error in ERRORS
            ),
        ),
        Example(
            _DOUBLE,
            tuple(
                _DOUBLE.replace("value=y", f"value=(y * {variant_of(error)[1:]})")
                for error in ERRORS
            ),
        ),
        Example(
            _WIDENED,
            tuple(
                _WIDENED.replace(old, new.format(variant_of(error)[1:]))
                for old, new in (
                    ("x.to(tl.float32), mask", "(x.to(tl.float32) * {}), mask"),
                    ("y.to(y_ptr", "(y * {}).to(y_ptr"),
                )
                for error in ERRORS
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def mark(lock_ptr):
    tl.atomic_xchg(lock_ptr, 1)
    tl.store(lock_ptr, 0)
""",
        """\
@triton.jit
def code(x_ptr, q_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(q_ptr + offs, (x * 127.0).to(tl.int8), mask=offs < n)
""",
    ),
)
