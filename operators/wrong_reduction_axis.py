"""A reduction runs along the wrong axis, or over the whole tile."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst import ParserSyntaxError

from gatecert.operators.facts.cancellation import SHIFTED, Cancellation, Factor
from gatecert.operators.facts.dataflow import Dataflow, analyse
from gatecert.operators.facts.edits import drop_argument, replace
from gatecert.operators.facts.kernel import KernelSyntax, ModuleSyntax, parse_module
from gatecert.operators.facts.language import REDUCTIONS, Role
from gatecert.operators.facts.shapes import Typing, conflicts, integer
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Reductions of tiles with two or more dims, where the wrong result still fits its uses.

    Variants: `axis` (another axis, with the broadcasts of the result turned where that is
    needed to fit), `all` (the whole tile), `broadcast` (the result broadcast along the wrong
    axis). A mutant whose shapes do not agree for every block size would not compile and is
    not planted.
    """
    flow = analyse(kernel)
    typing = Typing(flow)
    if conflicts(flow):
        return  # the analysis cannot follow this kernel's shapes
    cancellation = Cancellation(typing)
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
        yield from _sites(typing, cancellation, node, axis_argument.arg, axis, len(shape))


def _sites(
    typing: Typing,
    cancellation: Cancellation,
    node: cst.Call,
    arg: cst.Arg,
    axis: int,
    rank: int,
) -> Iterator[Site]:
    flow = typing.flow
    module = flow.kernel.module
    broadcasts = _broadcasts(typing, node)
    turned = [_turn(module, s) for s in broadcasts]
    other = _other_axis(axis, rank)
    swap = replace(module, arg.value, str(other))
    plans: list[tuple[str, str, list[list[Edit]]]] = [
        ("axis", f"reduced along axis {other} instead of {axis}", [[swap], [swap, *turned]]),
    ]
    if flow.argument(node, "keep_dims") is None:
        whole = drop_argument(module, node, arg)
        bare = [Edit(module.span(s.value)[1], module.inner_span(s)[1], "") for s in broadcasts]
        plans.append(("all", "reduced over the whole tile", [[whole], [whole, *bare]]))
    plans.append(("broadcast", "the result is broadcast along the wrong axis", [turned]))
    for variant, detail, choices in plans:
        edits = next((e for e in choices if e and _fits(flow, e)), None)
        if edits is None:
            continue
        yield Site(
            edits=tuple(sorted(set(edits))),
            line=module.line(node),
            detail=detail,
            observable_by=(ObservableBy.VALUES,),
            reveal=_reveal(typing, cancellation, node, variant, axis),
            variant=variant,
        )


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


def _fits(flow: Dataflow, edits: Sequence[Edit]) -> bool:
    """Whether every shape of the edited kernel still agrees."""
    module, function = flow.kernel.module, flow.kernel.function
    start, end = module.inner_span(function)
    text = module.text[start:end]
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start - start] + edit.text + text[edit.end - start :]
    indent = " " * module.inner[function].start.column
    try:
        alone = parse_module(textwrap.dedent(indent + text))
    except ParserSyntaxError:
        return False
    edited = next(n for n in alone.tree.body if isinstance(n, cst.FunctionDef))
    kernel = KernelSyntax(alone, edited, flow.kernel.qualname, flow.kernel.language_names)
    return not conflicts(analyse(kernel, flow.words))


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


_SOFTMAX = '''\
@triton.jit
def softmax(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :], mask=mask, other=float("-inf"))
    e = tl.exp(x - {max})
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], e / {sum}, mask=mask)
'''
_MAX, _SUM = "tl.max(x, axis=1)[:, None]", "tl.sum(e, 1)[:, None]"
_ROWSUM = '''\
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
'''

OPERATOR = Operator(
    name="wrong-reduction-axis",
    bug_class="reduction-axis",
    summary="A tile is reduced along another axis, or over all of it, or broadcast back wrongly.",
    evidence="flagos-ai/FlagGems#59 (the whole tile instead of one axis), "
    "fla-org/flash-linear-attention#850 and @31293264 (wrong axis)",
    find=find,
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
        '''\
@triton.jit
def total(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + cols), axis=0))
''',
        '''\
@triton.jit
def everything(x_ptr, y_ptr, B: tl.constexpr):
    grid = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + grid)))
''',
    ),
)
