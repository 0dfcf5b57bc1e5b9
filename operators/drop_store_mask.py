"""Drop the mask of one store or atomic: it writes past the end of a row or of the buffer."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import buffer_name, mask_terms
from gatecert.operators.facts.values import AccessKind, Change, ChangeKind
from gatecert.operators.records import Example, Operator, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """One site per masked store or atomic.

    Lanes past a bound then write past the end (bounds). What they do to neighbours inside the
    buffer depends on the order of programs and is not counted on, unless the neighbours are rows
    of the same program that an earlier turn of its loop has written (values).
    """
    memory = analysis(kernel).memory
    for access in memory.accesses(AccessKind.STORE, AccessKind.ATOMIC):
        edits = memory.drop_arguments(access, "mask")
        if not edits or not mask_terms(access):
            continue
        change = Change(ChangeKind.MASK_DROPPED, access.node)
        observable_by, reveal = memory.effect(change, mask_terms(access)).labels()
        yield Site(
            edits=edits,
            line=memory.line(access),
            detail=f"the {access.kind.value} to {buffer_name(access)} loses its mask"
            f"{memory.sibling(access)}",
            observable_by=observable_by,
            reveal=reveal,
        )


_COPY = """\
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x, mask=offs < n)
"""
_GRADIENT = """\
@triton.jit
def column_sums(x_ptr, out_ptr, last_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    inside = offs < n
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, inside, 0.0)
    tl.store(last_ptr + offs, x, inside)
    tl.atomic_add(out_ptr + offs, x, mask=inside, sem="relaxed")
"""

OPERATOR = Operator(
    name="drop-store-mask",
    bug_class="mask-missing",
    summary="One store or atomic loses its mask.",
    evidence="flash-linear-attention a9dac8b1, #1103; TritonBench #12; tritonbench dd8e622",
    find=find,
    applies=(
        Example(_COPY, (_COPY.replace(", x, mask=offs < n", ", x"),)),
        Example(
            _GRADIENT,
            (
                _GRADIENT.replace("offs, x, inside", "offs, x"),
                _GRADIENT.replace(" mask=inside,", ""),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def row_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x))
""",
        """\
@triton.jit
def lock(lock_ptr, out_ptr, x):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr, x)
    tl.atomic_xchg(lock_ptr, 0)
""",
    ),
)
