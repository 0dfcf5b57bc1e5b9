"""A branch that keeps a program from doing what it must not is missing, or lacks a clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from gatecert.operators.facts.analysis import Analysis, analysis
from gatecert.operators.facts.conditions import (
    Clause,
    Deciding,
    deciding,
    effect,
    every_clause,
    is_runtime,
    nested,
    plain_parts,
    snippet,
)
from gatecert.operators.facts.coverage import masks_cover_programs
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import keep, replace, unwrap
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.lanes import leaves
from gatecert.operators.facts.language import ATOMICS
from gatecert.operators.facts.values import Change, ChangeKind, Conjunct, ConjunctKind
from gatecert.operators.records import Example, ObservableBy, Operator, Reveal, Site

_Labels = tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]
_UNKNOWN: _Labels = ((ObservableBy.VALUES,), (Reveal.ANY,))
_SAME_VALUE: _Labels = ((ObservableBy.RACE,), (Reveal.SEVERAL_ROWS,))


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Sites per branch that is decided at run time.

    An early return deleted, a body unwrapped, a clause of `and` or `or` dropped. What then
    runs shows in bounds where its indices are past the end, else in values; what only repeats
    a mask, or adds nothing to what was there, shows in nothing. Where every program stores the
    same value instead of one of them, only a race detector sees it.
    """
    facts = analysis(kernel)
    for node in nested(kernel.function.body):
        if isinstance(node, cst.If) and not _jumps(node.body):
            yield from _whole(facts, node)
            for clause in every_clause(facts.flow, node.test):
                if is_runtime(facts.flow, clause.dropped):
                    yield _clause(facts, node, clause)


def _whole(facts: Analysis, node: cst.If) -> Iterator[Site]:
    """The branch deleted if it only leaves the kernel, else unwrapped."""
    flow, module = facts.flow, facts.flow.kernel.module
    alone = node.orelse is None and not isinstance(module.parents[node], cst.If)
    if not alone or not all(is_runtime(flow, part) for part in plain_parts(flow, node.test)):
        return
    returns = leaves(node.body)
    edits = (replace(module, node, "pass"),) if returns else unwrap(module, node)
    kind = ChangeKind.CLOSED if returns else ChangeKind.OPENED
    labels = _labels(facts, Change(kind, node), deciding(flow, facts.memory, node.test, returns))
    if _repeats_one_store(flow, node):
        labels = _SAME_VALUE
    if edits:
        yield Site(
            edits=edits,
            line=module.line(node),
            detail=f"`if {snippet(flow, node.test)}` no longer "
            f"{'returns' if returns else 'guards its body'}",
            observable_by=labels[0],
            reveal=labels[1],
            variant="return" if returns else "unwrapped",
        )


def _clause(facts: Analysis, node: cst.If, clause: Clause) -> Site:
    flow = facts.flow
    kind = ChangeKind.OPENED if clause.conjunction else ChangeKind.CLOSED
    where = deciding(flow, facts.memory, clause.dropped, not clause.conjunction)
    labels = _labels(facts, Change(kind, node, part=clause.left), where)
    return Site(
        edits=(keep(flow.kernel.module, clause.whole, clause.left),),
        line=flow.kernel.module.line(node),
        detail=f"the test no longer asks for `{snippet(flow, clause.dropped)}`",
        observable_by=labels[0],
        reveal=labels[1],
        variant="clause",
    )


def _labels(facts: Analysis, change: Change, where: tuple[Deciding, ...]) -> _Labels:
    if not where:
        return _UNKNOWN
    observable_by, reveal = effect(facts, change, where).labels()
    past = change.kind is ChangeKind.CLOSED and all(
        one.term.kind is ConjunctKind.BOUND for one in where
    )
    if past and len(where) == 1 and _masks_repeat(facts, where[0].term):
        return (), ()
    if past and observable_by == (ObservableBy.VALUES,):
        # Programs past the end, with addresses that do not name the index that is.
        observable_by = (ObservableBy.VALUES, ObservableBy.BOUNDS)
    return observable_by, reveal


def _masks_repeat(facts: Analysis, term: Conjunct) -> bool:
    """Whether masks send home the programs that a comparison of their id does."""
    if term.node is None or len(term.node.comparisons) != 1:
        return False
    limit = term.node.left if term.bound_first else term.node.comparisons[0].comparator
    return masks_cover_programs(facts.flow, facts.memory, limit)


def _jumps(body: cst.BaseSuite) -> bool:
    """Whether a body leaves a loop, or hands a value back."""
    return any(
        isinstance(node, cst.Break | cst.Continue)
        or (isinstance(node, cst.Return) and node.value is not None)
        for node in nested(body)
    )


def _repeats_one_store(flow: Dataflow, node: cst.If) -> bool:
    """Whether the branch picks one program for stores that come out alike in all."""
    test = flow.resolve(node.test)
    if not isinstance(test, cst.Comparison) or not isinstance(
        test.comparisons[0].operator, cst.Equal
    ):
        return False
    axes = {_axis(flow, flow.resolve(side)) for side in (test.left, test.comparisons[0].comparator)}
    axes.discard(None)
    inside = set(nested(node.body))
    stores = [call for call in flow.calls("store") if call in inside]
    others = any(flow.call_name(n) in ATOMICS for n in inside) or any(
        d.node in inside and any(use not in inside for use in flow.uses(d))
        for d in flow.definitions()
    )
    if not axes or not stores or others:
        return False
    made_from = _made_from(flow, stores)
    return not axes & {_axis(flow, n) for n in made_from}


def _axis(flow: Dataflow, node: cst.CSTNode) -> str | None:
    if not isinstance(node, cst.Call) or flow.call_name(node) != "program_id":
        return None
    axis = flow.argument(node, "axis")
    return None if axis is None else flow.source(axis.value)


def _made_from(flow: Dataflow, nodes: Iterable[cst.CSTNode]) -> set[cst.CSTNode]:
    """Every expression that has a part in these, as value, address, mask or loop bound."""
    seen: set[cst.CSTNode] = set()
    queue = list(nodes)
    while queue:
        node = queue.pop()
        if node not in seen:
            seen.add(node)
            queue += [part for _, part in flow.inputs(node)]
            queue += [n.iter for n in flow.loops(node) if isinstance(n, cst.For)]
    return seen


_ROWS = """\
@triton.jit
def rows(x_ptr, label_ptr, out_ptr, n, ignored, BLOCK: tl.constexpr, HAS_LABEL: tl.constexpr):
    row = tl.program_id(0)
    if row >= n:
        return
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * BLOCK + offs)
    if HAS_LABEL:
        label = tl.load(label_ptr + row)
        if label != ignored and label >= 0:
            # What counts.
            x *= 2
            x -= tl.load(x_ptr + row * BLOCK + label)
    tl.store(out_ptr + row * BLOCK + offs, x)
"""
_ONCE = """\
@triton.jit
def once(x_ptr, out_ptr, scale_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr)
    x = tl.load(x_ptr + offs, mask=offs < n)
    if pid == 0: tl.store(scale_ptr + 1, scale)
    if (pid * BLOCK < n) and not (pid == 3):
        tl.store(out_ptr + offs, x * scale, mask=offs < n)
"""

OPERATOR = Operator(
    name="dropped-guard",
    bug_class="guard-wrong",
    summary="A branch that holds statements back is missing, or lacks a clause.",
    evidence="flash-linear-attention #795, #583; linkedin/Liger-Kernel#153; AITER #4024",
    find=find,
    applies=(
        Example(
            _ROWS,
            (
                _ROWS.replace("if row >= n:\n        return", "pass"),
                _ROWS.replace(
                    """\
        if label != ignored and label >= 0:
            # What counts.
            x *= 2
            x -= tl.load(x_ptr + row * BLOCK + label)
""",
                    """\
        # What counts.
        x *= 2
        x -= tl.load(x_ptr + row * BLOCK + label)
""",
                ),
                _ROWS.replace("label != ignored and label >= 0", "label >= 0"),
                _ROWS.replace("label != ignored and label >= 0", "label != ignored"),
            ),
        ),
        Example(
            _ONCE,
            (
                _ONCE.replace("if pid == 0: ", ""),
                _ONCE.replace("if (pid * BLOCK < n) and not (pid == 3):\n    ", "").replace(
                    "        tl.store(out", "    tl.store(out"
                ),
                _ONCE.replace("(pid * BLOCK < n) and not (pid == 3)", "not (pid == 3)"),
                _ONCE.replace("(pid * BLOCK < n) and not (pid == 3)", "(pid * BLOCK < n)"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def optional(x_ptr, bias_ptr, out_ptr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if HAS_BIAS and bias_ptr is not None:
        x += tl.load(bias_ptr + offs)
    if out_ptr.dtype.element_ty == tl.float16:
        x = x.to(tl.float16)
    tl.store(out_ptr + offs, x)
""",
        """\
@triton.jit
def either(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        x = tl.load(x_ptr + offs)
    else:
        x = tl.load(x_ptr + BLOCK + offs)
    tl.store(out_ptr + offs, x)
""",
    ),
)
