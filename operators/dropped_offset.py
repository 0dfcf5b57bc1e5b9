"""An addend of an address is lost: `ptr + batch * stride + cols` becomes `ptr + cols`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from gatecert.operators.facts.addresses import (
    Addresses,
    Origin,
    factors,
    is_scaled_by_block,
    is_sum,
    origins,
)
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.edits import drop_statement, keep, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import Kind
from gatecert.operators.records import Edit, Example, Operator, Reveal, Site

_OFFSETS = frozenset({Origin.PROGRAM, Origin.LOOP, Origin.LOADED})


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Scalar addends of addresses that hold a program id, a loop variable or a loaded start.

    The variant `not-advanced` drops the step by which a loop moves a pointer or an index on.
    Offsets are not negative, so no address leaves its buffer and values show it; bounds do
    where something is subtracted afterwards and no mask says how far.
    """
    addresses = analysis(kernel).addresses
    flow = addresses.flow
    for node in flow.expressions():
        if not addresses.uses(node) and not flow.call_name(node).startswith("descriptor_"):
            continue
        if isinstance(node, cst.AugAssign):
            yield from _statement(addresses, node)
        elif is_sum(node) and isinstance(node, cst.BinaryOperation):
            yield from _sum(addresses, node)
        elif isinstance(node, cst.Call):
            yield from _block(addresses, node)


def _statement(addresses: Addresses, node: cst.AugAssign) -> Iterator[Site]:
    """`ptr += step` as a whole; the addends of a spelled sum are sites of their own."""
    if not isinstance(node.operator, cst.AddAssign):
        return
    edit = drop_statement(addresses.flow.kernel.module, node)
    if _is_carried(addresses, node):
        if not _steers(addresses, node):
            yield _not_advanced(addresses, node, node.value, edit)
    elif not is_sum(node.value) and _is_offset(addresses, node.value):
        yield _lost(addresses, node, node.value, edit)


def _sum(addresses: Addresses, node: cst.BinaryOperation) -> Iterator[Site]:
    module = addresses.flow.kernel.module
    for lost, kept in ((node.left, node.right), (node.right, node.left)):
        edit = keep(module, node, kept)
        if _advances(addresses, node, kept) and not _steers(addresses, node):
            yield _not_advanced(addresses, node, lost, edit)
        elif _is_offset(addresses, lost):
            yield _lost(addresses, node, lost, edit)


def _block(addresses: Addresses, node: cst.Call) -> Iterator[Site]:
    """The offsets of a block pointer or descriptor, and the advance of one."""
    flow, module = addresses.flow, addresses.flow.kernel.module
    offsets, base = flow.argument(node, "offsets"), flow.argument(node, "base")
    if offsets is None:
        return
    if flow.call_name(node) == "advance":
        if base is not None and _is_carried(addresses, node):
            edit = keep(module, node, base.value)
            yield _not_advanced(addresses, node, offsets.value, edit)
        return
    spelled = flow.resolve(offsets.value)
    elements = spelled.elements if isinstance(spelled, cst.Tuple | cst.List) else ()
    for element in elements:
        if not is_sum(element.value) and _is_offset(addresses, element.value):
            yield _lost(addresses, node, element.value, replace(module, element.value, "0"))


def _advances(addresses: Addresses, node: cst.BinaryOperation, kept: cst.CSTNode) -> bool:
    """Whether a sum is `x + step` assigned to `x` itself, turn by turn."""
    flow = addresses.flow
    return (
        isinstance(kept, cst.Name)
        and _is_carried(addresses, node)
        and any(d.value is node and d.name == kept.value for d in flow.reaching(kept))
    )


def _is_carried(addresses: Addresses, node: cst.CSTNode) -> bool:
    return bool(addresses.flow.loops(node)) and node in addresses.flow.forward(node)


def _steers(addresses: Addresses, node: cst.CSTNode) -> bool:
    """Whether a loop might never end without it."""
    flow = addresses.flow
    return any(
        role is Role.CONTROL and (isinstance(holder, cst.While) or _breaks(holder))
        for reached in flow.influenced((node,))
        for role, holder in flow.outputs(reached)
    )


def _breaks(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.If) and bool(m.findall(node.body, m.Break()))


def _is_offset(addresses: Addresses, node: cst.CSTNode) -> bool:
    typing = addresses.typing
    if is_sum(node) or typing.kind(node) is Kind.POINTER or typing.safe_shape(node) != ():
        return False
    made_of = origins(typing, node)
    return bool(made_of & _OFFSETS) and Origin.TILE not in made_of


def _may_be_negative(addresses: Addresses, node: cst.CSTNode) -> bool:
    flow = addresses.flow
    return any(
        isinstance(reached, cst.BinaryOperation)
        and isinstance(reached.operator, cst.Subtract)
        and reached.right is not node
        and addresses.uses(reached)
        for reached in flow.forward(node)
    )


def _lost(addresses: Addresses, node: cst.CSTNode, lost: cst.CSTNode, edit: Edit) -> Site:
    made_of = origins(addresses.typing, lost)
    if made_of == {Origin.LOOP} or is_scaled_by_block(addresses.flow, lost):
        reveal = Reveal.SEVERAL_BLOCKS
    elif Origin.PROGRAM in made_of or factors(addresses.flow.resolve(lost)):
        reveal = Reveal.SEVERAL_ROWS
    else:
        reveal = Reveal.ANY
    return _site(addresses, node, lost, edit, reveal, "")


def _not_advanced(addresses: Addresses, node: cst.CSTNode, step: cst.CSTNode, edit: Edit) -> Site:
    return _site(addresses, node, step, edit, Reveal.SEVERAL_BLOCKS, "not-advanced")


def _site(
    addresses: Addresses,
    node: cst.CSTNode,
    lost: cst.CSTNode,
    edit: Edit,
    reveal: Reveal,
    variant: str,
) -> Site:
    bounds = _may_be_negative(addresses, node) and not addresses.is_masked(node)
    observable_by, reveals = addresses.labels(node, bounds, {reveal})
    source = addresses.flow.source(lost)
    what = f"the step `{source}`" if variant else f"the offset `{source}`"
    return Site(
        edits=(edit,),
        line=addresses.flow.kernel.module.line(lost),
        detail=f"{what} is lost",
        observable_by=observable_by,
        reveal=reveals,
        variant=variant,
    )


_ROWS = """\
@triton.jit
def rows(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + (tl.program_id(0) * N + cols), x, mask=cols < N)
"""
_TILES = """\
@triton.jit
def total(x_ptr, starts_ptr, y_ptr, K, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ptrs = x_ptr + tl.load(starts_ptr) + offs
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for k in range(K):
        acc += tl.load(ptrs)
        ptrs += 2 * BLOCK
    tl.store(y_ptr + offs, acc)
"""
_BLOCKS = """\
@triton.jit
def blocks(x_ptr, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    row = tl.program_id(0) * BM
    tile = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (row, 0), (BM, BN), (1, 0))
    for start in range(0, N, BN):
        y.store([row, start], tl.load(tile))
        tile = tl.advance(tile, (0, BN))
"""

OPERATOR = Operator(
    name="dropped-offset",
    bug_class="offset-missing",
    summary="An address loses one of its offsets, or a loop does not move a pointer on.",
    evidence="flash-linear-attention #781, #1031; Liger-Kernel #477; TransformerEngine #2139; "
    "meta-pytorch/tritonbench@1b867d1 (every tile loads the first rows)",
    find=find,
    applies=(
        Example(
            _ROWS,
            (
                _ROWS.replace("x_ptr += tl.program_id(0) * stride", "pass"),
                _ROWS.replace("start + tl.arange", "tl.arange"),
                _ROWS.replace("tl.program_id(0) * N + cols", "cols"),
            ),
        ),
        Example(
            _TILES,
            (
                _TILES.replace("tl.program_id(0) * BLOCK + ", ""),
                _TILES.replace(" + tl.load(starts_ptr)", ""),
                _TILES.replace("ptrs += 2 * BLOCK", "pass"),
            ),
        ),
        Example(
            _BLOCKS,
            (
                _BLOCKS.replace("(row, 0)", "(0, 0)"),
                _BLOCKS.replace("[row, start]", "[0, start]"),
                _BLOCKS.replace("[row, start]", "[row, 0]"),
                _BLOCKS.replace("tl.advance(tile, (0, BN))", "tile"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def block(x_ptr, y_ptr, base, BLOCK: tl.constexpr):
    offs = base + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) + tl.program_id(0))
""",
        """\
@triton.jit
def locked(lock_ptr, x_ptr, BLOCK: tl.constexpr):
    while tl.atomic_cas(lock_ptr + tl.program_id(0), 0, 1) == 1:
        pass
    tl.store(x_ptr, tl.load(x_ptr) + 1.0)
    tl.atomic_xchg(lock_ptr + tl.program_id(0), 0)
""",
    ),
)
