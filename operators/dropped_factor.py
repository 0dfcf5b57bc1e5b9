"""A factor of a formula is lost: `qk * scale` becomes `qk`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import libcst as cst

from gatecert.operators.facts.cancellation import Cancellation, factor_of
from gatecert.operators.facts.changes import SCALED
from gatecert.operators.facts.constants import literal, module_constant
from gatecert.operators.facts.dataflow import Dataflow, analyse
from gatecert.operators.facts.edits import drop_statement, keep
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import EXPONENTIALS
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.facts.softmax import Rescale, carried, in_exponent, rescales, sides
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

LOG2_E = math.log2(math.e)


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Products and quotients of data, each losing the operand that is the factor."""
    flow = analyse(kernel)
    typing = Typing(flow)
    cancellation = Cancellation(typing)
    scales = rescales(flow)
    rescaled = {r.whole for r in scales}
    for node in flow.expressions():
        if node in rescaled or not _is_data(typing, node):
            continue
        for kept, factor in _factors(typing, node):
            visible = not cancellation.cancels({node: SCALED}, factor_of(typing, factor))
            yield Site(
                edits=(_drop(flow, node, kept),),
                line=kernel.module.line(node),
                detail=f"the factor `{flow.source(factor)}` is lost",
                observable_by=(ObservableBy.VALUES,) if visible else (),
                reveal=_reveal(flow, scales, node) if visible else (),
                variant=_variant(typing, node, kept, factor),
            )


def _drop(flow: Dataflow, node: cst.CSTNode, kept: cst.CSTNode) -> Edit:
    module = flow.kernel.module
    if isinstance(node, cst.AugAssign):
        return drop_statement(module, node)
    return keep(module, node, kept)


def _is_data(typing: Typing, node: cst.CSTNode) -> bool:
    operator = getattr(node, "operator", None)
    if not isinstance(operator, cst.Multiply | cst.Divide | cst.MultiplyAssign | cst.DivideAssign):
        return False
    integral = (Kind.INTEGER, Kind.POINTER, Kind.BOOLEAN)
    return typing.kind(node) not in integral and typing.flow.reaches_output(node)


def _factors(typing: Typing, node: cst.CSTNode) -> Iterator[tuple[cst.CSTNode, cst.CSTNode]]:
    """(kept, dropped) operands: a divisor; the smaller operand of a product, the right one
    of equals. A number times another scalar may lose either."""
    flow = typing.flow
    left, right = sides(node)
    if isinstance(getattr(node, "operator", None), cst.Divide | cst.DivideAssign):
        if literal(left) is None and literal(right) != 1.0:
            yield left, right
        return
    if isinstance(node, cst.AugAssign):
        if not flow.same_value(left, right) and not _is_mask(flow, right):
            yield left, right
        return
    if _is_power(flow, left, right) or _is_mask(flow, left) or _is_mask(flow, right):
        return
    sizes = (_size(typing, left), _size(typing, right))
    if sizes == (0, 0) or 1.0 in (literal(left), literal(right)):
        return
    if sizes == (4, 4) and _is_contraction(flow, node):
        return
    if sizes[0] >= sizes[1]:
        yield left, right
    elif not _is_chain(left):
        yield right, left
    if set(sizes) == {0, 1}:
        yield (left, right) if sizes[0] < sizes[1] else (right, left)


def _is_contraction(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether the product of two tiles is summed at once, as in a dot product."""
    held = flow.consumer(node)
    return held is not None and flow.call_name(held[1]) == "sum"


def _is_chain(node: cst.CSTNode) -> bool:
    """Whether an operand is itself a product, whose own factors are lost one by one."""
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Multiply | cst.Divide)
        and not node.lpar
    )


def _size(typing: Typing, node: cst.CSTNode) -> int:
    """0 a number, 1 a scalar, 2 a broadcast tile, 3 a tile that all programs share, 4 other."""
    if literal(node) is not None:
        return 0
    shape = typing.safe_shape(node)
    if shape == ():
        return 1
    if shape is not None and "1" in shape:
        return 2
    return 4 if _depends_on_program(typing.flow, node) else 3


def _depends_on_program(flow: Dataflow, node: cst.CSTNode) -> bool:
    seen: set[cst.CSTNode] = set()
    queue = [node]
    while queue:
        current = queue.pop()
        if flow.call_name(current) == "program_id":
            return True
        if current not in seen:
            seen.add(current)
            queue.extend(n for _, n in flow.inputs(current))
    return False


def _is_power(flow: Dataflow, left: cst.CSTNode, right: cst.CSTNode) -> bool:
    """Whether the product is a power (`x * x * x`): losing one `x` is no lost factor."""
    operands = [left]
    while operands:
        operand = operands.pop()
        if flow.same_value(operand, right) or flow.source(operand) == flow.source(right):
            return True
        if isinstance(operand, cst.BinaryOperation) and isinstance(operand.operator, cst.Multiply):
            operands += [operand.left, operand.right]
    return False


def _is_mask(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a factor is a condition turned into 0 or 1."""
    return any(isinstance(n, cst.Comparison) for n in carried(flow, node))


def _variant(typing: Typing, node: cst.CSTNode, kept: cst.CSTNode, factor: cst.CSTNode) -> str:
    flow = typing.flow
    resolved = flow.resolve(factor)
    number = literal(resolved)
    if number is None and isinstance(resolved, cst.Name):
        number = module_constant(flow, resolved.value)
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


def _reveal(flow: Dataflow, scales: Sequence[Rescale], node: cst.CSTNode) -> tuple[Reveal, ...]:
    """What lies in the exponent of a rescale matters only once the maximum rises."""
    if any(in_exponent(flow, r, node) for r in scales):
        return (Reveal.RISING, Reveal.SEVERAL_BLOCKS)
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
