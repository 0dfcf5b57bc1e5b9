"""A mask compares an index with the size of another dimension."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.bounds import Bound, bounds
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.elements import FALSE, TRUE
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.values import Change, ChangeKind
from gatecert.operators.records import Example, ObservableBy, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per bound comparison, if another size bounds something else in the kernel.

    The size put in is the next other one in the order of definition, cyclically. Where it is
    the larger, lanes past the end get through; where it is the smaller, real lanes are lost.
    Both depend on the dims, so what either shows is what the bug shows.
    """
    facts = analysis(kernel)
    found = [(bound, _size(facts.flow, bound)) for bound in bounds(facts.memory)]
    sizes = _in_order(facts.flow, [name for _, name in found if name is not None])
    for bound, name in found:
        other = None if name is None else _next(facts.flow, sizes, name)
        if name is None or other is None:
            continue
        labels = _labels(facts, bound)
        yield Site(
            edits=(replace(kernel.module, name, other),),
            line=kernel.module.line(bound.node),
            detail=f"bound {other} for {name.value}: mask of the {bound.used}",
            observable_by=labels[0],
            reveal=labels[1],
        )


def _labels(facts: Analysis, bound: Bound) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    change = Change(ChangeKind.COMPARISON_FLIPPED, bound.node, bound.target)
    wide, narrow = (facts.memory.effect(change, bound.terms, truth) for truth in (FALSE, TRUE))
    observable_by, _ = (wide | narrow).labels()
    if not observable_by:
        return (), ()
    if narrow.values is None:
        return observable_by, (Reveal.TAIL, Reveal.NON_SQUARE)
    return observable_by, (Reveal.NON_SQUARE,)


def _size(flow: Dataflow, bound: Bound) -> cst.Name | None:
    """The size in a bound: its first addend that is a scalar parameter or a local of its own."""
    if bound.standing:
        return None
    return next((name for name in _addends(bound.bound) if _definition(flow, name)), None)


def _addends(node: cst.BaseExpression) -> Iterator[cst.Name]:
    if isinstance(node, cst.Name):
        yield node
    elif isinstance(node, cst.BinaryOperation) and isinstance(
        node.operator, cst.Add | cst.Subtract
    ):
        yield from _addends(node.left)
        if isinstance(node.operator, cst.Add):
            yield from _addends(node.right)


def _definition(flow: Dataflow, name: cst.Name) -> Definition | None:
    """Where a size gets its value: once, and not by counting."""
    found = flow.reaching(name)
    kinds = (DefinitionKind.PARAMETER, DefinitionKind.ASSIGNED)
    return found[0] if len(found) == 1 and found[0].kind in kinds else None


def _in_order(flow: Dataflow, names: list[cst.Name]) -> tuple[Definition, ...]:
    """The definitions of sizes, each once, as the kernel defines them."""
    found = {_definition(flow, name) for name in names}
    return tuple(definition for definition in flow.definitions() if definition in found)


def _next(flow: Dataflow, sizes: tuple[Definition, ...], name: cst.Name) -> str | None:
    """The next size after this one that is known where this one is used, and another."""
    mine = _definition(flow, name)
    assert mine is not None
    place = sizes.index(mine)
    for other in (*sizes[place + 1 :], *sizes[:place]):
        if other.name != name.value and _visible(flow, other, name) and not _alike(
            flow, other, mine
        ):  # fmt: skip
            return other.name
    return None


def _visible(flow: Dataflow, definition: Definition, use: cst.Name) -> bool:
    """Whether a definition surely holds at a use, and no other of that name does."""
    if len(flow.definitions(definition.name)) != 1:
        return False
    if definition.kind is DefinitionKind.PARAMETER:
        return True
    module = flow.kernel.module
    block = module.parents[definition.node]
    while not isinstance(block, cst.BaseSuite):
        block = module.parents[block]
    above: cst.CSTNode = use
    while above is not flow.kernel.function and above is not block:
        above = module.parents[above]
    return above is block and module.span(definition.node)[1] <= module.span(use)[0]


def _alike(flow: Dataflow, one: Definition, other: Definition) -> bool:
    """Whether one size is only a copy of the other."""

    def root(definition: Definition) -> object:
        value = None if definition.value is None else flow.resolve(definition.value)
        if isinstance(value, cst.Name) and len(flow.reaching(value)) == 1:
            return flow.reaching(value)[0]
        return definition if value is None else value

    return root(one) is root(other)


_MATMUL = """\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    rn = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a_lanes = tl.arange(0, BK)[None, :] < K - k
        a = tl.load(a_ptr + rm * K + k + tl.arange(0, BK)[None, :], mask=a_lanes, other=0.0)
        b = tl.load(b_ptr + (k + tl.arange(0, BK)[:, None]) * N + rn)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rm * N + rn, acc, mask=(rm < M) & (N > rn))
"""
_PACKED = """\
@triton.jit
def packed(x_ptr, start_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    seq = tl.program_id(0)
    start = tl.load(start_ptr + seq)
    length = tl.load(start_ptr + seq + 1) - start
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    offsets = (start + rows) * n_cols + cols
    x = tl.load(x_ptr + offsets, mask=rows < length, other=0.0)
    tl.store(out_ptr + offsets, x, mask=cols < n_cols)
"""

OPERATOR = Operator(
    name="swapped-mask-bound",
    bug_class="mask-bound-wrong",
    summary="A mask compares an index with the size of another dimension.",
    evidence="flash-linear-attention #1105, #907; FlagGems #413, #943, #4985; AITER #3259",
    find=find,
    applies=(
        Example(
            _MATMUL,
            (
                _MATMUL.replace("< K - k", "< M - k"),
                _MATMUL.replace("rm < M", "rm < N"),
                _MATMUL.replace("N > rn", "K > rn"),
            ),
        ),
        Example(
            _PACKED,
            (
                _PACKED.replace("rows < length", "rows < n_cols"),
                _PACKED.replace("cols < n_cols", "cols < length"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x, mask=offs < n)
""",
        """\
@triton.jit
def lower(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + cols, mask=(cols < n) & (cols <= row), other=0.0)
    tl.store(y_ptr + row * stride + cols, x, mask=cols < n)
""",
    ),
)
