"""Arithmetic that belongs in float32 runs in the inputs' own 16-bit format."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.accumulators import (
    element_type,
    is_float32,
    reads,
    summed_by_dot,
    updates,
)
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.constants import known_number
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_argument, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.lowering import Change
from gatecert.operators.facts.precision import Effect, Precision, Step
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_SUMS = ("sum", "cumsum", "cumprod")
_TIGHT = (cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.Integer, cst.Float)


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Casts to float32, accumulators of float32, and sums and dots that ask for float32.

    Only where the code with the loss compiles, and a 16-bit format comes about at all.
    """
    flow = analysis(kernel).flow
    precision = Precision(flow)
    for call in flow.calls("to", "dot", *_SUMS, "zeros", "full"):
        found = {
            "to": _cast,
            "dot": _dot,
            "zeros": _accumulator,
            "full": _accumulator,
        }.get(flow.call_name(call), _sum)(flow, call)
        if found is None:
            continue
        change, edits, variant, detail = found
        seen = precision.effect(change)
        if seen.refused or not seen.narrower:
            continue
        yield Site(
            edits=edits,
            line=kernel.module.line(call),
            detail=detail,
            observable_by=(ObservableBy.VALUES,) if seen.visible else (),
            reveal=_reveal(precision, change, seen) if seen.visible else (),
            variant=variant,
        )


_Plant = tuple[Change, tuple[Edit, ...], str, str]
"""What changes, by which edits, the variant, and what to say of it."""


def _cast(flow: Dataflow, call: cst.Call) -> _Plant | None:
    value, dtype = flow.argument(call, "input"), flow.argument(call, "dtype")
    if value is None or dtype is None or not is_float32(dtype.value) or len(call.args) > 2:
        return None
    if flow.argument(call, "bitcast") is not None:
        return None
    text = flow.source(value.value)
    bare = isinstance(value.value, _TIGHT) or value.value.lpar
    kept = text if bare else f"({text})"
    edit = replace(flow.kernel.module, call, kept)
    detail = f"`{' '.join(text.split())}` is not cast to float32"
    return Change(dropped=frozenset({call})), (edit,), "", detail


def _sum(flow: Dataflow, call: cst.Call) -> _Plant | None:
    dtype = flow.argument(call, "dtype")
    if dtype is None or dtype.arg is None or not is_float32(dtype.value):
        return None
    edit = drop_argument(flow.kernel.module, call, dtype.arg)
    detail = "the sum is taken in the format of what is summed"
    return Change(dropped=frozenset({call})), (edit,), "dtype", detail


def _dot(flow: Dataflow, call: cst.Call) -> _Plant | None:
    dtype = flow.argument(call, "out_dtype")
    if dtype is None or not is_float32(dtype.value) or flow.argument(call, "acc") is not None:
        return None
    root = (dotted(dtype.value) or "").rpartition(".")[0]
    edit = replace(flow.kernel.module, dtype.value, f"{root}.float16")
    detail = "the contraction of float16 operands gives float16"
    return Change(lowered=frozenset({call})), (edit,), "out-dtype", detail


# -- accumulators


def _accumulator(flow: Dataflow, call: cst.Call) -> _Plant | None:
    """The start of a running sum takes the inputs' type, and so does every later sum."""
    dtype = flow.argument(call, "dtype")
    start = next((d for d in flow.definitions() if d.value is call), None)
    value = flow.argument(call, "value")
    zero = value is None or known_number(flow, value.value) == 0.0
    if start is None or dtype is None or not is_float32(dtype.value) or not zero:
        return None
    found = updates(flow, start)
    element = element_type(flow, found)
    if not found or element is None:
        return None
    narrowed: set[cst.CSTNode] = {call}
    widened: set[cst.CSTNode] = set()
    fresh: set[cst.CSTNode] = set()
    edits = [replace(flow.kernel.module, dtype.value, element)]
    for update in found:
        whole = update.value
        assert whole is not None
        term = whole.value if isinstance(whole, cst.AugAssign) else whole
        narrowed.add(term)
        fresh.update(reads(flow, whole, start.name))
        carried = summed_by_dot(flow, term, start.name)
        if carried is not None:
            widened.add(carried)
            place = flow.kernel.module.span(carried)[1]
            edits.append(Edit(place, place, f".to({flow.source(dtype.value)})"))
        edits += _narrow(flow, term, element)
    detail = f"`{start.name}` accumulates in the format of the inputs"
    change = Change(
        narrowed=frozenset(narrowed), widened=frozenset(widened), carried=frozenset(fresh)
    )
    return change, tuple(edits), "accumulator", detail


def _narrow(flow: Dataflow, term: cst.CSTNode, element: str) -> Iterator[Edit]:
    """Cast what is added or assigned to the element type."""
    module = flow.kernel.module
    if getattr(term, "lpar", ()):
        end = module.span(term)[1]
        yield Edit(end, end, f".to({element})")
        return
    start, end = module.inner_span(term)
    if isinstance(term, _TIGHT):
        yield Edit(end, end, f".to({element})")
        return
    yield Edit(start, start, "(")
    yield Edit(end, end, f").to({element})")


def _reveal(precision: Precision, change: Change, seen: Effect) -> tuple[Reveal, ...]:
    if change.narrowed and not precision.effect(change.first_turn()).visible:
        return (Reveal.HALF_PRECISION, Reveal.SEVERAL_BLOCKS)
    if seen.steps == {Step.REDUCTION}:
        return (Reveal.HALF_PRECISION, Reveal.LONG)
    return (Reveal.HALF_PRECISION,)


_MEAN = """\
@triton.jit
def mean_square(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = {load}
    tl.store(y_ptr, {total} / N)
"""
_LOAD = "tl.load(x_ptr + cols, mask=cols < N, other=0.0)"
_MATMUL = """\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype={dtype})
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + k + rk[None, :])
        b = tl.load(b_ptr + (k + rk[:, None]) * BN + rn[None, :])
        {line}
    tl.store(c_ptr + rm[:, None] * BN + rn[None, :], acc)
"""
_ELEMENT = "a_ptr.dtype.element_ty"

OPERATOR = Operator(
    name="dropped-upcast",
    bug_class="low-precision",
    summary="A cast to float32 is left out, so that sums and products run in 16 bits.",
    evidence="linkedin/Liger-Kernel#950 (weight gradient summed in bfloat16), "
    "meta-pytorch/torchrec#3730 (rows added in float16), apple/ml-cross-entropy#14",
    find=find,
    applies=(
        Example(
            _MEAN.format(load=f"{_LOAD}.to(tl.float32)", total="tl.sum(x * x)"),
            (_MEAN.format(load=_LOAD, total="tl.sum(x * x)"),),
        ),
        Example(
            _MEAN.format(load=_LOAD, total="tl.sum(x, axis=0, dtype=tl.float32)"),
            (_MEAN.format(load=_LOAD, total="tl.sum(x, axis=0)"),),
        ),
        Example(
            _MEAN.format(load=_LOAD, total="tl.sum(tl.cast(x * x, tl.float32) * x)"),
            (_MEAN.format(load=_LOAD, total="tl.sum((x * x) * x)"),),
        ),
        Example(
            _MATMUL.format(dtype="tl.float32", line="acc += tl.dot(a, b)"),
            (_MATMUL.format(dtype=_ELEMENT, line=f"acc += tl.dot(a, b).to({_ELEMENT})"),),
        ),
        Example(
            _MATMUL.format(dtype="tl.float32", line="acc = tl.dot(a, b, acc)"),
            (
                _MATMUL.format(
                    dtype=_ELEMENT, line=f"acc = tl.dot(a, b, acc.to(tl.float32)).to({_ELEMENT})"
                ),
            ),
        ),
        Example(
            _MATMUL.format(
                dtype="tl.float32", line="acc += tl.dot(a, b, out_dtype=tl.float32) * 0.3"
            ),
            (
                _MATMUL.format(
                    dtype=_ELEMENT,
                    line=f"acc += (tl.dot(a, b, out_dtype=tl.float32) * 0.3).to({_ELEMENT})",
                ),
                _MATMUL.format(
                    dtype="tl.float32", line="acc += tl.dot(a, b, out_dtype=tl.float16) * 0.3"
                ),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    rows = N.to(tl.float32)
    tl.store(y_ptr + cols, tl.exp(x) / rows, mask=cols < N)
""",
        """\
@triton.jit
def lift(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        total = tl.maximum(total, tl.load(x_ptr + start + cols))
    tl.store(y_ptr + cols, total)
""",
        """\
@triton.jit
def mixed(x_ptr, w_ptr, y_ptr, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    w = tl.load(w_ptr + rows * B + cols).to(tl.float32)
    x = tl.load(x_ptr + rows * B + cols)
    carry = tl.load(x_ptr + cols).to(tl.float32)
    for row in range(B):
        carry = tl.exp2(carry)
    tl.store(y_ptr + rows * B + cols, tl.dot(tl.exp(x + 0.0 * carry), w))
""",
    ),
)
