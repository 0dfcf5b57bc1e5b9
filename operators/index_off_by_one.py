"""The index of one address is one too large or one too small."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.addresses import (
    INDEX,
    Addresses,
    Origin,
    addends,
    factors,
    is_fixed,
    origins,
)
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.records import Edit, Example, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Two sites per leading index of an address, and per index that it gathers from memory.

    The leading index is the first that an access spells in its own address, so that only this
    access shifts; an access that spells none leads with the index of the pointer that it names.
    Any input with differing elements shows a shift in values, and the lane at the far end leaves
    the buffer.
    """
    sites = _sites(analysis(kernel).addresses)
    yield from sorted(sites, key=lambda site: (site.edits[0].start, site.variant != "up"))


def _sites(addresses: Addresses) -> Iterator[Site]:
    seen: set[cst.CSTNode] = set()
    for address in addresses.all():
        if not addresses.uses(address):
            continue
        for index in _indices(addresses, address):
            if index in seen:
                continue
            seen.add(index)
            buffer = min(addresses.buffers(address), default="memory")
            observable_by, reveal = addresses.labels(index, True, {Reveal.ANY})
            for variant, step in (("up", "+"), ("down", "-")):
                yield Site(
                    edits=(_shifted(addresses, index, step),),
                    line=addresses.flow.kernel.module.line(index),
                    detail=f"the index `{addresses.flow.source(index)}` of {buffer} is one "
                    f"{'too large' if step == '+' else 'too small'}",
                    observable_by=observable_by,
                    reveal=reveal,
                    variant=variant,
                )


def _indices(addresses: Addresses, address: cst.CSTNode) -> Iterator[cst.CSTNode]:
    typing = addresses.typing
    found = [
        _index(typing, addend)
        for addend in addends(typing, address)
        # A block pointer or a descriptor has no single lane to shift.
        if typing.kind(addend) is not Kind.POINTER and not isinstance(addend, cst.Tuple | cst.List)
        if origins(typing, addend) & INDEX
    ]
    start, end = addresses.flow.kernel.module.span(address)
    spans = {index: addresses.flow.kernel.module.span(index) for index in found}
    own = [i for i in found if start <= spans[i][0] and spans[i][1] <= end]
    leading = (own or found)[:1]
    yield from (i for i in found if i in leading or _is_gathered(typing, i))


def _index(typing: Typing, addend: cst.CSTNode) -> cst.CSTNode:
    """What a runtime stride or pitch multiplies; else the whole addend."""
    parts = factors(addend)
    if parts is None or any(is_fixed(typing.flow, part) for part in parts):
        return addend
    left, right = parts
    return left if origins(typing, left) & INDEX else right


def _is_gathered(typing: Typing, node: cst.CSTNode) -> bool:
    return Origin.LOADED in origins(typing, node)


def _shifted(addresses: Addresses, index: cst.CSTNode, step: str) -> Edit:
    """`i + 1` where a sum holds the index, `(i + 1)` in a product."""
    module = addresses.flow.kernel.module
    held = addresses.flow.consumer(index)
    inside = held is not None and factors(held[1]) is not None
    text = f"{module.source(index)} {step} 1"
    start, end = module.span(index)
    if inside:
        return Edit(start, end, f"({text})")
    if isinstance(index, cst.BinaryOperation | cst.Name | cst.Call | cst.Subscript):
        return Edit(start, end, text)
    return replace(module, index, f"({module.source(index)}) {step} 1")


_ROWS = """\
@triton.jit
def rows(x_ptr, w_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols, mask=cols < N, other=0.0)
        w = tl.load(w_ptr + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + row * N + cols, x * w, mask=cols < N)
"""
_NAMED = """\
@triton.jit
def named(x_ptr, y_ptr, stride):
    row = tl.program_id(0)
    first = x_ptr + row * stride
    tl.store(y_ptr + row, tl.load(first))
"""
_GATHER = """\
@triton.jit
def gather(table_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    row = tl.load(index_ptr + tl.program_id(0))
    table_ptr += tl.program_id(1) * BLOCK
    value = tl.load(table_ptr + row)
    tl.store(y_ptr + tl.program_id(0), value)
"""
_FIRST = "index_ptr + tl.program_id(0)"
_LAST = "y_ptr + tl.program_id(0)"

OPERATOR = Operator(
    name="index-off-by-one",
    bug_class="index-shift",
    summary="The index of one address is one too large or one too small.",
    evidence="flash-linear-attention #1141 and @0c1c0b65 (a row before or after the right one)",
    find=find,
    applies=(
        Example(
            _ROWS,
            (
                _ROWS.replace("x_row + cols", "x_row + cols + 1"),
                _ROWS.replace("x_row + cols", "x_row + cols - 1"),
                _ROWS.replace("w_ptr + cols", "w_ptr + cols + 1"),
                _ROWS.replace("w_ptr + cols", "w_ptr + cols - 1"),
                _ROWS.replace("row * N", "(row + 1) * N"),
                _ROWS.replace("row * N", "(row - 1) * N"),
            ),
        ),
        Example(
            _NAMED,
            (
                _NAMED.replace("x_ptr + row * stride", "x_ptr + (row + 1) * stride"),
                _NAMED.replace("x_ptr + row * stride", "x_ptr + (row - 1) * stride"),
                _NAMED.replace("y_ptr + row", "y_ptr + row + 1"),
                _NAMED.replace("y_ptr + row", "y_ptr + row - 1"),
            ),
        ),
        Example(
            _GATHER,
            (
                _GATHER.replace(_FIRST, f"{_FIRST} + 1"),
                _GATHER.replace(_FIRST, f"{_FIRST} - 1"),
                _GATHER.replace("table_ptr + row", "table_ptr + row + 1"),
                _GATHER.replace("table_ptr + row", "table_ptr + row - 1"),
                _GATHER.replace(_LAST, f"{_LAST} + 1"),
                _GATHER.replace(_LAST, f"{_LAST} - 1"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def scalar(x_ptr, y_ptr, n):
    tl.store(y_ptr, tl.load(x_ptr) + tl.load(x_ptr + 1) + n)
""",
        """\
@triton.jit
def positions(y_ptr, n, BLOCK: tl.constexpr):
    value = tl.sum(tl.arange(0, BLOCK), axis=0) + tl.program_id(0)
    tl.store(y_ptr + n, value)
""",
    ),
)
