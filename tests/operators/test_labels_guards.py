"""Labels of the operators on bounds, terms, selects, ranges and guards, reasoned by hand."""

from __future__ import annotations

import pytest

from tests.operators.test_labels_masks import (
    ATTENTION,
    BOTH,
    BOUNDS,
    CAUSAL,
    GELU,
    LAYER_NORM,
    MATMUL,
    NOTHING,
    ONLINE_SOFTMAX,
    SOFTMAX,
    VALUES,
    WRAPPED_MATMUL,
    labels,
    shown,
)

SWAPPED, TERM, WHERE, CAUSAL_FLIP, RANGE, GUARD = (
    "swapped-mask-bound",
    "dropped-mask-term",
    "dropped-where",
    "causal-off-by-one",
    "wrong-loop-range",
    "dropped-guard",
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Real lanes are lost where the other dim is smaller, lanes past the end read where it
        # is larger: every one of them shows in both.
        (MATMUL, [BOTH] * 6),
        (WRAPPED_MATMUL, [BOTH] * 3),
        (ATTENTION, [BOTH, BOTH, BOTH, VALUES]),  # the last is the select
        (GELU, []),  # one size alone
        (SOFTMAX, []),
    ],
)
def test_a_swapped_bound_is_labelled(source: str, expected: list[str]) -> None:
    found = labels(SWAPPED, source)
    assert [label for _, label, _ in found] == expected
    assert all(reveal == "non_square" for _, _, reveal in found)


def test_a_swapped_bound_that_only_lets_padding_through_needs_a_tail_too() -> None:
    source = """\
@triton.jit
def masked(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    rows = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows * n + cols, mask=cols < n, other=0.0)
    x = tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < m, other=0.0)
    tl.store(y_ptr + rows * n + cols, tl.where(cols < 0, 1.0, 2.0), mask=cols < n)
"""
    # What the first two loads read is used for nothing.
    assert labels(SWAPPED, source)[:2] == [("", BOUNDS, "tail+non_square")] * 2


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # Each of the two operands' zeros hides what the other reads past the end.
        (MATMUL, [BOUNDS] * 6),
        # `mask &= ...` of the store.
        (WRAPPED_MATMUL, [BOUNDS]),
        # q: rows, dims; k: keys, dims; v: keys, dims
        (ATTENTION, [BOUNDS] * 6),
        # ... and the select: of queries before keys, and of keys before the end, which says
        # nothing new, for no query comes after a key past the end.
        (CAUSAL, [*[BOUNDS] * 6, VALUES, NOTHING]),
        (SOFTMAX, []),
        (GELU, []),
    ],
)
def test_a_dropped_term_is_labelled(source: str, expected: list[str]) -> None:
    assert shown(TERM, source) == expected


def test_a_term_that_the_mask_says_twice_shows_in_nothing() -> None:
    source = """\
@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask & (n > offs))
    tl.store(y_ptr + offs, x, mask=mask)
"""
    assert shown(TERM, source) == [NOTHING, NOTHING]


def test_a_lower_bound_of_what_is_never_negative_is_no_term() -> None:
    source = """\
@triton.jit
def shifted(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=(offs >= 0) & (offs < n), other=0.0)
    x += tl.load(x_ptr + offs - 1, mask=(offs - 1 >= 0) & (offs < n), other=0.0)
    tl.store(y_ptr + offs, x, mask=offs < n)
"""
    # In the first mask only the upper bound goes; in the second, both.
    assert len(labels(TERM, source)) == 3


def test_a_compile_time_choice_is_no_term() -> None:
    source = """\
@triton.jit
def copy(x_ptr, y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=(offs < n) & EVEN)
    tl.store(y_ptr + offs, x, mask=offs < n)
"""
    assert shown(TERM, source) == [BOUNDS]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [("cols < n", BOUNDS), ("(rows < m) & (cols < n)", NOTHING)],
)
def test_a_clamp_shows_unless_the_mask_says_the_same(mask: str, expected: str) -> None:
    source = f"""\
@triton.jit
def clamped(x_ptr, y_ptr, m, n, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    cols = tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + tl.minimum(rows, m - 1) * n + cols, mask={mask}, other=0.0)
    tl.store(y_ptr + rows * n + cols, x, mask=(rows < m) & (cols < n))
"""
    assert [label for variant, label, _ in labels(TERM, source) if variant == "clamp"] == [expected]


def test_the_rest_of_a_size_is_no_clamped_index() -> None:
    source = """\
@triton.jit
def grouped(x_ptr, m, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    first = tl.program_id(0) // GROUP * GROUP
    rows = tl.minimum(m - first, GROUP)
    tl.store(x_ptr + tl.program_id(0) % rows * BLOCK + tl.arange(0, BLOCK), 0.0)
"""
    assert labels(TERM, source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (LAYER_NORM, [("", VALUES, "tail")]),
        (ATTENTION, [("", VALUES, "tail")]),
        (CAUSAL, [("", VALUES, "any")]),
        (SOFTMAX, []),
    ],
)
def test_a_dropped_select_is_labelled(source: str, expected: list[tuple[str, str, str]]) -> None:
    assert labels(WHERE, source) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # The lanes left out hold zero anyhow, or are never used.
        ("tl.sum(tl.where(offs < n, x, 0.0), axis=0)", NOTHING),
        ("tl.sum(tl.where(offs < n, x * x, 0.0), axis=0)", NOTHING),
        ("tl.where(offs < n, x + 1, 0.0)", NOTHING),
        ("tl.sum(tl.where(offs < n, x + 1, 0.0), axis=0)", VALUES),
        ("tl.sum(tl.where(offs >= n, 0.0, x + 1), axis=0)", VALUES),
        ("tl.sum(tl.where(~(offs < n), 0.0, x + 1), axis=0)", VALUES),
        ("tl.max(tl.where(offs < n, x, float('-inf')), axis=0)", VALUES),
    ],
)
def test_a_select_over_padding_shows_where_its_lanes_are_used(value: str, expected: str) -> None:
    source = f"""\
@triton.jit
def reduce(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr + offs, {value}, mask=offs < n)
"""
    assert shown(WHERE, source) == [expected]


def test_a_select_that_changes_the_shape_is_left_alone() -> None:
    source = """\
@triton.jit
def spread(x_ptr, y_ptr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.arange(0, BM)
    cols = tl.arange(0, BN)
    x = tl.load(x_ptr + rows)
    x = tl.where(rows[:, None] >= cols[None, :], x[:, None], 0.0)
    tl.store(y_ptr + rows, tl.sum(x, axis=1))
"""
    assert labels(WHERE, source) == []


def test_a_causal_comparison_shows_in_values() -> None:
    assert labels(CAUSAL_FLIP, CAUSAL) == [("", VALUES, "any")]
    assert labels(CAUSAL_FLIP, ATTENTION) == []


def test_a_causal_comparison_that_a_later_mask_repeats_shows_in_nothing() -> None:
    source = """\
@triton.jit
def lower(s_ptr, y_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    s = tl.load(s_ptr + rows * BLOCK + cols, mask=rows > cols, other=0.0)
    s = tl.where(rows > cols, s, 0.0)
    tl.store(y_ptr + rows, tl.sum(s, axis=1)[:, None])
"""
    assert shown(CAUSAL_FLIP, source) == [NOTHING, NOTHING]


def test_a_lost_step_shows_on_any_input() -> None:
    expected = [("skips-last", VALUES, "any"), ("skips-first", VALUES, "any")]
    assert labels(RANGE, MATMUL) == expected
    assert labels(RANGE, ONLINE_SOFTMAX) == expected * 2


def test_a_maximum_that_cancels_must_lose_its_only_step() -> None:
    source = """\
@triton.jit
def softmax(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    top = float("-inf")
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=float("-inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
    total = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=float("-inf"))
        total += tl.sum(tl.exp(x - top), axis=0)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=float("-inf"))
        tl.store(y_ptr + cols, tl.exp(x - top) / total, mask=cols < n)
"""
    reveals = [reveal for _, _, reveal in labels(RANGE, source)]
    assert reveals == ["short", "short", "any", "any", "any", "any"]


def test_a_loop_that_does_not_use_its_counter_has_no_first_step_of_its_own() -> None:
    source = """\
@triton.jit
def power(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    y = x
    for _ in range(n):
        y *= x
    tl.store(y_ptr + tl.arange(0, BLOCK), y)
"""
    assert labels(RANGE, source) == [("skips-last", VALUES, "any")]


_SPLIT = """\
@triton.jit
def split(x_ptr, y_ptr, n, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * SPLIT
    last = tl.minimum({limits})
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(first, last, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols, {mask})
    tl.store(y_ptr + tl.arange(0, BLOCK), acc)
"""


@pytest.mark.parametrize(
    ("limits", "mask", "expected"),
    [
        # Past the end, a mask of the columns leaves zeros, which add nothing.
        ("first + SPLIT, n", "mask=cols < n, other=0.0", NOTHING),
        ("first + SPLIT, n", "mask=cols < n, other=1.0", VALUES),
        ("first + SPLIT, n", "mask=None", BOTH),
        # What the next program sums is inside the buffer.
        ("n, first + SPLIT", "mask=cols < n, other=0.0", VALUES),
    ],
)
def test_an_unclamped_loop_does_what_its_masks_let_it(
    limits: str, mask: str, expected: str
) -> None:
    found = labels(RANGE, _SPLIT.format(limits=limits, mask=mask))
    assert [label for variant, label, _ in found if variant == "unclamped"] == [expected]


def test_a_causal_mask_repeats_the_end_of_the_loop() -> None:
    source = CAUSAL.replace("range(0, M, BN)", "range(0, END, BN)")
    limited = "tl.minimum(M, (tl.program_id(0) + 1) * BM)"
    assert labels(RANGE, source.replace("END", limited))[2] == ("unclamped", NOTHING, "")
    # One block of queries less, and the last queries lose keys that they need.
    short = limited.replace("(tl.program_id(0) + 1)", "tl.program_id(0)")
    assert labels(RANGE, source.replace("END", short))[2] == ("unclamped", VALUES, "any")


_GUARDED = """\
@triton.jit
def guarded(x_ptr, y_ptr, label_ptr, n, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    {guard}
        tl.store(y_ptr + row * BLOCK + tl.arange(0, BLOCK), 1.0)
"""


@pytest.mark.parametrize(
    ("guard", "expected"),
    [
        ("if row < n:", [("unwrapped", BOUNDS, "tail")]),
        ("if not (row >= n):", [("unwrapped", BOUNDS, "tail")]),
        ("if tl.load(label_ptr + row) != ignored:", [("unwrapped", VALUES, "any")]),
        ("if BLOCK > 1:", []),
        ("if label_ptr is not None:", []),
        ("if label_ptr is not None and row < n:", [("clause", BOUNDS, "tail")]),
    ],
)
def test_a_guard_is_labelled(guard: str, expected: list[tuple[str, str, str]]) -> None:
    assert labels(GUARD, _GUARDED.format(guard=guard)) == expected


@pytest.mark.parametrize(
    ("test", "mask", "expected"),
    [
        ("start >= n", "cols < n", NOTHING),  # the mask leaves out all that the return did
        ("start >= n", "cols < m", BOUNDS),
        ("start >= n", "None", BOUNDS),
        ("start == n", "cols < n", VALUES),
    ],
)
def test_an_early_return_shows_unless_masks_repeat_it(test: str, mask: str, expected: str) -> None:
    source = f"""\
@triton.jit
def early(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    if {test}:
        return
    cols = start + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask={mask}, other=0.0)
    tl.store(y_ptr + cols, x, mask={mask})
"""
    assert shown(GUARD, source) == [expected]


def test_a_return_within_a_branch_holds_back_all_that_follows() -> None:
    source = """\
@triton.jit
def skipped(x_ptr, y_ptr, keep_ptr, HAS_KEEP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if HAS_KEEP:
        keep = tl.load(keep_ptr + row)
        if keep == 0:
            return
    tl.store(y_ptr + row, tl.load(x_ptr + row))
"""
    assert labels(GUARD, source) == [("return", VALUES, "any")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("total += tl.sum(x, axis=0)", NOTHING),
        ("top = tl.maximum(top, tl.max(x, axis=0))", VALUES),
        ("total += 1", VALUES),
        ("total = tl.sum(x, axis=0)", VALUES),
        ("total = total * 1.0 + tl.sum(x * x, axis=0)", NOTHING),
    ],
)
def test_a_skipped_tile_that_adds_nothing_shows_in_nothing(body: str, expected: str) -> None:
    source = f"""\
@triton.jit
def skipping(x_ptr, y_ptr, n, m, BLOCK: tl.constexpr):
    total = 0.0
    top = float("-inf")
    for start in range(0, m, BLOCK):
        if start < n:
            cols = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + cols, mask=cols < n, other=0.0)
            {body}
    tl.store(y_ptr, total)
    tl.store(y_ptr + 1, top)
"""
    assert shown(GUARD, source) == [expected]


def test_one_store_by_all_programs_is_a_race_of_equal_values() -> None:
    source = """\
@triton.jit
def once(x_ptr, y_ptr, n):
    pid = tl.program_id(0)
    scale = tl.load(x_ptr)
    if pid == 0:
        tl.store(y_ptr, VALUE)
"""
    assert shown(GUARD, source.replace("VALUE", "scale")) == ["race"]
    assert shown(GUARD, source.replace("VALUE", "scale * pid")) == [VALUES]
    another_axis = source.replace("VALUE", "scale * tl.program_id(1)")
    assert shown(GUARD, another_axis) == ["race"]


def test_a_clause_of_or_lets_less_through() -> None:
    source = """\
@triton.jit
def either(x_ptr, y_ptr, n, m):
    row = tl.program_id(0)
    if row >= n or row >= m:
        return
    tl.store(y_ptr + row, tl.load(x_ptr + row))
"""
    assert labels(GUARD, source) == [
        ("return", BOUNDS, "tail"),
        ("clause", BOUNDS, "tail"),
        ("clause", BOUNDS, "tail"),
    ]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("rows[:, None] * n + cols[None, :]", NOTHING),
        ("pid * n + cols[None, :]", BOUNDS),
    ],
)
def test_a_program_too_many_that_masks_send_home_shows_in_nothing(
    address: str, expected: str
) -> None:
    source = f"""\
@triton.jit
def tiles(x_ptr, y_ptr, m, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(n, BLOCK)
    if pid >= tl.cdiv(m, BLOCK) * across:
        return
    rows = pid // across * BLOCK + tl.arange(0, BLOCK)
    cols = pid % across * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x = tl.load(x_ptr + {address}, mask=mask)
    tl.store(y_ptr + {address}, x, mask=mask)
"""
    assert shown(GUARD, source) == [expected]


def test_a_flag_that_a_guard_sets_shows_by_what_it_decides() -> None:
    source = """\
@triton.jit
def flagged(x_ptr, y_ptr, label_ptr, ignored):
    row = tl.program_id(0)
    skip = False
    label = tl.load(label_ptr + row)
    if label == ignored:
        skip = True
    if skip:
        tl.store(y_ptr + row, 0.0)
    else:
        tl.store(y_ptr + row, tl.load(x_ptr + row))
"""
    found = labels(GUARD, source)
    assert found[0] == ("unwrapped", VALUES, "any")


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        # Zeros of `w` hide what the mask lets through, unless it overflows.
        ("x - shift", [(VALUES, "large_magnitude+tail")]),
        ("x - tl.max(x, axis=0)", [(VALUES, "tail")]),
    ],
)
def test_an_exponential_that_overflows_is_not_hidden_by_zeros(
    exponent: str, expected: list[tuple[str, str]]
) -> None:
    source = f"""\
@triton.jit
def weighted(x_ptr, w_ptr, y_ptr, shift, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    w = tl.load(w_ptr + offs, mask=offs < n, other=0.0)
    x = tl.where(offs < n, x - shift, float("-inf"))
    tl.store(y_ptr, tl.sum(tl.exp({exponent}) * w, axis=0))
"""
    assert [(label, reveal) for _, label, reveal in labels(WHERE, source)] == expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        # As of a padded key in the gradient of attention: zero times infinity is NaN.
        ("tl.exp(tl.where(offs < n, x, float('-inf')) - shift)", "large_magnitude+tail"),
        ("tl.where(offs < n, x, 1.0) - shift", ""),
    ],
)
def test_a_bound_that_lets_zeros_through_shows_once_their_exponential_overflows(
    weight: str, expected: str
) -> None:
    source = f"""\
@triton.jit
def weighted(x_ptr, w_ptr, y_ptr, shift, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    w = tl.load(w_ptr + offs, mask=offs < n, other=0.0)
    tl.store(y_ptr, tl.sum(({weight}) * w, axis=0))
"""
    by = VALUES if expected else NOTHING
    assert labels("mask-bound-off-by-one", source)[4] == ("too-wide", by, expected)
