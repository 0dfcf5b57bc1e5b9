"""An index meets no stride, or another stride of its tensor: `i * stride_k` becomes `i`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gatecert.operators.facts.addresses import Addresses, Origin, origins
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.edits import keep, replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.strides import Strides, StrideUse, strides
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site

Labels = tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Products of an index and a stride, one by one and, where a stride has several, all at once.

    Variants: `dropped` and `swapped` (the next stride of the same tensor), each also
    `-everywhere`. An innermost stride is 1 in a contiguous tensor, so only strided views show
    that it is gone. Where the right stride may be the smaller one, addresses leave the buffer.
    """
    addresses = analysis(kernel).addresses
    found = strides(addresses)
    sites = [
        site
        for uses in found.uses.values()
        for use in uses
        for site in _sites(addresses, found, (use,), "")
    ]
    module = kernel.module
    yield from sorted(sites, key=lambda s: (s.edits[0].start, s.edits[0].end, s.variant))
    for uses in found.uses.values():
        spans = [module.span(use.product) for use in uses]
        apart = all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
        if len(uses) > 1 and apart:
            yield from _sites(addresses, found, uses, "-everywhere")


def _sites(
    addresses: Addresses, found: Strides, uses: Sequence[StrideUse], suffix: str
) -> Iterator[Site]:
    """The sites of some uses of one stride, changed together."""
    module = addresses.flow.kernel.module
    name, source = uses[0].name, addresses.flow.source
    what = f"`{source(uses[0].product)}`" if len(uses) == 1 else f"all {len(uses)} products"
    others = [found.other(use) for use in uses]
    plans: list[tuple[str, str, list[Edit]]] = [
        ("dropped", f"{what} lose the stride `{name}`" if suffix else
         f"{what} loses the stride `{name}`", [keep(module, u.product, u.index) for u in uses])
    ]  # fmt: skip
    if None not in others:
        edits = [replace(module, u.stride, str(o)) for u, o in zip(uses, others, strict=True)]
        verb = "take" if suffix else "takes"
        plans.append(("swapped", f"{what} {verb} the stride `{others[0]}` for `{name}`", edits))
    for variant, detail, edits in plans:
        labels = [_labels(addresses, found, use, variant) for use in uses]
        observable_by, reveal = min(labels, key=_difficulty)
        yield Site(
            edits=tuple(edits),
            line=module.line(uses[0].product),
            detail=detail,
            observable_by=observable_by,
            reveal=reveal,
            variant=variant + suffix,
        )


def _difficulty(labels: Labels) -> tuple[bool, int, bool]:
    """How much it takes to show a change; one use that shows is enough for all."""
    observable_by, reveal = labels
    return not observable_by, len(reveal), Reveal.STRIDED in reveal


def _labels(addresses: Addresses, found: Strides, use: StrideUse, variant: str) -> Labels:
    """An index that is zero on small inputs hides its stride: a row, a block, a turn of a loop.

    No input shows the loss of an innermost stride that the launcher makes 1 by itself. A load
    from an expanded view, whose stride is 0, runs past the end without it.
    """
    reveal: set[Reveal] = set()
    innermost = found.is_innermost(use)
    if variant == "dropped" and found.is_always_one(use):
        return (), ()
    made_of = origins(addresses.typing, use.index)
    if made_of & {Origin.PROGRAM, Origin.TILE, Origin.LOADED}:
        if not innermost or Origin.TILE not in made_of:
            reveal.add(Reveal.SEVERAL_ROWS)
    elif made_of or addresses.flow.loops(use.product):
        reveal.add(Reveal.SEVERAL_BLOCKS)
    if innermost and variant == "dropped":
        reveal.add(Reveal.STRIDED)
    bounds = found.may_exceed(use, found.other(use) if variant == "swapped" else None)
    if variant == "dropped":
        bounds = bounds and addresses.loads(use.product)
    return addresses.labels(use.product, bounds, reveal)


_COPY = """\
@triton.jit
def copy(x_ptr, y_ptr, M, N, sxm, sxn, sy, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * sxm + cols[None, :] * sxn, mask=mask, other=0.0)
    tl.store(y_ptr + rows[:, None] * sy + cols[None, :], x, mask=mask)
"""
_ROWS, _COLS = "rows[:, None] * sxm", "cols[None, :] * sxn"
_ADVANCE = """\
@triton.jit
def total(x_ptr, y_ptr, K, stride, BLOCK: tl.constexpr):
    step = stride.to(tl.int64)
    ptrs = x_ptr + tl.arange(0, BLOCK) * step
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for k in range(K):
        acc += tl.load(ptrs)
        ptrs += BLOCK * stride
    tl.store(y_ptr, tl.sum(acc, axis=0))
"""

OPERATOR = Operator(
    name="wrong-stride",
    bug_class="stride-layout",
    summary="An index is multiplied by no stride, or by another stride of the same tensor.",
    evidence="flash-linear-attention #1085, #1139; flagos-ai/FlagGems #3458; ROCm/aiter #2117",
    find=find,
    applies=(
        Example(
            _COPY,
            (
                _COPY.replace(_ROWS, "rows[:, None]"),
                _COPY.replace(_ROWS, "rows[:, None] * sxn"),
                _COPY.replace(_COLS, "cols[None, :]"),
                _COPY.replace(_COLS, "cols[None, :] * sxm"),
                _COPY.replace("rows[:, None] * sy", "rows[:, None]"),
            ),
        ),
        Example(
            _ADVANCE,
            (
                _ADVANCE.replace("tl.arange(0, BLOCK) * step", "tl.arange(0, BLOCK)"),
                _ADVANCE.replace("BLOCK * stride", "BLOCK"),
                _ADVANCE.replace("tl.arange(0, BLOCK) * step", "tl.arange(0, BLOCK)").replace(
                    "BLOCK * stride", "BLOCK"
                ),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def dense(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < N
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)
""",
        """\
@triton.jit
def scale(x_ptr, y_ptr, factor, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * factor)
""",
    ),
)
