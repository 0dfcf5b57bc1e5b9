"""Labels of the arithmetic operators, reasoned out by hand on kernels of several spellings.

Each row is one mutant: the operator and variant, the changed line, and what must show it.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gatecert.operators.records import ObservableBy, Operator, Reveal, Site
from gatecert.operators.registry import get_operator
from tests.operators import sample_kernels as samples

ANY = (Reveal.ANY,)
BLOCKS = (Reveal.SEVERAL_BLOCKS,)
RISING = (Reveal.RISING, Reveal.SEVERAL_BLOCKS)
LARGE = (Reveal.LARGE_MAGNITUDE,)
ROWS = (Reveal.SEVERAL_ROWS,)
ROWS_FAR_APART = (Reveal.SEVERAL_ROWS, Reveal.LARGE_MAGNITUDE)
ZERO = (Reveal.NEAR_ZERO,)
NOTHING: tuple[Reveal, ...] = ()
"""No run shows it: not observable."""

NORM_STORE = "tl.store(y_ptr + tl.program_id(0) * N + cols, {}, mask=cols < N)"
NEW_SUM = "tl.sum(tl.exp2((x - m) * LOG2_E))"
NO_LOG2_E = "tl.sum(tl.exp2((x - m)))"
STORE = "tl.store(y_ptr + cols, {}, mask=cols < N)"


class Row(NamedTuple):
    line: str
    reveal: tuple[Reveal, ...]
    variant: str = ""


def planted(operator: Operator, source: str) -> list[tuple[Site, list[str]]]:
    """Sites with the lines that differ from the original."""
    kernel = samples.kernel(source)
    text = kernel.module.text
    found = []
    for site in operator.find(kernel):
        mutant = text
        for edit in sorted(site.edits, reverse=True):
            mutant = mutant[: edit.start] + edit.text + mutant[edit.end :]
        pairs = zip(text.splitlines(), mutant.splitlines(), strict=True)
        found.append((site, [new.strip() for old, new in pairs if old != new]))
    return found


def rows(name: str, source: str, *variants: str) -> list[Row]:
    """One row per mutant (of some variants only), with the first line that changed."""
    found = []
    for site, lines in planted(get_operator(name), source):
        visible = site.observable_by == (ObservableBy.VALUES,)
        assert visible or (site.observable_by, site.reveal) == ((), ())
        if not variants or site.variant in variants:
            found.append(Row(lines[0], site.reveal, site.variant))
    return found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (samples.MATMUL, [Row("acc = tl.dot(a, b)", BLOCKS)]),
        (
            samples.LAYER_NORM,
            [
                Row("total = tl.sum(tl.load(x_ptr + cols, mask=cols < N, other=0.0))", BLOCKS),
                Row("squares = centred * centred", BLOCKS),
            ],
        ),
        (samples.ONLINE_SOFTMAX, [Row("d = tl.sum(tl.exp2((x - m) * LOG2_E))", BLOCKS)]),
        (
            samples.FLASH_EXP,
            [
                Row("l_i = tl.sum(p, 1)", BLOCKS),
                Row("acc = tl.dot(p.to(tl.float16), v)", BLOCKS),
            ],
        ),
        (samples.FLASH_EXP2, [Row("l_i = p.sum(1)", BLOCKS), Row("acc = tl.dot(p, v)", BLOCKS)]),
        (samples.ONE_BLOCK_SOFTMAX, []),
        (samples.GELU_TANH, []),
    ],
)
def test_an_overwritten_accumulator_shows_on_several_blocks(
    source: str, expected: list[Row]
) -> None:
    assert rows("accumulator-overwrite", source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (samples.ONLINE_SOFTMAX, ["d = tl.sum(tl.exp2((x - m) * LOG2_E)) + d"]),
        (samples.FLASH_EXP, ["l_i = l_i + tl.sum(p, 1)", "pass"]),
        (samples.FLASH_EXP2, ["l_i = l_i + p.sum(1)", "acc = tl.dot(p, v, acc=acc)"]),
        (samples.LOG_SOFTMAX, []),
    ],
)
def test_a_missing_rescale_shows_once_the_maximum_rises(source: str, expected: list[str]) -> None:
    assert rows("missing-rescale", source) == [Row(line, RISING) for line in expected]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        # exp(x) = exp(m) exp(x - m), and exp(m) cancels: only overflow shows it.
        (samples.ONE_BLOCK_SOFTMAX, [Row("z = x", LARGE)]),
        (samples.LOG_SOFTMAX, [Row("z = x", LARGE)]),
        (samples.ROWS_SOFTMAX, [Row("e = tl.math.exp2((x) * 1.44269504)", LARGE)]),
        (samples.SCALED_SOFTMAX_WEIGHTS, [Row("w = tl.exp(x) * 0.5", LARGE)]),
        # Sum and output disagree about the maximum; with both gone only overflow is left.
        (
            samples.ONLINE_SOFTMAX,
            [
                Row("d = tl.sum(tl.exp2((x) * LOG2_E)) + d * tl.exp2((m_old - m) * LOG2_E)", ANY),
                Row(STORE.format("tl.exp(x) / d"), ANY),
                Row("d = tl.sum(tl.exp2((x) * LOG2_E)) + d", LARGE, "linked"),
            ],
        ),
        # Sum and output share p, so the factor cancels while the maximum stays.
        (
            samples.FLASH_EXP,
            [Row("p = tl.exp(s)", RISING), Row("p = tl.exp(s)", LARGE, "linked")],
        ),
        # The stored log-sum-exp adds the maximum back; the sum starts at 1 when nothing
        # multiplies it by exp(-inf - m) any more.
        (
            samples.FLASH_EXP2,
            [Row("p = tl.math.exp2(s)", ANY), Row("p = tl.math.exp2(s)", ANY, "linked")],
        ),
        (samples.LAYER_NORM, []),
    ],
)
def test_a_missing_maximum_shows_where_it_does_not_cancel(source: str, expected: list[Row]) -> None:
    assert rows("missing-max-subtraction", source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (samples.FLASH_EXP, ["q = (q).to(tl.float16)"]),
        (samples.FLASH_EXP2, ["qk_scale = 1.44269504", "s = tl.dot(q, k)"]),
        (samples.ROWS_SOFTMAX, []),
        (samples.SCALED_SOFTMAX_WEIGHTS, []),
    ],
)
def test_the_softmax_scale_is_known_by_what_it_feeds(source: str, expected: list[str]) -> None:
    found = rows("dropped-factor", source, "softmax-scale")
    assert found == [Row(line, ANY, "softmax-scale") for line in expected]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            samples.LAYER_NORM,
            [
                Row("mean = total", ANY),
                Row("rstd = inverse_root(tl.sum(squares, axis=0) + 1e-5)", ANY),
                Row(NORM_STORE.format("(x - mean) * rstd + b"), ANY),
                Row(NORM_STORE.format("(x - mean) * w + b"), ANY),
            ],
        ),
        (
            samples.GELU_ERF,
            [
                Row(STORE.format("0.5 * x"), ANY),
                Row(STORE.format("x * (1.0 + libdevice.erf(x * 0.70710678))"), ANY),
                Row(STORE.format("0.5 * x * (1.0 + libdevice.erf(x))"), ANY),
            ],
        ),
        # The 0.5 is in numerator and denominator.
        (
            samples.SCALED_SOFTMAX_WEIGHTS,
            [
                Row("w = tl.exp(x - tl.max(x, axis=0))", NOTHING),
                Row("tl.store(y_ptr, tl.sum(w * v, axis=0))", ANY),
                Row("tl.store(y_ptr, tl.sum(w, axis=0) / tl.sum(w, axis=0))", ANY),
            ],
        ),
        # In the exponent of a rescale, log2(e) multiplies zero until the maximum rises.
        (
            samples.ONLINE_SOFTMAX,
            [
                Row(f"d = {NO_LOG2_E} + d * tl.exp2((m_old - m) * LOG2_E)", ANY, "log2e"),
                Row(f"d = {NEW_SUM} + d * tl.exp2((m_old - m))", RISING, "log2e"),
                Row(STORE.format("tl.exp(x - m)"), ANY),
            ],
        ),
    ],
)
def test_a_lost_factor_shows_unless_it_cancels(source: str, expected: list[Row]) -> None:
    assert rows("dropped-factor", source) == expected


@pytest.mark.parametrize(
    ("source", "constants"),
    [
        (samples.GELU_ERF, {"0.5": ANY, "1.0": ANY, "0.70710678": ANY}),
        (samples.GELU_TANH, {"0.7978845608": ANY, "0.044715": ANY, "0.5": ANY}),
        (samples.LAYER_NORM, {"1e-5": ZERO}),
        # The sum starts at 1 but is multiplied by exp2(-inf - m) = 0 before it counts.
        (samples.FLASH_EXP2, {"1.0": NOTHING, "1.44269504": ANY}),
        (samples.SCALED_SOFTMAX_WEIGHTS, {"0.5": NOTHING}),
        (samples.ONE_BLOCK_SOFTMAX, {}),
        (samples.MATMUL, {}),
    ],
)
def test_a_wrong_constant_shows_unless_it_cancels_or_is_forgotten(
    source: str, constants: dict[str, tuple[Reveal, ...]]
) -> None:
    found = {}
    for site, _ in planted(get_operator("wrong-constant"), source):
        found[site.detail.split()[2]] = site.reveal
    assert found == constants


def test_at_most_three_mutants_of_a_constant_are_scored() -> None:
    for source in (samples.GELU_ERF, samples.GELU_TANH, samples.LAYER_NORM):
        scored: dict[int, list[str]] = {}
        ladder: set[str] = set()
        for site, _ in planted(get_operator("wrong-constant"), source):
            if site.scored:
                scored.setdefault(site.edits[0].start, []).append(site.variant)
            else:
                ladder.add(site.variant)
        assert ladder == {"x1.001", "x1.0001", "x1.00001"}
        assert all(v[-2:] == ["x1.1", "x1.01"] and len(v) <= 3 for v in scored.values())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            samples.ROWS_SOFTMAX,
            [
                Row("top = tl.max(x, 0)", ROWS, "axis"),
                Row("top = tl.max(x)", ROWS_FAR_APART, "all"),
                Row("total = tl.sum(e, 0)", ROWS, "axis"),
                Row("total = tl.sum(e)", ROWS, "all"),
            ],
        ),
        # Another axis would not fit the carried (BM,) statistics, the whole tile does. A
        # maximum over all rows cancels like any other, also in the log-sum-exp.
        (
            samples.FLASH_EXP,
            [
                Row("m_new = tl.maximum(m_i, tl.max(s))", ROWS_FAR_APART, "all"),
                Row("l_i = l_i * alpha + tl.sum(p)", ROWS, "all"),
            ],
        ),
        (
            samples.FLASH_EXP2,
            [
                Row("m_new = tl.maximum(m_i, tl.max(s))", ROWS_FAR_APART, "all"),
                Row("l_i = tl.math.exp2(m_i - m_new) * l_i + p.sum()", ROWS, "all"),
            ],
        ),
        (samples.ONE_BLOCK_SOFTMAX, []),
        (samples.LAYER_NORM, []),
    ],
)
def test_a_wrong_axis_is_planted_only_where_the_result_still_fits(
    source: str, expected: list[Row]
) -> None:
    assert rows("wrong-reduction-axis", source) == expected


def test_a_constant_of_the_module_is_wrong_wherever_this_kernel_uses_it() -> None:
    found = planted(get_operator("wrong-constant"), samples.ONLINE_SOFTMAX)
    swaps = [lines for site, lines in found if site.variant == "swap"]
    wrong = "0.69314718056"
    assert swaps == [
        [f"d = tl.sum(tl.exp2((x - m) * {wrong})) + d * tl.exp2((m_old - m) * {wrong})"]
    ]
    assert {site.reveal for site, _ in found} == {ANY}
