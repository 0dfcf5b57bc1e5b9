"""A flat index is taken apart wrongly: `pid // heads` becomes `pid % heads`, or the reverse."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.addresses import INDEX, Addresses, Origin, origins
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.constants import literal
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.roundings import ceiling_division
from gatecert.operators.records import Edit, Example, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Quotients and remainders of program ids and flat indices, and the two axes of a grid.

    `%` of an index vector without its `//` wraps the vector around and takes nothing apart.
    Bounds show a wrong index unless a mask is made from it.
    """
    addresses = analysis(kernel).addresses
    for node in addresses.flow.expressions():
        if isinstance(node, cst.BinaryOperation) and _takes_apart(addresses, node):
            yield _exchanged(addresses, node)
    yield from _program_ids(addresses)


def _takes_apart(addresses: Addresses, node: cst.BinaryOperation) -> bool:
    flow, typing = addresses.flow, addresses.typing
    if not isinstance(node.operator, cst.FloorDivide | cst.Modulo):
        return False
    if literal(node.right) == 1.0 or ceiling_division(flow, node) is not None:
        return False
    made_of = origins(typing, node.left)
    if not made_of & INDEX or origins(typing, node.right) & {Origin.TILE}:
        return False
    if isinstance(node.operator, cst.Modulo) and Origin.TILE in made_of:
        return addresses.uses(node) and _has_quotient(addresses, node)
    return addresses.uses(node)


def _has_quotient(addresses: Addresses, node: cst.BinaryOperation) -> bool:
    flow = addresses.flow
    return any(
        isinstance(other, cst.BinaryOperation)
        and isinstance(other.operator, cst.FloorDivide)
        and flow.same_value(other.left, node.left)
        and flow.same_value(other.right, node.right)
        for other in flow.expressions()
    )


def _exchanged(addresses: Addresses, node: cst.BinaryOperation) -> Site:
    module = addresses.flow.kernel.module
    text = "%" if isinstance(node.operator, cst.FloorDivide) else "//"
    observable_by, reveal = addresses.labels(
        node,
        not addresses.is_masked(node),
        {Reveal.SEVERAL_BLOCKS if addresses.counts_blocks(node) else Reveal.SEVERAL_ROWS},
    )
    return Site(
        edits=(Edit(*module.inner_span(node.operator), text),),
        line=module.line(node.operator),
        detail=f"`{addresses.flow.source(node)}` with `{text}`",
        observable_by=observable_by,
        reveal=reveal,
    )


def _program_ids(addresses: Addresses) -> Iterator[Site]:
    """The axes 0 and 1 of a grid change places, everywhere in the kernel.

    On a grid with equal extents other programs do the same work; on any other some tile is
    left out.
    """
    flow = addresses.flow
    found: dict[int, list[tuple[cst.Call, cst.CSTNode]]] = {0: [], 1: []}
    for call in flow.calls("program_id"):
        argument = flow.argument(call, "axis")
        axis = None if argument is None else literal(argument.value)
        if argument is not None and axis in (0.0, 1.0):
            found[int(axis)].append((call, argument.value))
    if not all(any(_places(addresses, call) for call, _ in calls) for calls in found.values()):
        return
    module = flow.kernel.module
    edits = [replace(module, axis, str(1 - n)) for n, calls in found.items() for _, axis in calls]
    calls = [call for calls in found.values() for call, _ in calls if _places(addresses, call)]
    masked = all(addresses.is_masked(call) for call in calls if addresses.uses(call))
    first = min(calls, key=module.span)
    observable_by, reveal = addresses.labels(first, not masked, {Reveal.NON_SQUARE})
    yield Site(
        edits=tuple(sorted(edits)),
        line=module.line(first),
        detail="the program ids of the axes 0 and 1 change places",
        observable_by=observable_by,
        reveal=reveal,
        variant="program-ids",
    )


def _places(addresses: Addresses, call: cst.Call) -> bool:
    """Whether a program id says what its program works on: by addresses, or by a loop's range."""
    return addresses.uses(call) or Role.CONTROL in addresses.flow.sinks(call)


_HEADS = """\
@triton.jit
def heads(x_ptr, y_ptr, H, group, sb, sh, D: tl.constexpr):
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    cols = tl.program_id(axis=0) * D + tl.arange(0, D)
    x = tl.load(x_ptr + batch * sb + (head // group) * sh + cols)
    tl.store(y_ptr + tl.program_id(1) * D + cols, x)
"""
_SWAPPED = _HEADS.replace("program_id(1)", "program_id(0)").replace(
    "program_id(axis=0)", "program_id(axis=1)"
)
_FLAT = """\
@triton.jit
def flat(x_ptr, y_ptr, n, N, M, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = offs // N, offs % N
    x = tl.load(x_ptr + col * M + row, mask=offs < n, other=0.0)
    tl.store(y_ptr + offs % n, x, mask=offs < n)
"""

OPERATOR = Operator(
    name="swapped-div-mod",
    bug_class="head-group-index",
    summary="A quotient and a remainder of an index, or two axes of the grid, change places.",
    evidence="ROCm/triton #567 (head // group as head % heads); flash-linear-attention@95a89568; "
    "program ids: textbook",
    find=find,
    applies=(
        Example(
            _HEADS,
            (
                _HEADS.replace("tl.program_id(1) // H", "tl.program_id(1) % H"),
                _HEADS.replace("tl.program_id(1) % H", "tl.program_id(1) // H"),
                _HEADS.replace("head // group", "head % group"),
                _SWAPPED,
            ),
        ),
        Example(
            _FLAT,
            (
                _FLAT.replace("offs // N", "offs % N"),
                _FLAT.replace("offs % N", "offs // N"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def wrapped(x_ptr, y_ptr, M, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % M
    tl.store(y_ptr + rows, tl.load(x_ptr + rows + M // 2))
""",
        """\
@triton.jit
def parity(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) + (offs % 2) + tl.program_id(1) // 2)
""",
    ),
)
