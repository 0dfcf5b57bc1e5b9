"""`acc += e` becomes `acc = e`: only the last turn of the loop is kept."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import drop_argument, keep, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_DOTS = ("dot", "dot_scaled")


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Sums (and dots with `acc`) whose result returns to one of their own operands."""
    facts = analysis(kernel)
    flow, typing = facts.flow, facts.typing
    for node in flow.expressions():
        edit = _overwrite(flow, node)
        if edit is None or not _is_value(flow, typing, node):
            continue
        yield Site(
            edits=(edit,),
            line=kernel.module.line(node),
            detail="the accumulated value is overwritten in every turn of the loop",
            observable_by=(ObservableBy.VALUES,),
            reveal=(Reveal.SEVERAL_BLOCKS,),
        )


def _overwrite(flow: Dataflow, node: cst.CSTNode) -> Edit | None:
    """The edit that leaves out the carried operand, if there is exactly one."""
    module = flow.kernel.module
    match node:
        case cst.AugAssign() if isinstance(node.operator, cst.AddAssign):
            if not _carries(flow, node, node.target) or not _is_term(flow, node, node.value):
                return None
            target, value = module.source(node.target), module.source(node.value)
            return replace(module, node, f"{target} = {value}")
        case cst.BinaryOperation() if isinstance(node.operator, cst.Add):
            for carried, term in ((node.left, node.right), (node.right, node.left)):
                if _carries(flow, node, carried) and _is_term(flow, node, term):
                    return keep(module, node, term)
        case cst.Call() if flow.call_name(node) in _DOTS:
            acc = flow.argument(node, "acc")
            if acc is not None and acc.arg is not None and _carries(flow, node, acc.value):
                return drop_argument(module, node, acc.arg)
        case cst.Call() if flow.call_name(node) == "fma":
            return _overwrite_fma(flow, node)
    return None


def _overwrite_fma(flow: Dataflow, node: cst.Call) -> Edit | None:
    module = flow.kernel.module
    parts = [a.value for a in flow.arguments(node)]
    if len(parts) != 3:
        return None
    x, y, z = parts
    if _carries(flow, node, z) and _is_term(flow, node, x):
        return replace(module, node, f"({module.source(x)} * {module.source(y)})")
    if (_carries(flow, node, x) or _carries(flow, node, y)) and _is_term(flow, node, z):
        return keep(module, node, z)
    return None


def _carries(flow: Dataflow, whole: cst.CSTNode, operand: cst.CSTNode) -> bool:
    """Whether the operand is what the whole was one turn ago, perhaps rescaled or cast."""
    names = {n for n in _parts(flow, operand) if isinstance(n, cst.Name)}
    return bool(names & _handed_on(flow, whole))


def _handed_on(flow: Dataflow, whole: cst.CSTNode) -> set[cst.CSTNode]:
    """Where the whole arrives as itself: names, sums, rescales, casts and selections of it."""
    seen: set[cst.CSTNode] = set()
    queue = [whole]
    while queue:
        current = queue.pop()
        for role, following in flow.outputs(current):
            if role is Role.VALUE and following not in seen and _keeps(flow, following, current):
                seen.add(following)
                queue.append(following)
    return seen


def _keeps(flow: Dataflow, holder: cst.CSTNode, part: cst.CSTNode) -> bool:
    match holder:
        case cst.Name() | cst.IfExp():
            return True
        case cst.BinaryOperation():
            quotient = isinstance(holder.operator, cst.Subtract | cst.Divide)
            return not quotient or part is holder.left
        case cst.AugAssign():
            return part is holder.target or isinstance(holder.operator, cst.AddAssign)
        case cst.Call():
            acc = flow.argument(holder, "acc")
            return flow.call_name(holder) in ("to", "where", "fma") or (
                acc is not None and part is acc.value
            )
    return False


def _is_term(flow: Dataflow, whole: cst.CSTNode, operand: cst.CSTNode) -> bool:
    """Whether the operand is new: no literal step, and nothing made from the old value."""
    return not isinstance(operand, cst.BaseNumber) and whole not in flow.backward(operand)


def _parts(flow: Dataflow, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and its factors, through subscripts and casts, names not followed."""
    yield node
    match node:
        case cst.BinaryOperation() if isinstance(node.operator, cst.Multiply | cst.Divide):
            children = [node.left, node.right]
        case cst.Subscript():
            children = [node.value]
        case cst.Call() if flow.call_name(node) == "to":
            children = [flow.arguments(node)[0].value]
        case _:
            children = []
    for child in children:
        yield from _parts(flow, child)


def _is_value(flow: Dataflow, typing: Typing, node: cst.CSTNode) -> bool:
    """Whether the sum is data: not a counter, an offset or a pointer."""
    return typing.kind(node) not in (Kind.INTEGER, Kind.POINTER) and flow.reaches_output(node)


_MATMUL = """\
@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, K, stride_a, stride_b,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_a + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_b + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k, other=0.0)
        {line}
        a_ptrs += BK
        b_ptrs += BK * stride_b
    tl.store(c_ptr + rm[:, None] * BN + rn[None, :], acc)
"""
_ONLINE = """\
@triton.jit
def lse(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    m, d = float("-inf"), 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=float("-inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        d = {value}
        m = m_new
    tl.store(out_ptr, m + tl.log(d))
"""
_NEW_TERM = "tl.sum(tl.exp(x - m_new), axis=0)"

OPERATOR = Operator(
    name="accumulator-overwrite",
    bug_class="accumulate-lost",
    summary="A loop's accumulator is overwritten instead of added to, so that one turn survives.",
    evidence="linkedin/Liger-Kernel#262 (each column block kept its own partial loss); "
    "Dao-AILab/flash-attention#673 (splits of the vocabulary never summed)",
    find=find,
    applies=(
        Example(
            _MATMUL.format(line="acc += tl.dot(a, b)"),
            (_MATMUL.format(line="acc = tl.dot(a, b)"),),
        ),
        Example(
            _MATMUL.format(line="acc = tl.dot(a, b) + acc"),
            (_MATMUL.format(line="acc = tl.dot(a, b)"),),
        ),
        Example(
            _MATMUL.format(line="acc = tl.dot(a, b, acc=acc)"),
            (_MATMUL.format(line="acc = tl.dot(a, b)"),),
        ),
        Example(
            _ONLINE.format(value=f"d * tl.exp(m - m_new) + {_NEW_TERM}"),
            (_ONLINE.format(value=_NEW_TERM),),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def copy(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offset = 0
    for start in range(0, N, BLOCK):
        cols = offset + tl.arange(0, BLOCK)
        tl.store(y_ptr + cols, tl.load(x_ptr + cols, mask=cols < N), mask=cols < N)
        offset += BLOCK
""",
        """\
@triton.jit
def add(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N)
    x += tl.load(y_ptr + cols, mask=cols < N)
    tl.store(y_ptr + cols, x, mask=cols < N)
""",
    ),
)
