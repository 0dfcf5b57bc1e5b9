"""Labels of the mask operators, reasoned by hand, on kernels in the styles people write.

Each table lists, in source order, what every site of an operator must say: its variant, what
can show it (`values`, `bounds`, both, or `-` for nothing) and what input reveals it.
"""

from __future__ import annotations

import libcst as cst
import pytest

from gatecert.operators.facts.kernel import KernelSyntax, parse_module
from gatecert.operators.registry import get_operator

HEADER = "import triton\nimport triton.language as tl\n\n\n"
VALUES, BOUNDS, BOTH, NOTHING = "values", "bounds", "values+bounds", "-"
LOAD, STORE, PAD, BOUND = (
    "drop-load-mask",
    "drop-store-mask",
    "wrong-pad-value",
    "mask-bound-off-by-one",
)


def labels(operator: str, source: str) -> list[tuple[str, str, str]]:
    """(variant, what shows it, what reveals it) of every site."""
    module = parse_module(HEADER + source)
    functions = [node for node in module.tree.body if isinstance(node, cst.FunctionDef)]
    kernel = KernelSyntax(module, functions[-1], functions[-1].name.value)
    return [
        (
            site.variant,
            "+".join(kind.value for kind in site.observable_by) or NOTHING,
            "+".join(reveal.value for reveal in site.reveal),
        )
        for site in get_operator(operator).find(kernel)
    ]


def shown(operator: str, source: str) -> list[str]:
    """What shows each site."""
    return [label for _, label, _ in labels(operator, source)]


SOFTMAX = """\
@triton.jit
def softmax(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + row * stride + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * stride + offs, e / tl.sum(e, axis=0), mask=mask)
"""

ONLINE_SOFTMAX = """\
@triton.jit
def online(x_ptr, y_ptr, stride, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    l = 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, cols < N, -float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        l = l * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, cols < N, 0.0)
        tl.store(y_ptr + row * stride + cols, tl.exp(x - m) / l, cols < N)
"""

LAYER_NORM = """\
@triton.jit
def layer_norm(x_ptr, w_ptr, y_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / N
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < N, other=0.0).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / N + eps)
    for off in range(0, N, BLOCK):
        cols = off + tl.arange(0, BLOCK)
        mask = cols < N
        w = tl.load(w_ptr + cols, mask=mask)
        x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, (x - mean) * rstd * w, mask=mask)
"""

MATMUL = """\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.program_id(1) * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * sam + offs_k[None, :] * sak
    b_ptrs = b_ptr + offs_k[:, None] * sbk + offs_n[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k * BK) & (offs_n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * sak
        b_ptrs += BK * sbk
    c_ptrs = c_ptr + offs_m[:, None] * scm + offs_n[None, :] * scn
    tl.store(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))
"""

WRAPPED_MATMUL = """\
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    offs_am = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    offs_bn = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inside = k + offs_k < K
        a = tl.load(a_ptr + offs_am[:, None] * K + (k + offs_k)[None, :], inside[None, :], 0.0)
        b = tl.load(b_ptr + (k + offs_k)[:, None] * N + offs_bn[None, :])
        acc = tl.dot(a, b, acc)
    offs_cm = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_cn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = offs_cm[:, None] < M
    mask &= offs_cn[None, :] < N
    tl.store(c_ptr + offs_cm[:, None] * N + offs_cn[None, :], acc, mask=mask)
"""

ATTENTION = """\
@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, head_stride, stride, M, N, D, scale,
              BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    head = tl.program_id(1) * head_stride
    offs_m = tl.program_id(0) * BM + tl.arange(0, BM)
    offs_n = tl.arange(0, BN)
    offs_d = tl.arange(0, BD)
    d_mask = offs_d < D
    q_mask = (offs_m[:, None] < M) & d_mask[None, :]
    q = tl.load(q_ptr + head + offs_m[:, None] * stride + offs_d[None, :], mask=q_mask, other=0.0)
    m_i = tl.full([BM], float("-inf"), tl.float32)
    l_i = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, BD], tl.float32)
    for start in range(0, N, BN):
        cols = start + offs_n
        n_mask = cols < N
        k = tl.load(k_ptr + head + cols[None, :] * stride + offs_d[:, None],
                    mask=n_mask[None, :] & d_mask[:, None], other=0.0)
        v = tl.load(v_ptr + head + cols[:, None] * stride + offs_d[None, :],
                    mask=n_mask[:, None] & d_mask[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(cols[None, :] < N, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p, v)
        m_i = m_new
    tl.store(o_ptr + head + offs_m[:, None] * stride + offs_d[None, :], acc / l_i[:, None],
             mask=q_mask)
"""
CAUSAL = (
    ATTENTION.replace("M, N, D", "M, D")
    .replace("cols[None, :] < N", "(offs_m[:, None] >= cols[None, :]) & (cols[None, :] < M)")
    .replace("N, BN)", "M, BN)")
    .replace("cols < N", "cols < M")
)

GELU = """\
@triton.jit
def gated(x_ptr, g_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = n > offs
    x = tl.load(x_ptr + offs, mask, 0.0)
    g = tl.load(g_ptr + offs, mask, 0.0)
    tl.store(y_ptr + offs, x * tl.sigmoid(g), mask)
"""

TABLE = [
    # A load whose padding is summed shows in values; one that is only stored under the same
    # mask, or multiplied by a sibling's zero, shows in bounds alone.
    (LOAD, SOFTMAX, [BOTH]),
    (LOAD, ONLINE_SOFTMAX, [BOTH, BOUNDS]),
    (LOAD, LAYER_NORM, [BOTH, BOUNDS, BOUNDS, BOUNDS]),  # the second is masked anew by where
    (LOAD, MATMUL, [BOUNDS, BOUNDS]),
    (LOAD, WRAPPED_MATMUL, [BOTH]),  # b is not masked, so its lanes are no zeros
    (LOAD, ATTENTION, [BOUNDS, BOUNDS, BOUNDS]),
    (LOAD, GELU, [BOUNDS, BOUNDS]),
    (STORE, SOFTMAX, [BOUNDS]),
    (STORE, ONLINE_SOFTMAX, [BOUNDS]),
    (STORE, LAYER_NORM, [BOUNDS]),
    (STORE, MATMUL, [BOUNDS]),
    (STORE, WRAPPED_MATMUL, [BOUNDS]),
    (STORE, ATTENTION, [BOUNDS]),
    (STORE, GELU, [BOUNDS]),
]


@pytest.mark.parametrize(("operator", "source", "expected"), TABLE)
def test_a_dropped_mask_is_labelled(operator: str, source: str, expected: list[str]) -> None:
    assert shown(operator, source) == expected


def test_padding_of_a_softmax_shows_in_values_on_any_tail() -> None:
    expected = [("zero", VALUES, "tail"), ("undefined", BOTH, "tail")]
    assert labels(PAD, SOFTMAX) == expected
    # The second pass of the online form uses its padding for nothing: no site there.
    assert labels(PAD, ONLINE_SOFTMAX) == expected


def test_padding_of_a_layer_norm_is_planted_where_it_is_summed() -> None:
    assert labels(PAD, LAYER_NORM) == [
        ("one", VALUES, "tail"),
        ("minus-inf", VALUES, "tail"),
        ("undefined", BOUNDS, "tail"),  # most backends read zero there, which is right
        ("one", VALUES, "tail"),  # the select
        ("minus-inf", VALUES, "tail"),
    ]


def test_a_pad_that_meets_a_siblings_zero_is_hidden_unless_it_is_not_finite() -> None:
    expected = [("one", NOTHING, ""), ("minus-inf", VALUES, "tail"), ("undefined", BOUNDS, "tail")]
    assert labels(PAD, MATMUL) == expected * 2


def test_a_pad_that_meets_an_unmasked_operand_shows() -> None:
    assert labels(PAD, WRAPPED_MATMUL) == [
        ("one", VALUES, "tail"),
        ("minus-inf", VALUES, "tail"),
        ("undefined", BOUNDS, "tail"),
    ]


def test_padding_of_attention_is_hidden_by_weights_of_zero() -> None:
    operand = [("one", NOTHING, ""), ("minus-inf", VALUES, "tail"), ("undefined", BOUNDS, "tail")]
    assert labels(PAD, ATTENTION) == [*operand * 3, ("zero", VALUES, "tail")]


def test_padding_of_an_elementwise_kernel_is_left_alone() -> None:
    assert labels(PAD, GELU) == []


TOO_NARROW = ("too-narrow", VALUES, "any")
"""The last element is lost, whatever the size."""


def too_wide(*kinds: str) -> list[tuple[str, str, str]]:
    """Each bound one too large, followed by the same bound one too small."""
    return [site for kind in kinds for site in (("too-wide", kind, "tail"), TOO_NARROW)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SOFTMAX, too_wide(BOTH)),
        (ONLINE_SOFTMAX, too_wide(BOTH, BOUNDS, BOUNDS)),
        (LAYER_NORM, too_wide(BOTH, BOUNDS, VALUES, BOUNDS)),  # the select lets -mean through
        (MATMUL, too_wide(*[BOUNDS] * 6)),
        (WRAPPED_MATMUL, too_wide(BOTH, BOUNDS, BOUNDS)),
        # dims (q and k both take one more), queries, keys (the select hides them), the select
        (ATTENTION, too_wide(BOTH, BOUNDS, BOUNDS, VALUES)),
        (GELU, too_wide(BOUNDS)),
    ],
)
def test_a_bound_off_by_one_is_labelled(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert labels(BOUND, source) == expected


def test_a_causal_mask_hides_keys_past_the_end() -> None:
    dims, queries, keys = too_wide(BOTH), too_wide(BOUNDS), too_wide(BOUNDS)
    # No query comes after a key past the end: the causal term hides what the bound lets through.
    select = [("too-wide", NOTHING, ""), ("too-narrow", VALUES, "any")]
    assert labels(BOUND, CAUSAL) == [*dims, *queries, *keys, *select]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A maximum takes the wrong padding only where all values are negative.
        ("tl.max(x, axis=0)", ("zero", VALUES, "all_negative+tail")),
        ("tl.max(tl.exp(x), axis=0)", ("zero", VALUES, "all_negative+tail")),
        ("tl.sum(tl.exp(x), axis=0)", ("zero", VALUES, "tail")),
        ("tl.sum(tl.where(offs < n, x, 0.0), axis=0)", None),
    ],
)
def test_a_wrong_sentinel_shows_by_what_it_is_reduced_with(
    body: str, expected: tuple[str, str, str] | None
) -> None:
    source = f"""\
@triton.jit
def reduce(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=-1e30)
    tl.store(y_ptr, {body})
"""
    found = [site for site in labels(PAD, source) if site[0] == "zero"]
    assert found == ([expected] if expected else [])


def test_a_dropped_pad_before_a_maximum_alone_shows_only_where_zero_does() -> None:
    source = """\
@triton.jit
def largest(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=float("-inf"))
    tl.store(y_ptr, tl.max(x, axis=0))
"""
    # The maximum passes NaN over, so poison does not show; zero does, among negatives.
    assert labels(PAD, source)[1] == ("undefined", VALUES, "all_negative+tail")


def test_a_helper_function_is_looked_into() -> None:
    helpers = """\
@triton.jit
def combine(a, b):
    return a + b


@triton.jit
def total(v):
    return tl.reduce(v, 0, combine)


@triton.jit
def squash(v):
    return v * tl.sigmoid(v)


"""
    kernel = """\
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    {}
"""
    reduced = kernel.format("tl.store(y_ptr, total(x))")
    mapped = kernel.format("tl.store(y_ptr + offs, squash(x), mask=offs < n)")
    assert shown(LOAD, helpers + reduced) == [BOTH]
    assert shown(LOAD, helpers + mapped) == [BOUNDS]


def test_a_clamped_or_gathered_address_stays_inside() -> None:
    source = """\
@triton.jit
def gather(index_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    index = tl.load(index_ptr + tl.minimum(offs, n - 1), mask=mask, other=0)
    x = tl.load(x_ptr + index, mask=mask)
    tl.store(y_ptr + offs, x, mask=mask)
"""
    assert shown(LOAD, source) == [NOTHING, NOTHING]


def test_an_atomic_that_adds_its_padding_shows_where_it_lands() -> None:
    source = """\
@triton.jit
def histogram(index_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(count_ptr + index, VALUE, mask=offs < n)
"""
    assert shown(STORE, source.replace("VALUE", "1")) == [VALUES]
    assert shown(STORE, source.replace("VALUE", "0.0")) == [NOTHING]


def test_a_causal_load_mask_shows_in_values_not_in_bounds() -> None:
    source = """\
@triton.jit
def lower(s_ptr, y_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    mask = rows[:, None] >= cols[None, :]
    s = tl.load(s_ptr + rows[:, None] * BLOCK + cols[None, :], mask=mask, other=0.0)
    tl.store(y_ptr + rows, tl.sum(s, axis=1))
"""
    assert labels(LOAD, source) == [("", VALUES, "any")]
    assert labels(BOUND, source) == []


def test_an_axis_that_is_not_reduced_keeps_its_padding_to_itself() -> None:
    source = """\
@triton.jit
def rows(x_ptr, y_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    c = tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + r * n + c, mask=MASK, other=0.0)
    tl.store(y_ptr + r, tl.sum(x, axis=1)[:, None], mask=r < m)
"""
    assert shown(PAD, source.replace("MASK", "r < m")) == []
    assert shown(PAD, source.replace("MASK", "c < n"))[0] == VALUES
    assert shown(LOAD, source.replace("MASK", "r < m")) == [BOUNDS]
    assert shown(LOAD, source.replace("MASK", "(r < m) & (c < n)")) == [BOTH]


def test_the_sibling_that_keeps_its_mask_is_named() -> None:
    module = parse_module(HEADER + GELU)
    function = cst.ensure_type(module.tree.body[-1], cst.FunctionDef)
    kernel = KernelSyntax(module, function, "gated")
    first, second = get_operator(LOAD).find(kernel)
    assert first.detail.endswith(f"the load of g_ptr at line {second.line} keeps it")
    assert second.detail.endswith(f"the load of x_ptr at line {first.line} keeps it")
