"""A reduction runs along the wrong axis, or over the whole tile."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.cancellation import Cancellation, Factor
from gatecert.operators.facts.changes import SHIFTED
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_argument, replace
from gatecert.operators.facts.kernel import KernelSyntax, ModuleSyntax
from gatecert.operators.facts.language import REDUCTIONS, Role
from gatecert.operators.facts.shapes import Supposition, Typing, integer
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_ASSOCIATIVE = frozenset({"sum", "max", "min", "xor_sum"})
"""Reductions that may run along one axis after the other, in any order."""


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Reductions of tiles with two or more dims, where the wrong result still fits its uses.

    Variants: `axis` (another axis, with the broadcasts of the result turned where that is
    needed to fit), `all` (the whole tile), `broadcast` (the result broadcast along the wrong
    axis). A mutant whose shapes do not agree for every block size would not compile and is
    not planted, nor one of a reduction that the analysis cannot follow, nor one that another
    reduction makes up for: the sum of sums is the whole sum along either axis first.
    """
    facts = analysis(kernel)
    flow, typing, cancellation = facts.flow, facts.typing, facts.cancellation
    for node in flow.expressions():
        if not isinstance(node, cst.Call) or flow.call_name(node) not in REDUCTIONS:
            continue
        axis_argument = flow.argument(node, "axis")
        operand = flow.argument(node, "input")
        if axis_argument is None or axis_argument.arg is None or operand is None:
            continue
        axis, shape = integer(axis_argument.value), typing.safe_shape(operand.value)
        if axis is None or shape is None or len(shape) < 2 or not flow.reaches_output(node):
            continue
        if typing.conflicts & flow.forward(node) or _is_reduced_further(typing, node):
            continue
        yield from _sites(typing, cancellation, node, axis_argument.arg, axis, len(shape))


def _sites(
    typing: Typing,
    cancellation: Cancellation,
    node: cst.Call,
    arg: cst.Arg,
    axis: int,
    rank: int,
) -> Iterator[Site]:
    module = typing.flow.kernel.module
    for variant, detail, suppositions in _plans(typing, node, axis, rank):
        fitting = (s for s in suppositions if not typing.new_conflicts(s))
        supposition = next(fitting, None)
        if supposition is not None:
            yield Site(
                edits=tuple(sorted(_edits(typing.flow, node, arg, supposition))),
                line=module.line(node),
                detail=detail,
                observable_by=(ObservableBy.VALUES,),
                reveal=_reveal(typing, cancellation, node, variant, axis),
                variant=variant,
            )


def _is_reduced_further(typing: Typing, node: cst.Call) -> bool:
    """Whether all that becomes of a result is the same reduction over the axes that are left.

    A factor that all lanes share may come in between where the reduction is a sum.
    """
    flow = typing.flow
    name = flow.call_name(node)
    again = False
    queue: list[cst.CSTNode] = [node]
    seen: set[cst.CSTNode] = {node}
    while queue:
        for role, following in flow.outputs(queue.pop()):
            if following in seen:
                continue
            seen.add(following)
            if flow.call_name(following) == name and typing.safe_shape(following) == ():
                again = True
            elif role is Role.VALUE and _hands_on(typing, name, following):
                queue.append(following)
            else:
                return False
    return again and name in _ASSOCIATIVE


def _hands_on(typing: Typing, reduction: str, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Name) or typing.flow.call_name(node) == "to":
        return True
    if reduction != "sum" or not isinstance(node, cst.BinaryOperation):
        return False
    left, right = typing.safe_shape(node.left), typing.safe_shape(node.right)
    if isinstance(node.operator, cst.Multiply):
        return () in (left, right)
    return isinstance(node.operator, cst.Divide) and right == ()


def _plans(
    typing: Typing, node: cst.Call, axis: int, rank: int
) -> Iterator[tuple[str, str, tuple[Supposition, ...]]]:
    """(variant, detail, ways to plant it, the smallest first)."""
    broadcasts = frozenset[cst.CSTNode](_broadcasts(typing, node))
    other = _other_axis(axis, rank)
    yield "axis", f"reduced along axis {other} instead of {axis}", (
        Supposition({node: other}), Supposition({node: other}, turned=broadcasts),
    )  # fmt: skip
    if typing.flow.argument(node, "keep_dims") is None:
        yield "all", "reduced over the whole tile", (
            Supposition({node: None}), Supposition({node: None}, bare=broadcasts),
        )  # fmt: skip
    if broadcasts:
        turned = Supposition(turned=broadcasts)
        yield "broadcast", "the result is broadcast along the wrong axis", (turned,)


def _edits(
    flow: Dataflow, node: cst.Call, arg: cst.Arg, supposition: Supposition
) -> Iterator[Edit]:
    """The edits that make a supposition true."""
    module = flow.kernel.module
    for axis in supposition.axes.values():
        if axis is None:
            yield drop_argument(module, node, arg)
        else:
            yield replace(module, arg.value, str(axis))
    for broadcast in supposition.turned | supposition.bare:
        assert isinstance(broadcast, cst.Subscript)
        if broadcast in supposition.turned:
            yield _turn(module, broadcast)
        else:
            end = module.inner_span(broadcast)[1]
            yield Edit(module.span(broadcast.value)[1], end, "")


def _other_axis(axis: int, rank: int) -> int:
    """The neighbouring axis, spelled like the given one (negative stays negative)."""
    other = (axis % rank + 1) % rank if axis % rank + 1 < rank else axis % rank - 1
    return other - rank if axis < 0 else other


def _broadcasts(typing: Typing, node: cst.Call) -> list[cst.Subscript]:
    """`[:, None]` and `[None, :]` on the reduction's result, seen through elementwise steps."""
    flow = typing.flow
    reduced = typing.safe_shape(node)
    if reduced is None or len(reduced) != 1:
        return []
    found: list[cst.Subscript] = []
    seen: set[cst.CSTNode] = set()
    queue: list[cst.CSTNode] = [node]
    while queue:
        for role, following in flow.outputs(queue.pop()):
            if role is not Role.VALUE or following in seen:
                continue
            seen.add(following)
            if isinstance(following, cst.Subscript) and _is_broadcast(following):
                found.append(following)
            elif typing.safe_shape(following) == reduced:
                queue.append(following)
    return found


def _is_broadcast(node: cst.Subscript) -> bool:
    parts = [e.slice for e in node.slice]
    return len(parts) == 2 and sum(isinstance(p, cst.Slice) for p in parts) == 1


def _turn(module: ModuleSyntax, node: cst.Subscript) -> Edit:
    """Exchange the two parts of a broadcast."""
    first, last = node.slice[0].slice, node.slice[1].slice
    text = "None, :" if isinstance(first, cst.Slice) else ":, None"
    return Edit(module.span(first)[0], module.span(last)[1], text)


def _reveal(
    typing: Typing, cancellation: Cancellation, node: cst.Call, variant: str, axis: int
) -> tuple[Reveal, ...]:
    """Several rows; where a maximum over too much only shifts exponents, it also takes values
    so far apart that they underflow."""
    operand = typing.flow.argument(node, "input")
    shape = None if operand is None else typing.safe_shape(operand.value)
    if variant == "all" and typing.flow.call_name(node) == "max" and shape is not None:
        kept = list(shape)
        kept[axis % len(shape)] = "1"
        if cancellation.cancels({node: SHIFTED}, Factor(tuple(kept))):
            return (Reveal.SEVERAL_ROWS, Reveal.LARGE_MAGNITUDE)
    return (Reveal.SEVERAL_ROWS,)


_SOFTMAX = """\
@triton.jit
def softmax(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=float("-inf"))
    e = tl.exp(x - {max})
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], e / {sum}, mask=mask)
"""
_MAX, _SUM = "tl.max(x, axis=1)[:, None]", "tl.sum(e, 1)[:, None]"
_ROWSUM = """\
@triton.jit
def rowsum(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=0.0)
        total += {sum}
    tl.store(y_ptr + rows, total, mask=rows < M)
"""

OPERATOR = Operator(
    name="wrong-reduction-axis",
    bug_class="reduction-axis",
    summary="A tile is reduced along another axis, or over all of it, or broadcast back wrongly.",
    evidence="flagos-ai/FlagGems#59 (the whole tile instead of one axis), "
    "fla-org/flash-linear-attention#850 and @31293264 (wrong axis)",
    find=find,
    version=2,
    applies=(
        Example(
            _SOFTMAX.format(max=_MAX, sum=_SUM),
            (
                _SOFTMAX.format(max="tl.max(x, axis=0)[None, :]", sum=_SUM),
                _SOFTMAX.format(max="tl.max(x)", sum=_SUM),
                _SOFTMAX.format(max=_MAX, sum="tl.sum(e, 0)[None, :]"),
                _SOFTMAX.format(max=_MAX, sum="tl.sum(e)"),
            ),
        ),
        Example(
            _ROWSUM.format(sum="x.sum(axis=-1)"),
            (_ROWSUM.format(sum="x.sum()"),),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def total(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + cols), axis=0))
""",
        """\
@triton.jit
def everything(x_ptr, y_ptr, B: tl.constexpr):
    grid = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + grid)))
""",
    ),
)
