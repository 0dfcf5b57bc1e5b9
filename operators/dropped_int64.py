"""An index is no longer 64 bits wide: `row.to(tl.int64) * stride` becomes `row * stride`."""

from __future__ import annotations

from collections.abc import Iterator

from gatecert.operators.facts.addresses import Addresses
from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.promotions import Promotion, promotions
from gatecert.operators.records import Edit, Example, ObservableBy, Operator, Reveal, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Promotions to 64 bits that keep a product of an address from wrapping.

    The variant `dropped` wraps past 2^31 elements only. Its stand-in `int16-surrogate` narrows
    the same products, so that they wrap at 2^15: negative offsets first, then a second time
    the elements at the start.
    """
    addresses = analysis(kernel).addresses
    for promotion in promotions(addresses):
        products = "`, `".join(addresses.flow.source(p) for p in promotion.products)
        yield Site(
            edits=promotion.drop,
            line=promotion.line,
            detail=f"`{products}` in 32 bits",
            observable_by=(ObservableBy.FAR_SPAN,),
            reveal=(Reveal.LARGE_SPAN,),
            variant="dropped",
        )
        yield Site(
            edits=_narrowed(addresses, promotion),
            line=promotion.line,
            detail=f"`{products}` in 16 bits, in place of 32 at a larger size",
            observable_by=(ObservableBy.VALUES, ObservableBy.BOUNDS),
            reveal=(Reveal.LARGE_SPAN,),
            variant="int16-surrogate",
        )


def _narrowed(addresses: Addresses, promotion: Promotion) -> tuple[Edit, ...]:
    module = addresses.flow.kernel.module
    narrow = promotion.dtype.replace("int64", "int16")
    edits = []
    for product in promotion.products:
        start, end = module.span(product)
        text = module.source(product) if product.lpar else f"({module.source(product)})"
        edits.append(Edit(start, end, f"{text}.to({narrow})"))
    return tuple(sorted(edits))


_ROW = """\
@triton.jit
def row(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.cast(tl.arange(0, BLOCK), tl.int64)
    x = tl.load(x_ptr + row * stride + cols, mask=cols < N, other=0.0)
    tl.store(y_ptr + (row * N) + cols, x, mask=cols < N)
"""
_FLAT = """\
@triton.jit
def flat(x_ptr, y_ptr, n, sx: tl.int64, BLOCK: tl.constexpr):
    step = tl.full([], BLOCK, dtype=tl.int64)
    offs = (tl.cast(tl.program_id(0), tl.int64) * BLOCK) + tl.arange(0, BLOCK)
    x_ptrs = x_ptr + tl.program_id(1) * sx + offs
    for start in range(0, 2):
        tl.store(y_ptr + offs, tl.load(x_ptrs))
        x_ptrs += step * n
"""
_CAST = "tl.cast(tl.program_id(0), tl.int64)"

OPERATOR = Operator(
    name="dropped-int64",
    bug_class="int32-overflow",
    summary="The product of an index and a stride is no longer 64 bits wide.",
    evidence="Liger-Kernel #804, #1248; flash-linear-attention #138, #803, #911; ROCm/aiter #4774",
    find=find,
    applies=(
        Example(
            _ROW,
            (
                _ROW.replace("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"),
                _ROW.replace("row * stride", "(row * stride).to(tl.int16)").replace(
                    "(row * N)", "(row * N).to(tl.int16)"
                ),
            ),
        ),
        Example(
            _FLAT,
            (
                _FLAT.replace("sx: tl.int64", "sx"),
                _FLAT.replace("tl.program_id(1) * sx", "(tl.program_id(1) * sx).to(tl.int16)"),
                _FLAT.replace("dtype=tl.int64", "dtype=tl.int32"),
                _FLAT.replace("step * n", "(step * n).to(tl.int16)"),
                _FLAT.replace(_CAST, "tl.program_id(0)"),
                _FLAT.replace(f"({_CAST} * BLOCK)", f"({_CAST} * BLOCK).to(tl.int16)"),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def narrow(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + cols).to(tl.int64), axis=0)
    tl.store(y_ptr + row, total * stride)
""",
        """\
@triton.jit
def twice(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tl.store(y_ptr + row, tl.load(x_ptr + row * stride.to(tl.int64)))
""",
    ),
)
