"""A comparison of two indices takes its boundary in, or leaves it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.conditions import is_index, is_place, snippet
from gatecert.operators.facts.elements import FALSE, TRUE
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import mask_terms
from gatecert.operators.facts.values import AccessKind, Change, ChangeKind, Conjunct, ConjunctKind
from gatecert.operators.records import Edit, Example, Operator, Site

_FLIPPED: Mapping[type[cst.BaseCompOp], str] = {
    cst.LessThan: "<=",
    cst.LessThanEqual: "<",
    cst.GreaterThan: ">=",
    cst.GreaterThanEqual: ">",
}


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per comparison of two indices in a mask or a select.

    Neither side is a size: causal masks, windows, labels within a tile. On the diagonal an
    element is lost or let through: values, unless another mask says the same. A bound at which
    the program stands (`cols <= row`) is left to mask-bound-off-by-one, which moves it too.
    """
    facts = analysis(kernel)
    for (node, target), terms in _comparisons(facts).items():
        operator = node.comparisons[target].operator
        text = _FLIPPED[type(operator)]
        start, end = kernel.module.inner_span(operator)
        # Where the two are equal, a strict comparison is false and the other is true.
        truth = FALSE if text in ("<=", ">=") else TRUE
        change = Change(ChangeKind.COMPARISON_FLIPPED, node, target)
        observable_by, reveal = facts.memory.effect(change, terms, truth).labels()
        yield Site(
            edits=(Edit(start, end, text),),
            line=kernel.module.line(node),
            detail=f"`{snippet(facts.flow, node)}` compares by {text}",
            observable_by=observable_by,
            reveal=reveal,
        )


def _comparisons(facts: Analysis) -> dict[tuple[cst.Comparison, int], list[Conjunct]]:
    """Comparisons of indices in masks and conditions, in source order, with their terms."""
    memory, span = facts.memory, facts.flow.kernel.module.span
    found: dict[tuple[cst.Comparison, int], list[Conjunct]] = {}
    for access in memory.guarded(*AccessKind):
        for term in mask_terms(access):
            if term.node is None or not memory.owns(term.node) or not _of_indices(facts, term):
                continue
            known = found.setdefault((term.node, term.target), [])
            if term.key not in [other.key for other in known]:
                known.append(term)
    return {key: found[key] for key in sorted(found, key=lambda key: (span(key[0]), key[1]))}


def _of_indices(facts: Analysis, term: Conjunct) -> bool:
    assert term.node is not None
    target = term.node.comparisons[term.target]
    left = term.node.comparisons[term.target - 1].comparator if term.target else term.node.left
    sides = (left, target.comparator)
    return (
        type(target.operator) in _FLIPPED
        and term.kind is not ConjunctKind.BOUND
        and any(is_index(facts, side) for side in sides)
        and all(is_place(facts, side) for side in sides)
    )


_CAUSAL = """\
@triton.jit
def causal(s_ptr, out_ptr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    mask = rows[:, None] >= cols[None, :]
    s = tl.load(s_ptr + rows[:, None] * BLOCK + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(s, axis=1))
"""
_WINDOW = """\
@triton.jit
def window(s_ptr, pos_ptr, out_ptr, n, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + rows[:, None] * n + cols[None, :], mask=cols[None, :] < n, other=0.0)
    s = tl.where(rows[:, None] - WINDOW < cols[None, :], s, float("-inf"))
    place = tl.load(pos_ptr + rows)
    s = tl.where((cols[None, :] <= place[:, None]) & (cols[None, :] < n), s, float("-inf"))
    tl.store(out_ptr + rows, tl.max(s, axis=1))
"""

OPERATOR = Operator(
    name="causal-off-by-one",
    bug_class="comparison",
    summary="A causal, window or label comparison takes its boundary in, or leaves it out.",
    evidence="textbook; flash-linear-attention #1105 (tiles that straddle the boundary)",
    find=find,
    applies=(
        Example(_CAUSAL, (_CAUSAL.replace(">=", ">"),)),
        Example(
            _WINDOW,
            (
                _WINDOW.replace("WINDOW < cols", "WINDOW <= cols"),
                _WINDOW.replace("<= place", "< place"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=(offs >= 0) & (offs < n))
    tl.store(y_ptr + offs, tl.where(x > 0, x, 0.0), mask=offs < n)
""",
        """\
@triton.jit
def dropout(x_ptr, y_ptr, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offs) >= p
    tl.store(y_ptr + offs, tl.where(keep, tl.load(x_ptr + offs), 0.0))
""",
    ),
)
