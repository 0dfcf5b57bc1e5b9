"""Drop the mask of one load: one of several sibling loads lacks what the others have."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import buffer_name, mask_terms
from gatecert.operators.facts.values import AccessKind, Change, ChangeKind
from gatecert.operators.records import Example, Operator, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per masked load.

    Lanes past a bound then read memory past the end (bounds) unless the address was wrapped or
    clamped; an output differs where what they read meets real lanes or is stored.
    """
    memory = analysis(kernel).memory
    for access in memory.accesses(AccessKind.LOAD):
        edits = memory.drop_arguments(access, "mask", "other")
        if not edits or not mask_terms(access):
            continue
        change = Change(ChangeKind.MASK_DROPPED, access.node)
        observable_by, reveal = memory.effect(change, mask_terms(access)).labels()
        yield Site(
            edits=edits,
            line=memory.line(access),
            detail=f"the load of {buffer_name(access)} loses its mask{memory.sibling(access)}",
            observable_by=observable_by,
            reveal=reveal,
        )


_SIBLINGS = """\
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    y = tl.load(y_ptr + offs, mask, 0.0, cache_modifier=".ca")
    tl.store(out_ptr + offs, x + y, mask=mask)
"""
_INLINE = """\
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(
            x_ptr + cols,
            other=0.0,
            eviction_policy="evict_first",
            mask=cols < n,
        )
    tl.store(out_ptr, tl.sum(acc, axis=0))
"""

OPERATOR = Operator(
    name="drop-load-mask",
    bug_class="mask-missing",
    summary="One load loses its mask and its pad value.",
    evidence="flash-linear-attention #1135; FlagGems #413, #414; AITER #3182; lectures #51",
    find=find,
    applies=(
        Example(
            _SIBLINGS,
            (
                _SIBLINGS.replace("x_ptr + offs, mask=mask, other=0.0", "x_ptr + offs"),
                _SIBLINGS.replace("y_ptr + offs, mask, 0.0,", "y_ptr + offs,"),
            ),
        ),
        Example(
            _INLINE,
            (
                _INLINE.replace("            other=0.0,\n", "").replace(
                    '"evict_first",\n            mask=cols < n,', '"evict_first",'
                ),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs), mask=offs < n)
""",
        """\
@triton.jit
def scale(x_ptr, s_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=None) * tl.load(s_ptr)
    tl.store(x_ptr + offs, x)
""",
    ),
)
