"""A count of blocks is rounded down: `tl.cdiv(n, BLOCK)` becomes `n // BLOCK`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.addresses import INDEX, Addresses, factors, origins
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.roundings import ceiling_divisions
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

_COUNTS = frozenset({Role.CONTROL, Role.ADDRESS, Role.MASK, Role.CONDITION})
_TIGHTER = (
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.Attribute,
    cst.Subscript,
)


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Divisions that round up and bound a loop, count tiles or size a split.

    Only a size that is no multiple of the divisor shows the last, partial block missing.
    """
    addresses = analysis(kernel).addresses
    flow = addresses.flow
    for division in ceiling_divisions(flow):
        if not flow.sinks(division.node) & _COUNTS:
            continue
        dividend, divisor = flow.source(division.dividend), flow.source(division.divisor)
        text = f"{_tight(division.dividend, dividend)} // {_factor(division.divisor, divisor)}"
        parent = kernel.module.parents[division.node]
        observable_by, reveal = _labels(addresses, division.node)
        start, end = kernel.module.span(division.node)
        yield Site(
            edits=(Edit(start, end, f"({text})" if isinstance(parent, _TIGHTER) else text),),
            line=kernel.module.line(division.node),
            detail=f"`{dividend}` is divided by `{divisor}` rounding down, not up",
            observable_by=observable_by,
            reveal=reveal,
        )


def _labels(
    addresses: Addresses, node: cst.CSTNode
) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """A pitch of `i * cdiv(n, b)` counts from the second row on; a count of tiles that divides
    a program id makes a larger quotient, which is out of bounds where no mask is made of it."""
    flow, typing = addresses.flow, addresses.typing
    products = (h for copy in flow.copies(node) for _, h in flow.outputs(copy))
    pitch = flow.sinks(node) == {Role.ADDRESS} and any(
        origins(typing, part) & INDEX for product in products for part in factors(product) or ()
    )
    divides = any(
        isinstance(quotient, cst.BinaryOperation)
        and isinstance(quotient.operator, cst.FloorDivide)
        and node in {quotient.right, *flow.backward(quotient.right)}
        and addresses.uses(quotient)
        and not addresses.is_masked(quotient)
        for quotient in flow.forward(node)
    )
    observable_by = (
        (ObservableBy.VALUES, ObservableBy.BOUNDS) if divides else (ObservableBy.VALUES,)
    )
    return observable_by, (Reveal.SEVERAL_ROWS, Reveal.TAIL) if pitch else (Reveal.TAIL,)


def _tight(node: cst.CSTNode, text: str) -> str:
    """A dividend that binds as tightly as a division does."""
    product = isinstance(node, cst.BinaryOperation) and isinstance(
        node.operator, cst.Multiply | cst.FloorDivide | cst.Modulo
    )
    return text if product else _factor(node, text)


def _factor(node: cst.CSTNode, text: str) -> str:
    atom = isinstance(node, cst.Name | cst.Integer | cst.Call | cst.Attribute | cst.Subscript)
    return text if atom or (isinstance(node, cst.BaseExpression) and node.lpar) else f"({text})"


_LOOP = """\
@triton.jit
def total(x_ptr, y_ptr, K, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK)):
        acc += tl.load(x_ptr + k * BLOCK + offs, mask=offs < K - k * BLOCK, other=0.0)
    tl.store(y_ptr + offs, acc)
"""
_SPLIT = """\
@triton.jit
def split(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr):
    pid = tl.program_id(0)
    tiles = tl.cdiv(M + 1, BM) * ((N + BN - 1) // BN)
    share = (N + SPLITS - 1) // SPLITS
    start = (pid // tiles) * share
    rows = (N + 127) // 128
    for i in range(start, start + rows):
        tl.store(y_ptr + i, tl.load(x_ptr + i))
"""

OPERATOR = Operator(
    name="cdiv-to-floor",
    bug_class="loop-range",
    summary="A count of blocks inside a kernel is rounded down.",
    evidence="textbook; nearest: facebookresearch/xformers #785 (columns past the first block)",
    find=find,
    applies=(
        Example(_LOOP, (_LOOP.replace("tl.cdiv(K, BLOCK)", "K // BLOCK"),)),
        Example(
            _SPLIT,
            (
                _SPLIT.replace("tl.cdiv(M + 1, BM)", "((M + 1) // BM)"),
                _SPLIT.replace("((N + BN - 1) // BN)", "(N // BN)"),
                _SPLIT.replace("(N + SPLITS - 1) // SPLITS", "N // SPLITS"),
                _SPLIT.replace("(N + 127) // 128", "N // 128"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def halves(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for k in range((N + 2) // 4):
        tl.store(y_ptr + offs + N // 2, tl.load(x_ptr + offs + k))
""",
        """\
@triton.jit
def count(y_ptr, N, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.cdiv(N, BLOCK))
""",
    ),
)
