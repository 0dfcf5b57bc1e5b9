"""One bound of a mask is one too large or one too small."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from gatecert.operators.facts.elements import FALSE, TRUE, Lane
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import Memory, bound_terms, buffer_name
from gatecert.operators.facts.values import Access, AccessKind, Change, ChangeKind, Conjunct
from gatecert.operators.records import Edit, Example, Operator, Site

_WIDER: Mapping[type[cst.BaseCompOp], str] = {cst.LessThan: "<=", cst.GreaterThan: ">="}


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Two sites per bound that a load, store, atomic or padding select uses.

    Too wide (`<` becomes `<=`) lets the first lane past the end through: bounds, and values as
    far as that lane gets. Too narrow loses the last real lane: values on any input, unless what
    is lost was never used. A named mask is changed where it is defined, for all its uses.
    """
    memory = Memory(kernel)
    for (node, target), (terms, users) in _bounds(memory).items():
        used = ", ".join(dict.fromkeys(_user(user) for user in users))
        for variant, truth, edits in (
            ("too-wide", FALSE, _wider(kernel, terms[0])),
            ("too-narrow", TRUE, _narrower(kernel, terms[0])),
        ):
            change = Change(ChangeKind.COMPARISON_FLIPPED, node, target)
            observable_by, reveal = memory.effect(change, terms, truth).labels()
            yield Site(
                edits=edits,
                line=kernel.module.line(node),
                detail=f"bound one {variant.replace('-', ' ')}: mask of the {used}",
                observable_by=observable_by,
                reveal=reveal,
                variant=variant,
            )


def _bounds(
    memory: Memory,
) -> dict[tuple[cst.Comparison, int], tuple[list[Conjunct], list[Access]]]:
    """Bound comparisons in source order, each as the terms it makes and the accesses under it.

    It makes several terms in a helper that is called with several indices.
    """
    found: dict[tuple[cst.Comparison, int], tuple[list[Conjunct], list[Access]]] = {}
    for access in memory.guarded(*AccessKind):
        for term in bound_terms(access):
            padding = access.kind is not AccessKind.SELECT or _pads(access)
            if term.node is not None and padding and memory.owns(term.node):
                terms, users = found.setdefault((term.node, term.target), ([], []))
                if term.key not in [known.key for known in terms]:
                    terms.append(term)
                users.append(access)
    module = memory.kernel.module
    return {key: found[key] for key in sorted(found, key=lambda k: (module.span(k[0]), k[1]))}


def _pads(access: Access) -> bool:
    """Whether a select puts one constant into the lanes left out."""
    pad = access.values.get(access.pad_name)
    return pad is not None and not pad.placed and not isinstance(pad.before, Lane)


def _user(access: Access) -> str:
    if access.kind is AccessKind.SELECT:
        return "select"
    return f"{access.kind.value} of {buffer_name(access)}"


def _sides(term: Conjunct) -> tuple[cst.BaseExpression, cst.BaseCompOp, cst.BaseExpression]:
    """The bound of a comparison, its operator, and its right-hand side."""
    assert term.node is not None
    target = term.node.comparisons[term.target]
    left = term.node.left
    if term.target:
        left = term.node.comparisons[term.target - 1].comparator
    return (left if term.bound_first else target.comparator), target.operator, target.comparator


def _wider(kernel: KernelSyntax, term: Conjunct) -> tuple[Edit, ...]:
    """`<` becomes `<=`; a bound that is inclusive already becomes strict and two larger."""
    bound, operator, _ = _sides(term)
    start, end = kernel.module.inner_span(operator)
    text = _WIDER.get(type(operator))
    if text is not None:
        return (Edit(start, end, text),)
    return (_moved(kernel, bound, "+ 1"),)


def _narrower(kernel: KernelSyntax, term: Conjunct) -> tuple[Edit, ...]:
    return (_moved(kernel, _sides(term)[0], "- 1"),)


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
