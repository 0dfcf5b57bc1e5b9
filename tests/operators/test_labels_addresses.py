"""Labels of the operators that change addresses, reasoned out by hand.

Each row is one mutant: its variant, the changed line, what must show it and what reveals it.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gatecert.operators.records import Site
from gatecert.operators.registry import get_operator
from tests.operators import sample_kernels as samples

ADDRESS_OPERATORS = (
    "wrong-stride",
    "dropped-offset",
    "index-off-by-one",
    "cdiv-to-floor",
    "swapped-div-mod",
    "dropped-int64",
)
VALUES, BOTH, NOTHING, FAR = "values", "values+bounds", "-", "far_span"


class Row(NamedTuple):
    line: str
    shown_by: str
    reveal: str
    variant: str = ""


def rows(operator: str, source: str) -> list[Row]:
    """One row per mutant, with the first line that changed."""
    return [
        Row(
            _changed(source, site),
            "+".join(kind.value for kind in site.observable_by) or NOTHING,
            "+".join(reveal.value for reveal in site.reveal),
            site.variant,
        )
        for site in get_operator(operator).find(samples.kernel(source))
    ]


def _changed(source: str, site: Site) -> str:
    text = samples.HEADER + source
    mutant = text
    for edit in sorted(site.edits, reverse=True):
        mutant = mutant[: edit.start] + edit.text + mutant[edit.end :]
    pairs = zip(text.splitlines(), mutant.splitlines(), strict=True)
    return next(new.strip() for old, new in pairs if old != new)


STRIDED_COPY = """\
@triton.jit
def copy(x_ptr, y_ptr, N, sb, sm, sn, BM: tl.constexpr, BN: tl.constexpr):
    batch = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.arange(0, BN)
    mask = cols[None, :] < N
    x = tl.load(x_ptr + batch * sb + cols[None, :] * sn + rows[:, None] * sm, mask=mask)
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], x, mask=mask)
"""
LOAD = "x = tl.load(x_ptr + {} + {} + {}, mask=mask)"
ROWS, COLS = "rows[:, None]", "cols[None, :]"


def test_the_last_stride_in_parameter_order_is_innermost_wherever_it_stands() -> None:
    batch, row, col = "batch * sb", f"{ROWS} * sm", f"{COLS} * sn"
    assert rows("wrong-stride", STRIDED_COPY) == [
        Row(LOAD.format("batch", col, row), BOTH, "several_rows", "dropped"),
        Row(LOAD.format("batch * sm", col, row), BOTH, "several_rows", "swapped"),
        Row(LOAD.format(batch, COLS, row), BOTH, "strided", "dropped"),
        Row(LOAD.format(batch, f"{COLS} * sb", row), BOTH, "any", "swapped"),
        Row(LOAD.format(batch, col, ROWS), BOTH, "several_rows", "dropped"),
        Row(LOAD.format(batch, col, f"{ROWS} * sn"), BOTH, "several_rows", "swapped"),
    ]


def test_a_stride_beside_an_index_without_one_is_not_innermost() -> None:
    load = 'x = tl.load(x_ptr + row + cols, mask=cols < N, other=float("-inf"))'
    store = "tl.store(y_ptr + row + cols, e / tl.sum(e, axis=0), mask=cols < N)"
    assert rows("wrong-stride", samples.ONE_BLOCK_SOFTMAX) == [
        Row(load, BOTH, "several_rows", "dropped"),
        Row(store, VALUES, "several_rows", "dropped"),
        Row(load, BOTH, "several_rows", "dropped-everywhere"),
    ]


def test_a_stride_that_only_an_advance_misses_shows_on_the_second_turn() -> None:
    assert rows("wrong-stride", samples.MATMUL)[-3:] == [
        Row("b_ptrs = b_ptr + rk[:, None] + rn[None, :]", BOTH, "several_rows", "dropped"),
        Row("b_ptrs += BK", BOTH, "several_blocks", "dropped"),
        Row(
            "b_ptrs = b_ptr + rk[:, None] + rn[None, :]",
            BOTH,
            "several_rows",
            "dropped-everywhere",
        ),
    ]


LAUNCHED = """\
def launch(x):
    {made}
    double[(1,)](x, y, x.stride(0), {stride}, BLOCK=64)
    return y


@triton.jit
def double(x_ptr, y_ptr, sx, sy, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs * sy, 2.0 * tl.load(x_ptr + offs * sx))
"""


@pytest.mark.parametrize(
    ("made", "stride", "shown_by"),
    [
        ("y = torch.empty(64, device=x.device)", "y.stride(0)", NOTHING),
        ("y = x.new_zeros(8, 8).view(-1)", "y.stride(0)", NOTHING),
        ("y = torch.empty_like(x)", "1", NOTHING),
        ("y = torch.empty_like(x)", "y.stride(0)", VALUES),
        ("y = x if x.is_contiguous() else x.contiguous()", "y.stride(0)", VALUES),
        ("y = torch.empty(64, memory_format=layout)", "y.stride(0)", VALUES),
    ],
)
def test_an_innermost_stride_that_the_launcher_makes_one_never_shows(
    made: str, stride: str, shown_by: str
) -> None:
    found = rows("wrong-stride", LAUNCHED.format(made=made, stride=stride))
    assert [row.shown_by for row in found] == [shown_by, BOTH]


MADE = """\
def launch(x):
    y = torch.empty(x.shape)
    copy[(1,)](x, y, *x.stride(), y.stride(0), y.stride(1), BM=4, BN=4)
    return y


@triton.jit
def copy(x_ptr, y_ptr, sxm, sxn, sym, syn, BM: tl.constexpr, BN: tl.constexpr):
    rows, cols = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    tl.store(y_ptr + rows * sym + cols * syn, tl.load(x_ptr + rows * sxm + cols * sxn))
"""


def test_a_smaller_stride_of_a_buffer_that_the_launcher_makes_stays_in_bounds() -> None:
    found = [(r.shown_by, r.reveal, r.variant) for r in rows("wrong-stride", MADE)]
    assert found == [
        (VALUES, "several_rows", "dropped"),
        (VALUES, "several_rows", "swapped"),
        (NOTHING, "", "dropped"),
        (BOTH, "any", "swapped"),
        (BOTH, "several_rows", "dropped"),
        (BOTH, "several_rows", "swapped"),
        (BOTH, "strided", "dropped"),
        (BOTH, "any", "swapped"),
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            samples.LAYER_NORM,
            [
                Row("pass", VALUES, "several_rows"),
                *[Row("cols = tl.arange(0, BLOCK)", VALUES, "several_blocks")] * 3,
                Row(
                    "tl.store(y_ptr + cols, (x - mean) * rstd * w + b, mask=cols < N)",
                    VALUES,
                    "several_rows",
                ),
            ],
        ),
        (
            samples.MATMUL,
            [
                Row("pass", VALUES, "several_blocks", "not-advanced"),
                Row("pass", VALUES, "several_blocks", "not-advanced"),
            ],
        ),
        (samples.GELU_ERF, [Row("cols = tl.arange(0, BLOCK)", VALUES, "several_blocks")]),
        (samples.LOG_SOFTMAX, []),
    ],
)
def test_a_lost_offset_shows_in_values_once_it_is_not_zero(
    source: str, expected: list[Row]
) -> None:
    assert rows("dropped-offset", source) == expected


CAUSAL = """\
@triton.jit
def causal(x_ptr, y_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    total = 0.0
    for start in range({}tl.minimum(N, (tl.program_id(0) + 1) * BM), BN):
        total += tl.load(x_ptr + start)
    tl.store(y_ptr, total)
"""


@pytest.mark.parametrize(
    ("first", "reveal"),
    [("0, ", "several_blocks"), ("tl.program_id(0), ", "several_rows")],
)
def test_a_loop_variable_is_a_program_s_own_only_if_the_loop_starts_there(
    first: str, reveal: str
) -> None:
    assert rows("dropped-offset", CAUSAL.format(first)) == [
        Row("total += tl.load(x_ptr)", VALUES, reveal)
    ]


@pytest.mark.parametrize(("mask", "shown_by"), [("", BOTH), (", mask=at >= 0", VALUES)])
def test_a_lost_offset_before_a_halo_leaves_the_buffer_unless_masked(
    mask: str, shown_by: str
) -> None:
    source = f"""\
@triton.jit
def halo(x_ptr, y_ptr, W, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) - W
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + at{mask})))
"""
    assert [(r.shown_by, r.reveal) for r in rows("dropped-offset", source)] == [
        (shown_by, "several_blocks")
    ]


def test_a_counter_that_ends_its_loop_is_always_advanced() -> None:
    source = """\
@triton.jit
def total(x_ptr, y_ptr, N):
    i, j, acc = 0, 0, 0.0
    while i < N:
        acc += tl.load(x_ptr + i) + tl.load(y_ptr + j)
        i += 1
        j += 2
    tl.store(y_ptr, acc)
"""
    assert rows("dropped-offset", source) == [
        Row("acc += tl.load(x_ptr) + tl.load(y_ptr + j)", VALUES, "several_blocks"),
        Row("acc += tl.load(x_ptr + i) + tl.load(y_ptr)", VALUES, "several_blocks"),
        Row("pass", VALUES, "several_blocks", "not-advanced"),
    ]


def test_an_index_one_off_shows_on_any_input_and_leaves_the_buffer() -> None:
    assert rows("index-off-by-one", samples.MATMUL)[:4] == [
        Row("a_ptrs = a_ptr + (rm[:, None] + 1) * sa + rk[None, :]", BOTH, "any", "up"),
        Row("a_ptrs = a_ptr + (rm[:, None] - 1) * sa + rk[None, :]", BOTH, "any", "down"),
        Row("b_ptrs = b_ptr + (rk[:, None] + 1) * sb + rn[None, :]", BOTH, "any", "up"),
        Row("b_ptrs = b_ptr + (rk[:, None] - 1) * sb + rn[None, :]", BOTH, "any", "down"),
    ]


def test_a_wrong_maximum_from_memory_cancels_until_exponentials_overflow() -> None:
    source = """\
@triton.jit
def softmax(x_ptr, m_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    e = tl.exp(x - tl.load(m_ptr + row))
    tl.store(y_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=cols < N)
"""
    found = [r for r in rows("index-off-by-one", source) if "m_ptr + row " in r.line]
    assert {(r.shown_by, r.reveal) for r in found} == {(BOTH, "large_magnitude")}
    lost = [r for r in rows("dropped-offset", source) if "tl.load(m_ptr)" in r.line]
    assert [(r.shown_by, r.reveal) for r in lost] == [(VALUES, "large_magnitude+several_rows")]


def test_a_data_dependent_branch_hides_no_wrong_load() -> None:
    source = """\
@triton.jit
def skip(x_ptr, keep_ptr, y_ptr):
    row = tl.program_id(0)
    if tl.load(keep_ptr + row) == 0:
        return
    tl.store(y_ptr + row, tl.load(x_ptr + row))
"""
    found = rows("index-off-by-one", source)
    assert len(found) == 6
    assert {row.reveal for row in found} == {"any"}


def test_a_count_rounded_down_shows_on_a_tail() -> None:
    assert rows("cdiv-to-floor", samples.MATMUL) == [
        Row("for k in range(K // BK):", VALUES, "tail")
    ]


def test_a_pitch_rounded_down_takes_a_second_row_too() -> None:
    source = """\
@triton.jit
def partial(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(1)
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.program_id(0) * tl.cdiv(N, BLOCK) + pid, tl.sum(x))
"""
    line = "tl.store(y_ptr + tl.program_id(0) * (N // BLOCK) + pid, tl.sum(x))"
    assert rows("cdiv-to-floor", source) == [Row(line, VALUES, "several_rows+tail")]


@pytest.mark.parametrize(("mask", "shown_by"), [("", BOTH), (", mask=row < M", VALUES)])
def test_a_divisor_rounded_down_makes_a_quotient_out_of_bounds_unless_masked(
    mask: str, shown_by: str
) -> None:
    source = f"""\
@triton.jit
def tiles(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    row = tl.program_id(0) // tl.cdiv(N, BLOCK)
    tl.store(y_ptr + row, tl.load(x_ptr + row{mask}){mask})
"""
    assert [(r.shown_by, r.reveal) for r in rows("cdiv-to-floor", source)] == [(shown_by, "tail")]


GRID = """\
@triton.jit
def grid(x_ptr, y_ptr, M, N, G, BM: tl.constexpr, BN: tl.constexpr):
    pid = tl.program_id(0)
    rows = (pid // G) * BM + tl.arange(0, BM)
    head = pid % G
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + head * N + rows[:, None] * N + cols[None, :], mask=mask)
    tl.store(y_ptr + head * N + rows[:, None] * N + cols[None, :], x, mask=mask)
"""


def test_a_wrong_quotient_stays_in_bounds_only_under_a_mask_made_from_it() -> None:
    assert rows("swapped-div-mod", GRID)[:2] == [
        Row("rows = (pid % G) * BM + tl.arange(0, BM)", VALUES, "several_blocks"),
        Row("head = pid // G", BOTH, "several_rows"),
    ]


def test_exchanged_axes_show_on_a_grid_that_is_not_square() -> None:
    assert rows("swapped-div-mod", GRID)[2:] == [
        Row("pid = tl.program_id(1)", VALUES, "non_square", "program-ids")
    ]


def test_an_axis_that_only_sets_the_start_of_a_loop_counts_too() -> None:
    source = """\
@triton.jit
def split(x_ptr, y_ptr, K, BLOCK: tl.constexpr):
    row, total = tl.program_id(0), 0.0
    for k in range(tl.program_id(1), K, tl.num_programs(1)):
        total += tl.load(x_ptr + row * K + k)
    tl.atomic_add(y_ptr + row, total)
"""
    assert rows("swapped-div-mod", source) == [
        Row("row, total = tl.program_id(1), 0.0", BOTH, "non_square", "program-ids")
    ]


def test_an_index_that_loses_64_bits_shows_past_2_to_the_31_alone() -> None:
    source = """\
@triton.jit
def scale(x_ptr, y_ptr, sx, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    x_row = x_ptr + row * sx
    tl.store(y_ptr + row * N + cols, 2.0 * tl.load(x_row + cols))
"""
    assert rows("dropped-int64", source) == [
        Row("row = tl.program_id(0)", FAR, "large_span", "dropped"),
        Row("x_row = x_ptr + (row * sx).to(tl.int16)", BOTH, "large_span", "int16-surrogate"),
    ]


@pytest.mark.parametrize(
    ("other", "planted"),
    [("stride", 2), ("stride.to(tl.int64)", 0), ("wide", 0), ("stride.to(tl.int32)", 2)],
)
def test_a_promotion_that_another_one_makes_up_for_is_not_planted(other: str, planted: int) -> None:
    source = f"""\
@triton.jit
def first(x_ptr, y_ptr, stride, wide: tl.int64):
    row = tl.program_id(0).to(tl.int64)
    tl.store(y_ptr + row, tl.load(x_ptr + row * {other}))
"""
    assert len(rows("dropped-int64", source)) == planted


@pytest.mark.parametrize("operator", ADDRESS_OPERATORS)
@pytest.mark.parametrize(
    "source", [samples.GELU_TANH, samples.SCALED_SOFTMAX_WEIGHTS, samples.FLASH_EXP]
)
def test_arithmetic_on_data_is_never_taken_for_an_address(operator: str, source: str) -> None:
    changed = [row.line for row in rows(operator, source)]
    assert all("ptr" in line or "arange" in line or "rn" in line for line in changed)
