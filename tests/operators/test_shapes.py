"""Shapes where branches, loops and helper functions make them hard to see."""

from __future__ import annotations

import pytest

from gatecert.operators.facts.dataflow import Dataflow, analyse
from gatecert.operators.facts.shapes import Typing, conflicts
from gatecert.operators.records import Reveal
from tests.operators import sample_kernels as samples
from tests.operators.arithmetic import kernel, lines, sites

AXIS = "wrong-reduction-axis"
TILE = (
    "r = tl.arange(0, B)",
    "c = tl.arange(0, C)",
    "x = tl.load(x_ptr + r[:, None] * N + c[None, :])",
)
SIZES = "x_ptr, y_ptr, N, B: tl.constexpr, C: tl.constexpr, CAUSAL: tl.constexpr"


def tiles(*body: str) -> str:
    return kernel(*TILE, *body, parameters=SIZES)


def flow(source: str) -> Dataflow:
    return analyse(samples.kernel(source))


NARROWED = tiles(
    "ok = (c < N)[None, :]",
    "if CAUSAL:",
    "    ok = ok & (r[:, None] >= c[None, :])",
    'x = tl.where(ok, x, float("-inf"))',
    "e = tl.exp(x - tl.max(x, 1)[:, None])",
    "tl.store(y_ptr + r[:, None] * N + c[None, :], e)",
)


def test_a_mask_narrowed_in_a_branch_has_the_shape_of_both_arms() -> None:
    assert not conflicts(flow(NARROWED))
    assert lines(AXIS, NARROWED) == [
        "e = tl.exp(x - tl.max(x, 0)[None, :])",
        "e = tl.exp(x - tl.max(x))",
    ]


def test_one_conflict_leaves_other_reductions_alone() -> None:
    broken = tiles(
        "bad = tl.arange(0, 3) + tl.arange(0, 5)",
        "tl.store(y_ptr + bad, tl.sum(x, 1) + bad)",
        "tl.store(y_ptr + r, tl.sum(x, 1))",
    )
    assert len(conflicts(flow(broken))) == 1
    assert lines(AXIS, broken, "all") == [
        "tl.store(y_ptr + bad, tl.sum(x) + bad)", "tl.store(y_ptr + r, tl.sum(x))",
    ]  # fmt: skip


def test_a_reduction_that_enters_a_conflict_is_left_out() -> None:
    unclear = tiles("tl.store(y_ptr + r, tl.sum(x, 1) + tl.sum(x, 0))")
    assert conflicts(flow(unclear))
    assert lines(AXIS, unclear) == []


def test_a_loop_may_not_change_the_shape_of_what_it_carries() -> None:
    carried = tiles(
        "total = tl.zeros((B, 1), dtype=tl.float32)",
        "for i in range(N):",
        "    total += tl.sum(x, axis=1, keep_dims=True)",
        "tl.store(y_ptr + r[:, None], total)",
    )
    assert not conflicts(flow(carried))
    assert lines(AXIS, carried) == []


@pytest.mark.parametrize(
    "result",
    [
        "tl.sum(tl.sum(x, axis=1), axis=0)",
        "tl.sum(tl.sum(x, 1))",
        "tl.sum((tl.sum(x, 1) / N).to(tl.float32), 0)",
        "tl.max(tl.max(x, axis=0))",
    ],
)
def test_the_order_of_axes_in_a_whole_reduction_is_no_bug(result: str) -> None:
    assert lines(AXIS, tiles(f"tl.store(y_ptr, {result})")) == []


@pytest.mark.parametrize(
    "result", ["tl.max(tl.sum(x, axis=1), axis=0)", "tl.max(tl.max(x, 1) / N, 0)"]
)
def test_the_order_of_axes_matters_between_different_steps(result: str) -> None:
    assert lines(AXIS, tiles(f"tl.store(y_ptr, {result})"), "axis")


INNER = """\
@triton.jit
def inner(acc, l, m, q, k_ptr, v_ptr, N, rm, rn, rd, scale, BN: tl.constexpr):
    for start in range(0, N, BN):
        n = start + rn
        k = tl.load(k_ptr + n[None, :] * 64 + rd[:, None], mask=n[None, :] < N, other=0.0)
        s = tl.dot(q, k)
        s = s + tl.where(rm[:, None] >= n[None, :], 0, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1) * scale)
        p = tl.math.exp2(s * scale - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        v = tl.load(v_ptr + n[:, None] * 64 + rd[None, :], mask=n[:, None] < N, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p, v)
        l = l * alpha + tl.sum(p, 1)
        m = m_new
    return acc, l, m
"""


def test_a_function_that_is_given_tiles_tells_their_shapes_by_its_use_of_them() -> None:
    inner = flow(INNER)
    typing = Typing(inner)
    assert not typing.conflicts
    shapes = {inner.source(n): typing.shape(n) for n in inner.expressions()}
    assert shapes["s"] == ("?rm.0", "?rn.0")
    assert shapes["m"] == shapes["l"] == ("?rm.0",)
    assert shapes["acc"] == ("?rm.0", "?rd.0")


def test_the_axis_is_wrong_in_a_function_that_is_given_tiles_too() -> None:
    assert lines(AXIS, INNER) == [
        "m_new = tl.maximum(m, tl.max(s) * scale)",
        "l = l * alpha + tl.sum(p)",
    ]


def test_a_reduction_of_something_unknown_is_left_out() -> None:
    unknown = kernel("tl.store(y_ptr, tl.sum(elsewhere(x_ptr), 1))", parameters="x_ptr, y_ptr")
    assert lines(AXIS, unknown) == []


def test_without_any_maximum_only_overflow_shows_behind_a_narrowed_mask() -> None:
    source = samples.FLASH_EXP.replace(
        's = tl.where(cols[None, :] < N, s, float("-inf"))',
        "ok = cols[None, :] < N\n"
        "        if D > 64:\n"
        "            ok = ok & (rm[:, None] >= cols[None, :])\n"
        "        s = tl.where(ok, s, -1.0e9)",
    ).replace('tl.full([BM], float("-inf")', "tl.full([BM], -1.0e9")
    assert "D > 64" in source and "-1.0e9," in source
    found = {site.variant: site.reveal for site, _ in sites("missing-max-subtraction", source)}
    assert found == {
        "": (Reveal.RISING, Reveal.SEVERAL_BLOCKS),
        "linked": (Reveal.LARGE_MAGNITUDE,),
    }
