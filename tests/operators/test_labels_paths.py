"""Labels of the mask operators where masks and tiles come through branches, helpers, sentinels.

Expectations are reasoned by hand from the kernels, as in `test_labels_masks.py`.
"""

from __future__ import annotations

import libcst as cst
import pytest

from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.registry import get_operator
from tests.operators.sample_kernels import kernel

VALUES, BOUNDS, BOTH, NOTHING = "values", "bounds", "values+bounds", "-"
LOAD, STORE, PAD, BOUND = (
    "drop-load-mask",
    "drop-store-mask",
    "wrong-pad-value",
    "mask-bound-off-by-one",
)


def labels(operator: str, source: str, function: str = "") -> list[tuple[str, str, str]]:
    """(variant, what shows it, what reveals it) of every site; of the last function if unnamed."""
    syntax = kernel(source)
    for node in syntax.module.tree.body:
        if isinstance(node, cst.FunctionDef) and node.name.value == function:
            syntax = KernelSyntax(syntax.module, node, function)
    return [
        (
            site.variant,
            "+".join(kind.value for kind in site.observable_by) or NOTHING,
            "+".join(reveal.value for reveal in site.reveal),
        )
        for site in get_operator(operator).find(syntax)
    ]


def shown(operator: str, source: str, function: str = "") -> list[str]:
    """What shows each site."""
    return [label for _, label, _ in labels(operator, source, function)]


COPY = """\
@triton.jit
def copy(x_ptr, y_ptr, n, k, BLOCK: tl.constexpr, HAS: tl.constexpr):
    offs = tl.arange(0, BLOCK)
{mask}
    x = tl.load(x_ptr + offs, mask=ok, other=0.0)
    tl.store(y_ptr + offs, x, mask=ok)
"""
NARROWED = "    ok = offs < n\n    if HAS:\n        ok &= offs < k"
ELSEWHERE = "    if HAS:\n        ok = offs < n\n    else:\n        ok = offs < k"
REBUILT = "    ok = offs < n\n    if HAS:\n        ok = ok & (offs < k)"


@pytest.mark.parametrize("mask", [NARROWED, ELSEWHERE, REBUILT])
def test_a_mask_made_in_a_branch_guards_like_any_other(mask: str) -> None:
    source = COPY.format(mask=mask)
    assert labels(LOAD, source) == [("", BOUNDS, "tail")]
    assert labels(STORE, source) == [("", BOUNDS, "tail")]
    wide, narrow = ("too-wide", BOUNDS, "tail"), ("too-narrow", VALUES, "any")
    assert labels(BOUND, source) == [wide, narrow] * 2
    total = source.replace("offs, x, mask=ok", ", tl.sum(x, axis=0)").replace("y_ptr + ,", "y_ptr,")
    assert labels(LOAD, total) == [("", BOTH, "tail")]
    assert labels(PAD, total) == [
        ("one", VALUES, "tail"),
        ("minus-inf", VALUES, "tail"),
        ("undefined", BOUNDS, "tail"),
    ]


ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, n, BM: tl.constexpr, BN: tl.constexpr,
              D: tl.constexpr, CAUSAL: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(rows < n)[:, None], other=0.0)
    m = tl.full((BM,), SENTINEL, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        cols = start + tl.arange(0, BN)
        inside = cols < n
        k = tl.load(k_ptr + cols[:, None] * D + d[None, :], inside[:, None], 0.0)
        v = tl.load(v_ptr + cols[:, None] * D + d[None, :], inside[:, None], 0.0)
        s = tl.dot(q, tl.trans(k))
        allowed = inside[None, :]
        if CAUSAL:
            allowed = allowed & (rows[:, None] >= cols[None, :])
        s = tl.where(allowed, s, SENTINEL)
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        scale = tl.exp(m - m_new)
        l = l * scale + tl.sum(p, 1)
        acc = acc * scale[:, None] + tl.dot(p, v)
        m = m_new
    tl.store(o_ptr + rows[:, None] * D + d[None, :], acc / l[:, None], mask=(rows < n)[:, None])
"""


@pytest.mark.parametrize("sentinel", ["-1.0e9", "-1e4", 'float("-inf")'])
def test_a_finite_sentinel_hides_padding_like_minus_infinity(sentinel: str) -> None:
    source = ATTENTION.replace("SENTINEL", sentinel)
    operand = [("one", NOTHING, ""), ("minus-inf", VALUES, "tail"), ("undefined", BOUNDS, "tail")]
    # Queries and keys pad lanes of their own; the select pads keys of any input if causal.
    assert labels(PAD, source) == [*operand, ("zero", VALUES, "any")]
    assert shown(LOAD, source) == [BOUNDS, BOUNDS, BOUNDS]
    keys = [("too-wide", BOTH, "tail"), ("too-narrow", VALUES, "any")]
    assert labels(BOUND, source)[2:4] == keys  # the select lets a key through, if not causal


def test_a_small_negative_constant_is_no_sentinel() -> None:
    source = ATTENTION.replace("SENTINEL", "-100.0")
    assert ("one", VALUES, "tail") in labels(PAD, source)  # of the values


EVEN = """\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr):
    rows = tl.arange(0, BM)
    offs = tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a_ptrs = a_ptr + rows[:, None] * K + (k * BK + offs)[None, :]
        b_ptrs = b_ptr + (k * BK + offs)[:, None] * BM + rows[None, :]
        if {test}:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=offs[None, :] < K - k * BK, other=0.0)
            b = tl.load(b_ptrs, mask=offs[:, None] < K - k * BK, other={pad})
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * BM + rows[None, :], acc)
"""


@pytest.mark.parametrize("test", ["EVEN", "k * BK + BK <= K"])
def test_tiles_of_one_branch_meet_each_other_and_not_those_of_the_other(test: str) -> None:
    source = EVEN.format(test=test, pad="0.0")
    operand = [("one", NOTHING, ""), ("minus-inf", VALUES, "tail"), ("undefined", BOUNDS, "tail")]
    assert labels(PAD, source) == operand * 2
    assert shown(LOAD, source) == [BOUNDS, BOUNDS]
    assert labels(BOUND, source)[::2] == [("too-wide", BOUNDS, "tail")] * 2
    # Where the sibling's padding is not zero, the branch hides nothing.
    assert shown(PAD, EVEN.format(test=test, pad="1.0"))[0] == VALUES


EVEN_ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, n, B: tl.constexpr, D: tl.constexpr,
              EVEN: tl.constexpr):
    rows = tl.arange(0, B)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    m = tl.full((B,), float("-inf"), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for start in range(0, n, B):
        cols = start + tl.arange(0, B)
        if EVEN:
            k = tl.load(k_ptr + cols[:, None] * D + d[None, :])
        else:
            k = tl.load(k_ptr + cols[:, None] * D + d[None, :], mask=cols[:, None] < n, other=0.0)
        s = tl.dot(q, tl.trans(k))
        if not EVEN:
            s += tl.where(cols[None, :] < n, 0, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        if EVEN:
            v = tl.load(v_ptr + cols[:, None] * D + d[None, :])
        else:
            v = tl.load(v_ptr + cols[:, None] * D + d[None, :], mask=cols[:, None] < n, other=0.0)
        acc = acc * tl.exp(m - m_new)[:, None] + tl.dot(p, v)
        m = m_new
    tl.store(o_ptr + rows[:, None] * D + d[None, :], acc)
"""


def test_branches_on_one_test_go_the_same_way() -> None:
    assert shown(LOAD, EVEN_ATTENTION) == [BOUNDS, BOUNDS]
    assert labels(PAD, EVEN_ATTENTION)[-3] == ("one", NOTHING, "")  # of v, weighed by zero
    apart = EVEN_ATTENTION.replace("if not EVEN:", "if start > n:")
    assert shown(LOAD, apart) == [BOTH, BOTH]


@pytest.mark.parametrize("mask", ["(offs < n) if HAS else None", "None if HAS else offs < n"])
def test_a_mask_that_may_be_none_guards_where_it_is_not(mask: str) -> None:
    source = COPY.format(mask=f"    ok = {mask}")
    assert shown(BOUND, source)[::2] == shown(STORE, source) == [BOUNDS]


INNER = """\
@triton.jit
def inner(acc, l, m, q, k_ptr, v_ptr, lo, hi, n, offs_n, d, BN: tl.constexpr):
    for start in range(lo, hi, BN):
        cols = start + offs_n
        k = tl.load(k_ptr + cols[None, :] * 64 + d[:, None], mask=cols[None, :] < n, other=0.0)
        s = tl.dot(q, k)
        s = tl.where(cols[None, :] < n, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m_new[:, None])
        scale = tl.exp(m - m_new)
        v = tl.load(v_ptr + cols[:, None] * 64 + d[None, :], mask=cols[:, None] < n, other=0.0)
        acc = acc * scale[:, None] + tl.dot(p, v)
        l = l * scale + tl.sum(p, 1)
        m = m_new
    return acc, l, m
"""
OUTER = """


@triton.jit
def outer(q_ptr, k_ptr, v_ptr, o_ptr, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, 64)
    q = tl.load(q_ptr + rows[:, None] * 64 + d[None, :])
    m = tl.zeros([BM], tl.float32) - float("inf")
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, 64], tl.float32)
    acc, l, m = inner(acc, l, m, q, k_ptr, v_ptr, 0, n, n, tl.arange(0, BN), d, BN)
    tl.store(o_ptr + rows[:, None] * 64 + d[None, :], acc / l[:, None])
"""


@pytest.mark.parametrize("module", [INNER, INNER + OUTER])
def test_a_helper_that_takes_tiles_is_labelled_as_if_written_in_its_caller(module: str) -> None:
    assert shown(LOAD, module, "inner") == [BOUNDS, BOUNDS]
    operand = [("one", NOTHING, ""), ("minus-inf", VALUES, "tail"), ("undefined", BOUNDS, "tail")]
    found = labels(PAD, module, "inner")
    assert ("zero", VALUES, "tail") in found  # the select
    assert found[-3:] == operand  # the values, behind weights of zero
    wide = [site for site in labels(BOUND, module, "inner") if site[0] == "too-wide"]
    assert [kind for _, kind, _ in wide] == [BOUNDS, VALUES, BOUNDS]


HELPERS = """\
@triton.jit
def inside(o, n):
    return o < n


@triton.jit
def guarded(p, o, n):
    return tl.load(p + o, mask=inside(o, n), other=0.0)


@triton.jit
def product(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = guarded(x_ptr, offs, n)
    y = guarded(y_ptr, offs, n)
    tl.store(z_ptr + offs, x * y, mask=inside(offs, n))
"""


def test_a_bound_in_a_helper_is_planted_there_and_labelled_by_its_uses() -> None:
    assert labels(BOUND, HELPERS, "inside") == [
        ("too-wide", BOUNDS, "tail"),
        ("too-narrow", VALUES, "any"),
    ]
    assert labels(BOUND, HELPERS, "product") == []
    assert labels(LOAD, HELPERS, "guarded") == [("", BOUNDS, "tail")]
    assert labels(STORE, HELPERS, "product") == [("", BOUNDS, "tail")]
    total = HELPERS.replace("z_ptr + offs, x * y, mask=inside(offs, n)", "z_ptr, tl.sum(x + y)")
    assert labels(LOAD, total, "guarded") == [("", BOTH, "tail")]
    assert labels(PAD, total, "guarded")[0] == ("one", VALUES, "tail")


def test_every_call_of_a_helper_counts() -> None:
    source = HELPERS.replace("x * y, mask", "y, mask").replace(
        "    tl.store", "    tl.store(z_ptr + n, tl.sum(x))\n    tl.store"
    )
    # The first call's tile is summed, the second one's only stored under the mask.
    assert labels(LOAD, source, "guarded") == [("", BOTH, "tail")]


@pytest.mark.parametrize("mask", ["mask", "elsewhere.inside(offs, n)"])
def test_a_mask_made_elsewhere_is_taken_for_a_bound(mask: str) -> None:
    source = f"""\
import elsewhere


@triton.jit
def total(x_ptr, y_ptr, mask, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask={mask}, other=0.0)
    tl.store(y_ptr + offs, x + tl.sum(x), mask={mask})
"""
    assert labels(LOAD, source) == [("", BOUNDS, "tail")]
    assert labels(STORE, source) == [("", BOUNDS, "tail")]


GROUP = """\
@triton.jit
def scale(x_ptr, y_ptr, g_ptr, N, C: tl.constexpr, BLOCK: tl.constexpr):
    {rows}
    base = tl.program_id(0) * C * N
    gain = tl.load(g_ptr + rows)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols[None, :] < N
        at = base + rows[:, None] * {stride} + cols[None, :]
        x = tl.load(x_ptr + at, mask=mask, other=0.0)
        tl.store(y_ptr + at, x * gain[:, None], mask=mask)
"""


def test_a_store_that_runs_over_the_programs_own_rows_shows_in_values() -> None:
    rows = "rows = tl.arange(0, C)"
    source = GROUP.format(rows=rows, stride="N")
    assert shown(STORE, source) == [BOTH]
    assert labels(BOUND, source)[0] == ("too-wide", BOTH, "tail")
    assert shown(LOAD, source) == [BOUNDS]
    # Rows that lie apart are not hit; nor is a tile that is stored in one turn, in no order.
    assert shown(STORE, GROUP.format(rows=rows, stride="stride")) == [BOUNDS]
    one_turn = source.replace("for start in range(0, N, BLOCK):", "if N > 0:").replace(
        "start + ", ""
    )
    assert shown(STORE, one_turn) == [BOUNDS]


def test_a_store_that_runs_over_another_programs_row_shows_in_bounds_alone() -> None:
    source = """\
@triton.jit
def scale(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=0.0)
        tl.store(y_ptr + row * N + cols, x + 1.0, mask=cols < N)
"""
    assert shown(STORE, source) == [BOUNDS]


TYPED = """\
@triton.jit
def total(x_ptr, y_ptr, t_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    {}
"""


@pytest.mark.parametrize(
    ("use", "floating"),
    [
        ("tl.store(y_ptr, tl.sum(x.to(tl.float32), axis=0))", True),
        ("tl.store(y_ptr, tl.sum(x, axis=0) / n)", True),
        ("tl.store(y_ptr, tl.sum(tl.exp(x), axis=0))", True),
        ("tl.store(y_ptr, tl.sum(x * 0.5, axis=0))", True),
        ("tl.store(y_ptr, tl.sum(x, axis=0))", False),
        ("tl.store(y_ptr, tl.sum(x.to(tl.int32), axis=0))", False),
        ("tl.store(y_ptr, tl.sum(tl.load(t_ptr + x) * 0.5, axis=0))", False),
    ],
)
def test_an_integer_pad_of_floats_gets_the_variants_of_floats(use: str, floating: bool) -> None:
    variants = [variant for variant, _, _ in labels(PAD, TYPED.format(use))]
    assert variants == (["one", "minus-inf", "undefined"] if floating else ["one", "undefined"])


def test_a_bound_where_the_program_stands_shows_on_any_input() -> None:
    source = """\
@triton.jit
def causal(s_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + row * n + cols, mask=MASK, other=0.0)
    tl.store(y_ptr + row, tl.sum(s, axis=0))
"""
    alone = source.replace("MASK", "cols <= row")
    assert labels(LOAD, alone) == [("", BOTH, "any")]
    assert labels(PAD, alone)[0] == ("one", VALUES, "any")
    # Another term keeps the lanes inside, whatever this one lets through.
    both = source.replace("MASK", "(cols < row + 1) & (cols < n)")
    assert labels(BOUND, both)[:2] == [("too-wide", VALUES, "any"), ("too-narrow", VALUES, "any")]
    # A bound that moves with a loop is still a size.
    tiled = both.replace("row + 1", "n - row * BLOCK").replace("& (cols < n)", "")
    assert labels(BOUND, tiled)[0] == ("too-wide", BOTH, "tail")
