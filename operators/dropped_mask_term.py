"""One term of a mask is dropped: the tail of one dimension is no longer cut off."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.conditions import (
    Deciding,
    below,
    clauses,
    effect,
    is_index,
    is_runtime,
    let_through,
    snippet,
)
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_statement, keep, stand_in
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.values import Change, ChangeKind, Conjunct, Value, sum_text, terms
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_Labels = tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]
_UNKNOWN: _Labels = ((ObservableBy.VALUES, ObservableBy.BOUNDS), (Reveal.TAIL,))


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per term of a mask or of a select's condition, and per clamp of an address.

    A dropped bound lets lanes past the end through: bounds, and values as far as those lanes
    get. Another term (causal, of a segment) shows in values. A term that another mask repeats
    shows in nothing.
    """
    facts = analysis(kernel)
    sites = [*_terms(facts), *_clamps(facts)]
    yield from sorted(sites, key=lambda site: site.edits)


def _terms(facts: Analysis) -> Iterator[Site]:
    flow = facts.flow
    for node in flow.expressions():
        if not _decides_lanes(flow, node):
            continue
        for dropped, edit in _dropped(flow, node):
            value = facts.memory.value(dropped)
            if not is_runtime(flow, dropped) or (value is not None and _always(value)):
                continue
            change = Change(ChangeKind.REPLACED, dropped)
            labels = _UNKNOWN
            if value is not None:
                labels = let_through(facts, change, map(Deciding, terms(value)))
            yield Site(
                edits=(edit,),
                line=flow.kernel.module.line(dropped),
                detail=f"the mask loses `{snippet(flow, dropped)}`",
                observable_by=labels[0],
                reveal=labels[1],
            )


def _dropped(flow: Dataflow, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, Edit]]:
    module = flow.kernel.module
    if isinstance(node, cst.AugAssign):
        if isinstance(node.operator, cst.BitAndAssign):
            yield node.value, drop_statement(module, node)
        return
    for clause in clauses(flow, node):
        if clause.conjunction:
            yield clause.dropped, keep(module, clause.whole, clause.left)


def _decides_lanes(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is the mask of an access or the condition of a select."""
    for reached in (node, *flow.forward(node)):
        for role, holder in flow.outputs(reached):
            if role is Role.MASK or (role is Role.CONDITION and flow.call_name(holder) == "where"):
                return True
    return False


def _always(value: Value) -> bool:
    """Whether a term is a lower bound of zero on what is never negative."""
    return bool(value.conjuncts) and all(
        term.negated
        and term.bound == sum_text(())
        and all(f > 0 and (not a or "arange(0," in a) for a, f in term.addends)
        for term in value.conjuncts
    )


def _clamps(facts: Analysis) -> Iterator[Site]:
    flow = facts.flow
    for call in flow.calls("minimum", "builtins.min"):
        parts = [argument.value for argument in flow.arguments(call)]
        if len(parts) != 2 or Role.ADDRESS not in flow.sinks(call):
            continue
        for index, bound in (parts, reversed(parts)):
            if not is_index(facts, index) or is_index(facts, bound):
                continue
            term = _clamp(facts, index, bound)
            if any(factor < 0 and addend for addend, factor in term.addends):
                continue  # what is left of a size, and no place
            change = Change(ChangeKind.REPLACED, call, part=index)
            observable_by, reveal = effect(facts, change, (Deciding(term),)).labels()
            yield Site(
                edits=(stand_in(flow.kernel.module, call, index),),
                line=flow.kernel.module.line(call),
                detail=f"an index is no longer kept at or below `{snippet(flow, bound)}`",
                observable_by=observable_by,
                reveal=reveal,
                variant="clamp",
            )


def _clamp(facts: Analysis, index: cst.CSTNode, bound: cst.CSTNode) -> Conjunct:
    inside, last = facts.memory.value(index), facts.memory.value(bound)
    assert inside is not None
    return below(inside, last or Value(facts.flow.source(bound)), inclusive=True)


_TILE = """\
@triton.jit
def tile(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], x, mask=mask)
"""
_CAUSAL = """\
@triton.jit
def causal(s_ptr, out_ptr, n, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    keep = cols < n
    keep &= rows >= cols
    last = tl.minimum(rows, n - 1)
    s = tl.load(s_ptr + last * n + cols, mask=cols < n, other=0.0)
    s = tl.where(keep & (rows < n), s, float("-inf"))
    tl.store(out_ptr + rows, tl.max(s, axis=1)[:, None], mask=rows < n)
"""

OPERATOR = Operator(
    name="dropped-mask-term",
    bug_class="mask-term-missing",
    summary="One term of a mask, or the clamp of an index, is missing.",
    evidence="flash-linear-attention #1143, #423; AITER #3278; FlagGems #4881",
    find=find,
    applies=(
        Example(
            _TILE,
            (
                _TILE.replace(
                    "= (rows[:, None] < M) & (cols[None, :] < N)", "= (cols[None, :] < N)"
                ),
                _TILE.replace(
                    "= (rows[:, None] < M) & (cols[None, :] < N)", "= (rows[:, None] < M)"
                ),
            ),
        ),
        Example(
            _CAUSAL,
            (
                _CAUSAL.replace("keep &= rows >= cols", "pass"),
                _CAUSAL.replace("tl.minimum(rows, n - 1)", "rows"),
                _CAUSAL.replace("keep & (rows < n)", "(rows < n)"),
                _CAUSAL.replace("keep & (rows < n)", "keep"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def unpack(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr + offs, (x >> 4) & 15, mask=offs < n)
""",
        """\
@triton.jit
def guarded(x_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if (pid < n) & (pid < m):
        x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
        tl.store(out_ptr + pid, tl.sum(tl.minimum(x, 6.0)))
""",
    ),
)
