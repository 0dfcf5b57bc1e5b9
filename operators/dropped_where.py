"""Lanes that a select neutralises keep what they hold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.conditions import deciding, is_index, let_through, snippet
from gatecert.operators.facts.edits import stand_in
from gatecert.operators.facts.elements import SENTINEL, Lane
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.values import Change, ChangeKind, Conjunct
from gatecert.operators.records import Example, Operator, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per select that puts a constant into lanes that an index decides about.

    Padding past a bound, scores that a causal or window mask hides, rows that are ignored:
    values, where those lanes get to an output. Where they are never used, or hold that very
    constant anyhow, nothing shows. Conditions on data (`x > 0`) mask nothing.
    """
    facts = analysis(kernel)
    flow = facts.flow
    for call in flow.calls("where"):
        parts = {argument.parameter: argument.value for argument in flow.arguments(call)}
        if not parts.keys() >= {"condition", "x", "y"}:
            continue
        for name, other, truth in (("x", "y", False), ("y", "x", True)):
            pad = _constant(facts, parts[other])
            where = deciding(flow, facts.memory, parts["condition"], truth)
            if pad is None or not _is_tile(facts, call, parts[name]):
                continue
            if not any(_neutralises(facts, one.term, pad) for one in where):
                continue
            change = Change(ChangeKind.REPLACED, call, part=parts[name])
            # A mask that a caller made decides here too, and no select leaves a buffer.
            own = [replace(one, term=replace(one.term, foreign=False)) for one in where]
            labels = let_through(facts, change, own)
            yield Site(
                edits=(stand_in(kernel.module, call, parts[name]),),
                line=kernel.module.line(call),
                detail=f"`{snippet(flow, parts[name])}` is no longer set to "
                f"{flow.source(parts[other])} where {_words(truth)}",
                observable_by=labels[0],
                reveal=labels[1],
            )
            break


def _words(truth: bool) -> str:
    return "the condition holds" if truth else "the condition does not hold"


def _constant(facts: Analysis, node: cst.CSTNode) -> float | None:
    """A number that sums, products or maxima pass over."""
    value = facts.memory.value(node)
    if value is None or value.placed or isinstance(value.before, Lane):
        return None
    known = value.before in (0.0, 1.0, math.inf) or abs(value.before) >= -SENTINEL
    return value.before if known else None


def _is_tile(facts: Analysis, call: cst.CSTNode, kept: cst.CSTNode) -> bool:
    """Whether what stays has the shape of the whole, and is no constant itself."""
    value = facts.memory.value(kept)
    if value is None or not (isinstance(value.before, Lane) or value.placed):
        return False
    whole, part = facts.typing.safe_shape(call), facts.typing.safe_shape(kept)
    return whole is None or part is None or whole == part


def _neutralises(facts: Analysis, term: Conjunct, pad: float) -> bool:
    """Whether a term is about places and not about what data are worth.

    It compares an index, tells values from memory from one that stands for "none", or is a mask
    from memory that hides scores.
    """
    if abs(pad) >= -SENTINEL and (term.loaded or term.foreign):
        return True
    if term.node is None:
        return False
    left = term.node.comparisons[term.target - 1].comparator if term.target else term.node.left
    right = term.node.comparisons[term.target].comparator
    ignored = term.loaded and not term.bound and _tells_none(term.node.comparisons[term.target])
    return ignored or is_index(facts, left) or is_index(facts, right)


def _tells_none(target: cst.ComparisonTarget) -> bool:
    return isinstance(target.operator, cst.NotEqual) and isinstance(target.comparator, cst.Name)


_LAYER_NORM = """\
@triton.jit
def layer_norm(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(cols < n, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n)
    rstd *= 1 + tl.sum(tl.where(cols >= n, 0.0, x - mean), axis=0)
    tl.store(y_ptr + cols, centred * rstd, mask=cols < n)
"""
_ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, bias_ptr, label_ptr, out_ptr, n, ignored, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    q = tl.load(q_ptr + rows[:, None] * BLOCK + cols[None, :])
    k = tl.load(k_ptr + cols[:, None] * BLOCK + rows[None, :])
    s = tl.where((cols[None, :] < n) & (rows[:, None] >= cols[None, :]), tl.dot(q, k), -1.0e6)
    seen = tl.load(bias_ptr + rows[:, None] * BLOCK + cols[None, :])
    s = tl.where(seen != 0, s, float("-inf"))
    top = tl.max(s, axis=1)
    label = tl.load(label_ptr + rows)
    tl.store(out_ptr + rows, tl.where(label != ignored, top, 0.0))
"""

OPERATOR = Operator(
    name="dropped-where",
    bug_class="pad-not-reneutralised",
    summary="Lanes that a select sets to a neutral constant keep what they hold.",
    evidence="linkedin/Liger-Kernel#582; flash-linear-attention 4889a8b9, d7150bf9; AITER #4711",
    find=find,
    applies=(
        Example(
            _LAYER_NORM,
            (
                _LAYER_NORM.replace("tl.where(cols < n, x - mean, 0.0)", "x - mean"),
                _LAYER_NORM.replace("tl.where(cols >= n, 0.0, x - mean)", "x - mean"),
            ),
        ),
        Example(
            _ATTENTION,
            (
                _ATTENTION.replace(
                    "tl.where((cols[None, :] < n) & (rows[:, None] >= cols[None, :]), "
                    "tl.dot(q, k), -1.0e6)",
                    "tl.dot(q, k)",
                ),
                _ATTENTION.replace('tl.where(seen != 0, s, float("-inf"))', "s"),
                _ATTENTION.replace("tl.where(label != ignored, top, 0.0)", "top"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, tl.where(x > 0, x, 0.0), mask=offs < n)
""",
        """\
@triton.jit
def dropout(x_ptr, y_ptr, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = tl.where(tl.rand(seed, offs) > p, x / (1 - p), 0.0)
    tl.store(y_ptr + offs, tl.where(offs % 2 == 0, 1.0, 0.0) * y)
""",
    ),
)
