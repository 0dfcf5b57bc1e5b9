"""The running sum of an online softmax is not brought to the new maximum."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_statement, keep, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.softmax import Rescale
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Products of a running value with exp(old maximum - new maximum), however spelled."""
    facts = analysis(kernel)
    flow = facts.flow
    for rescale in facts.rescales:
        if not flow.reaches_output(rescale.whole):
            continue
        yield Site(
            edits=(drop_rescale(flow, rescale),),
            line=kernel.module.line(rescale.whole),
            detail="the running value keeps the scale of the old maximum",
            observable_by=(ObservableBy.VALUES,),
            reveal=(Reveal.RISING, Reveal.SEVERAL_BLOCKS),
        )


def drop_rescale(flow: Dataflow, rescale: Rescale) -> Edit:
    """The edit that leaves the running value as it was."""
    module = flow.kernel.module
    whole = rescale.whole
    if isinstance(whole, cst.AugAssign):
        return drop_statement(module, whole)
    if isinstance(whole, cst.Call):
        addend = flow.arguments(whole)[2].value
        return replace(
            module, whole, f"({module.source(rescale.running)} + {module.source(addend)})"
        )
    return keep(module, whole, rescale.running)


_ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, N, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rm, rn, rd = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + rm[:, None] * D + rd[None, :])
    top = tl.full((BM,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    out = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, N, BN):
        cols = start + rn
        k = tl.load(k_ptr + cols[None, :] * D + rd[:, None], mask=cols[None, :] < N, other=0.0)
        v = tl.load(v_ptr + cols[:, None] * D + rd[None, :], mask=cols[:, None] < N, other=0.0)
        s = tl.where(cols[None, :] < N, tl.dot(q, k), float("-inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p = {exp}(s - higher[:, None])
        shrink = {exp}(top - higher)
        {lines}
        top = higher
    tl.store(o_ptr + rm[:, None] * D + rd[None, :], out / total[:, None])
"""


def _attention(*lines: str, exp: str = "tl.exp") -> str:
    return _ATTENTION.format(exp=exp, lines="\n        ".join(lines))


_SUM = "total = total * shrink + tl.sum(p, 1)"
_SUM_BUG = "total = total + tl.sum(p, 1)"
_FMA = "total = tl.fma(total, shrink, tl.sum(p, 1))"
_SCALE = "out *= shrink[:, None]"
_ADD = "out += tl.dot(p, v)"
_FUSED = "out = tl.dot(p, v, out * shrink[:, None])"

OPERATOR = Operator(
    name="missing-rescale",
    bug_class="online-rescale",
    summary="A running value of an online softmax is not rescaled when its maximum rises.",
    evidence="textbook; nearest field cases: flagos-ai/FlagGems#330 and "
    "facebookresearch/xformers@63d7f30b (guards of the same rescale)",
    find=find,
    applies=(
        Example(
            _attention(_SUM, _SCALE, _ADD),
            (_attention(_SUM_BUG, _SCALE, _ADD), _attention(_SUM, "pass", _ADD)),
        ),
        Example(
            _attention(_SUM, _FUSED, exp="tl.math.exp2"),
            (
                _attention(_SUM_BUG, _FUSED, exp="tl.math.exp2"),
                _attention(_SUM, "out = tl.dot(p, v, out)", exp="tl.math.exp2"),
            ),
        ),
        Example(
            _attention(_FMA, _FUSED),
            (
                _attention("total = (total + tl.sum(p, 1))", _FUSED),
                _attention(_FMA, "out = tl.dot(p, v, out)"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def softmax(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
    alpha = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + cols, alpha / tl.sum(alpha, axis=0), mask=cols < N)
""",
        """\
@triton.jit
def decay(x_ptr, y_ptr, N, rate):
    state = 0.0
    for i in range(0, N):
        alpha = tl.exp(-rate)
        state = state * alpha + tl.load(x_ptr + i)
        tl.store(y_ptr + i, state)
""",
    ),
)
