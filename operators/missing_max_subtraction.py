"""`exp(x - max)` becomes `exp(x)`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.cancellation import Cancellation, Factor, factor_of
from gatecert.operators.facts.changes import SHIFTED
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_statement, keep
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.shapes import Typing
from gatecert.operators.facts.softmax import Rescale, sides, stabilised_exponentials
from gatecert.operators.missing_rescale import drop_rescale
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Each subtraction of a maximum in an exponent; then all of one kernel at once.

    The second kind (variant `linked`) exists for online softmax only: with every subtraction
    and every rescale gone, what remains is the plain unstable softmax.
    """
    facts = analysis(kernel)
    flow, typing, cancellation = facts.flow, facts.typing, facts.cancellation
    found = dict.fromkeys(e.subtraction for e in stabilised_exponentials(flow))
    subtractions = [s for s in found if flow.reaches_output(s)]
    for subtraction in subtractions:
        yield Site(
            edits=(_drop(flow, subtraction),),
            line=kernel.module.line(subtraction),
            detail="the exponential is taken without subtracting the maximum",
            observable_by=(ObservableBy.VALUES,),
            reveal=_reveal(typing, cancellation, subtraction),
        )
    rescaled = [r for r in facts.rescales if not isinstance(r.whole, cst.Call)]
    if subtractions and rescaled:
        yield from _linked(typing, cancellation, subtractions, rescaled)


def _drop(flow: Dataflow, subtraction: cst.CSTNode) -> Edit:
    module = flow.kernel.module
    if isinstance(subtraction, cst.AugAssign):
        return drop_statement(module, subtraction)
    return keep(module, subtraction, sides(subtraction)[0])


def _reveal(
    typing: Typing, cancellation: Cancellation, subtraction: cst.CSTNode
) -> tuple[Reveal, ...]:
    """Overflow alone if the missing term cancels; a maximum that rises if it cancels only as
    long as the maximum stays; else any input."""
    factor = factor_of(typing, sides(subtraction)[1])
    seeds = {subtraction: SHIFTED}
    if cancellation.cancels(seeds, factor):
        return (Reveal.LARGE_MAGNITUDE,)
    if cancellation.cancels(seeds, Factor(factor.shape)):
        return (Reveal.RISING, Reveal.SEVERAL_BLOCKS)
    return (Reveal.ANY,)


def _linked(
    typing: Typing,
    cancellation: Cancellation,
    subtractions: list[cst.CSTNode],
    rescaled: list[Rescale],
) -> Iterator[Site]:
    flow = typing.flow
    edits = sorted(
        [_drop(flow, s) for s in subtractions] + [drop_rescale(flow, r) for r in rescaled]
    )
    if any(a.end > b.start for a, b in itertools.pairwise(edits)):
        return
    shape = typing.safe_shape(sides(subtractions[0])[1])
    unstable = cancellation.cancels(
        dict.fromkeys(subtractions, SHIFTED),
        Factor(shape),
        {r.whole: r.running for r in rescaled},
    )
    yield Site(
        edits=tuple(edits),
        line=flow.kernel.module.line(subtractions[0]),
        detail="every exponential is taken without the maximum, and nothing is rescaled",
        observable_by=(ObservableBy.VALUES,),
        reveal=(Reveal.LARGE_MAGNITUDE,) if unstable else (Reveal.ANY,),
        variant="linked",
    )


_ONE_BLOCK = """\
@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
    {lines}
    tl.store(y_ptr + cols, e / tl.sum(e, axis=0), mask=cols < N)
"""
_ONLINE = """\
@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    m, d = float("-inf"), 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        d = {sum}
        m = m_new
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
        tl.store(y_ptr + cols, {out} / d, mask=cols < N)
"""


def _one_block(*lines: str) -> str:
    return _ONE_BLOCK.format(lines="\n    ".join(lines))


_SUM = "d * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)"
_OUT = "tl.exp(x - m)"

OPERATOR = Operator(
    name="missing-max-subtraction",
    bug_class="exp-instability",
    summary="An exponential is taken without subtracting the maximum first.",
    evidence="textbook; nearest field case: fla-org/flash-linear-attention#122 (an exponential "
    "without its guard overflows)",
    find=find,
    applies=(
        Example(
            _one_block("e = tl.exp(x - tl.max(x, axis=0))"),
            (_one_block("e = tl.exp(x)"),),
        ),
        Example(
            _one_block("x -= tl.max(x, axis=0)", "e = tl.math.exp2(1.4426950408889634 * x)"),
            (_one_block("pass", "e = tl.math.exp2(1.4426950408889634 * x)"),),
        ),
        Example(
            _ONLINE.format(sum=_SUM, out=_OUT),
            (
                _ONLINE.format(sum="d * tl.exp(m - m_new) + tl.sum(tl.exp(x), axis=0)", out=_OUT),
                _ONLINE.format(sum=_SUM, out="tl.exp(x)"),
                _ONLINE.format(sum="d + tl.sum(tl.exp(x), axis=0)", out="tl.exp(x)"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def centred(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    m = tl.sum(x, axis=0) / N
    tl.store(y_ptr + cols, tl.exp(x - m), mask=cols < N)
""",
        """\
@triton.jit
def below(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
    tl.store(y_ptr + cols, x - tl.max(x, axis=0), mask=cols < N)
""",
    ),
)
