"""One bound of a mask is one too large or one too small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.bounds import Bound, bounds
from gatecert.operators.facts.elements import FALSE, TRUE
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import labels_of
from gatecert.operators.facts.values import Change, ChangeKind
from gatecert.operators.records import Edit, Example, Operator, Site

_WIDER: Mapping[type[cst.BaseCompOp], str] = {cst.LessThan: "<=", cst.GreaterThan: ">="}


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Two sites per bound that a load, store, atomic or padding select uses.

    Too wide (`<` becomes `<=`) lets the first lane past the end through: bounds, and values as
    far as that lane gets. Too narrow loses the last real lane: values on any input, unless what
    is lost was never used. A named mask is changed where it is defined, for all its uses.
    """
    memory = analysis(kernel).memory
    for bound in bounds(memory):
        for variant, truth, edits in (
            ("too-wide", FALSE, _wider(kernel, bound)),
            ("too-narrow", TRUE, _narrower(kernel, bound)),
        ):
            change = Change(ChangeKind.COMPARISON_FLIPPED, bound.node, bound.target)
            observable_by, reveal = labels_of(
                change, partial(memory.effect, among=bound.terms, truth=truth)
            )
            yield Site(
                edits=edits,
                line=kernel.module.line(bound.node),
                detail=f"bound one {variant.replace('-', ' ')}: mask of the {bound.used}",
                observable_by=observable_by,
                reveal=reveal,
                variant=variant,
            )


def _wider(kernel: KernelSyntax, bound: Bound) -> tuple[Edit, ...]:
    """`<` becomes `<=`; a bound that is inclusive already becomes strict and two larger."""
    start, end = kernel.module.inner_span(bound.operator)
    text = _WIDER.get(type(bound.operator))
    if text is not None:
        return (Edit(start, end, text),)
    return (_moved(kernel, bound.bound, "+ 1"),)


def _narrower(kernel: KernelSyntax, bound: Bound) -> tuple[Edit, ...]:
    return (_moved(kernel, bound.bound, "- 1"),)


def _moved(kernel: KernelSyntax, bound: cst.BaseExpression, step: str) -> Edit:
    """The bound, one up or down; `n - 1` and `n + 1` become `n` where that is the step back."""
    start, end = kernel.module.span(bound)
    text = kernel.module.source(bound)
    back = cst.Subtract if step == "+ 1" else cst.Add
    if (
        isinstance(bound, cst.BinaryOperation)
        and isinstance(bound.operator, back)
        and isinstance(bound.right, cst.Integer)
        and bound.right.value == "1"
    ):
        return Edit(start, end, kernel.module.source(bound.left))
    tight = isinstance(bound, cst.Name | cst.Integer | cst.Attribute | cst.Call | cst.Subscript)
    arithmetic = isinstance(bound, cst.BinaryOperation) and isinstance(
        bound.operator, cst.Add | cst.Subtract | cst.Multiply | cst.FloorDivide | cst.Modulo
    )
    return Edit(
        start, end, f"{text} {step}" if tight or arithmetic or bound.lpar else f"({text}) {step}"
    )


_ROWS = """\
@triton.jit
def rows(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, BLOCK)
    mask = (r[:, None] < m) & (n > c[None, :])
    x = tl.load(x_ptr + r[:, None] * n + c[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + r[:, None] * n + c[None, :], x, mask=mask)
"""
_TILES = """\
@triton.jit
def total(x_ptr, out_ptr, K, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = 0.0
    for k in range(0, tl.cdiv(K, BLOCK)):
        x = tl.load(x_ptr + k * BLOCK + offs, offs < K - k * BLOCK, 0.0)
        y = tl.load(x_ptr + k * BLOCK + offs, mask=k * BLOCK + offs <= K - 1, other=0.0)
        acc += tl.sum(x * y, axis=0)
    tl.store(out_ptr, acc)
"""

OPERATOR = Operator(
    name="mask-bound-off-by-one",
    bug_class="mask-bound-wrong",
    summary="One bound of one mask is one too large or one too small.",
    evidence="flash-linear-attention #1143 (last row of a tile for last live row); textbook",
    find=find,
    version=2,
    applies=(
        Example(
            _ROWS,
            (
                _ROWS.replace("r[:, None] < m", "r[:, None] <= m"),
                _ROWS.replace("r[:, None] < m", "r[:, None] < m - 1"),
                _ROWS.replace("n > c[None, :]", "n >= c[None, :]"),
                _ROWS.replace("n > c[None, :]", "n - 1 > c[None, :]"),
            ),
        ),
        Example(
            _TILES,
            (
                _TILES.replace("offs < K - k", "offs <= K - k"),
                _TILES.replace("offs < K - k * BLOCK,", "offs < K - k * BLOCK - 1,"),
                _TILES.replace("<= K - 1", "<= K"),
                _TILES.replace("<= K - 1", "<= K - 1 - 1"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def causal(s_ptr, out_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    mask = rows[:, None] >= cols[None, :]
    s = tl.load(s_ptr + rows[:, None] * BLOCK + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(s, axis=1))
""",
        """\
@triton.jit
def leaky(x_ptr, out_ptr, slope, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.where(x > 0, x, slope * x))
""",
    ),
)
