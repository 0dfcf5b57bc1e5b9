"""A factor of a formula is lost: `qk * scale` becomes `qk`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.cancellation import Factor, factor_of
from gatecert.operators.facts.changes import SCALED, SHIFTED
from gatecert.operators.facts.constants import known_number, literal
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_statement, keep
from gatecert.operators.facts.factors import lost_factors
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import EXPONENTIALS, Role
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.facts.softmax import in_exponent, sides
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

LOG2_E = math.log2(math.e)


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Products and quotients of data, each losing the operand that is the factor."""
    facts = analysis(kernel)
    flow, typing, cancellation = facts.flow, facts.typing, facts.cancellation
    rescaled = {r.whole for r in facts.rescales}
    for node in flow.expressions():
        if node in rescaled or not _is_data(typing, node):
            continue
        for kept, factor in lost_factors(typing, node):
            visible = not cancellation.cancels({node: SCALED}, factor_of(typing, factor))
            yield Site(
                edits=(_drop(flow, node, kept),),
                line=kernel.module.line(node),
                detail=f"the {_what(node)} `{flow.source(factor)}` is lost",
                observable_by=(ObservableBy.VALUES,) if visible else (),
                reveal=_reveal(facts, node) if visible else (),
                variant=_variant(typing, node, kept, factor),
            )


def _what(node: cst.CSTNode) -> str:
    is_quotient = isinstance(getattr(node, "operator", None), cst.Divide | cst.DivideAssign)
    return "divisor" if is_quotient else "factor"


def _drop(flow: Dataflow, node: cst.CSTNode, kept: cst.CSTNode) -> Edit:
    module = flow.kernel.module
    if isinstance(node, cst.AugAssign):
        return drop_statement(module, node)
    return keep(module, node, kept)


def _is_data(typing: Typing, node: cst.CSTNode) -> bool:
    operator = getattr(node, "operator", None)
    if not isinstance(operator, cst.Multiply | cst.Divide | cst.MultiplyAssign | cst.DivideAssign):
        return False
    if typing.kind(node) in (Kind.INTEGER, Kind.POINTER, Kind.BOOLEAN):
        return False
    if Kind.INTEGER in (typing.kind(n) for n in sides(node)):
        return _is_no_index(typing.flow, node)
    return typing.flow.reaches_output(node)


def _is_no_index(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether an integer times what may be one, too, is data without a function's help.

    What a function of another module makes of an index, it may well load.
    """
    seen = {node}
    queue = [node]
    while queue:
        for role, following in flow.outputs(queue.pop()):
            if flow.call_name(following).startswith("helper."):
                continue
            if role in (Role.STORED, Role.RETURNED):
                return True
            if role is Role.VALUE and following not in seen:
                seen.add(following)
                queue.append(following)
    return False


def _variant(typing: Typing, node: cst.CSTNode, kept: cst.CSTNode, factor: cst.CSTNode) -> str:
    flow = typing.flow
    number = known_number(flow, factor)
    if number is not None and math.isclose(number, LOG2_E, rel_tol=1e-4):
        return "log2e"
    if typing.safe_shape(factor) == () and _scales_logits(flow, node):
        return "softmax-scale"
    return "kept-number" if literal(kept) is not None else ""


def _scales_logits(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether the product enters an exponent that a dot enters too, unsaturated."""
    forward = {node, *flow.forward(node)}
    saturated = any(flow.call_name(n) == "tanh" for n in forward | flow.backward(node))
    return not saturated and any(
        flow.call_name(n) in EXPONENTIALS
        and any(flow.call_name(m) == "dot" for m in flow.backward(n))
        for n in forward
    )


def _reveal(facts: Analysis, node: cst.CSTNode) -> tuple[Reveal, ...]:
    """What lies in the exponent of a rescale matters only once the maximum rises, and a wrong
    maximum that cancels only where exponentials overflow."""
    flow = facts.flow
    if any(in_exponent(flow, r, node) for r in facts.rescales):
        return (Reveal.RISING, Reveal.SEVERAL_BLOCKS)
    shape = facts.typing.safe_shape(node)
    if any(flow.call_name(n) == "maximum" for n in flow.forward(node)) and (
        facts.cancellation.cancels({node: SHIFTED}, Factor(shape))
    ):
        return (Reveal.LARGE_MAGNITUDE,)
    return (Reveal.ANY,)


_ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, p_ptr, D, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    rm, rn, rd = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BD)
    q = tl.load(q_ptr + rm[:, None] * D + rd[None, :], mask=rd[None, :] < D, other=0.0)
    k = tl.load(k_ptr + rn[None, :] * D + rd[:, None], mask=rd[:, None] < D, other=0.0)
    {lines}
    p = tl.exp(s - tl.max(s, 1)[:, None])
    tl.store(p_ptr + rm[:, None] * BN + rn[None, :], p)
"""


def _attention(*lines: str) -> str:
    return _ATTENTION.format(lines="\n    ".join(lines))


_RMSNORM = """\
@triton.jit
def rmsnorm(x_ptr, w_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
    w = tl.load(w_ptr + cols, mask=cols < N, other=0.0)
    r = tl.rsqrt({mean} + eps)
    tl.store(y_ptr + row * N + cols, {out}, mask=cols < N)
"""
_MEAN = "tl.sum(x * x, axis=0) / N"

OPERATOR = Operator(
    name="dropped-factor",
    bug_class="formula-term",
    summary="A factor is lost: the softmax scale, a weight, a divisor, a gradient from upstream.",
    evidence="fla-org/flash-linear-attention#1071 (gate), meta-pytorch/segment-anything-fast#71 "
    "(log2(e) of a bias), fla-org/flash-linear-attention#963 (upstream gradient); the softmax "
    "scale itself is textbook",
    find=find,
    version=2,
    applies=(
        Example(
            _attention("s = tl.dot(q, k) * scale"),
            (_attention("s = tl.dot(q, k)"),),
        ),
        Example(
            _attention("s = tl.dot(q, k)", "s *= 1.0 / tl.sqrt(D.to(tl.float32))"),
            (_attention("s = tl.dot(q, k)", "pass"),),
        ),
        Example(
            _attention("q = (q * D ** -0.5).to(tl.float16)", "s = tl.dot(q, k)"),
            (_attention("q = (q).to(tl.float16)", "s = tl.dot(q, k)"),),
        ),
        Example(
            _RMSNORM.format(mean=_MEAN, out="x * r * w"),
            (
                _RMSNORM.format(mean="tl.sum(x * x, axis=0)", out="x * r * w"),
                _RMSNORM.format(mean=_MEAN, out="x * r"),
                _RMSNORM.format(mean=_MEAN, out="x * w"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def copy(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    half = N * 0.5
    x = tl.load(x_ptr + row * stride + cols, mask=cols < half, other=0.0)
    keep = (x > 0).to(tl.float32)
    tl.store(y_ptr + row * stride + cols, x * keep, mask=cols < half)
""",
        """\
@triton.jit
def square(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols)
    tl.store(y_ptr + cols, 1.0 / (x * x))
""",
    ),
)
