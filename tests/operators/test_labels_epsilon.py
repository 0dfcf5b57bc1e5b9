"""Which small numbers are an epsilon, and what misplaced-epsilon makes of them."""

from __future__ import annotations

import pytest

from gatecert.operators.records import ObservableBy, Reveal
from tests.operators import arithmetic

NAME = "misplaced-epsilon"
PARAMETERS = "x_ptr, y_ptr, N, eps, B: tl.constexpr, EPS: tl.constexpr"
HEAD = ("cols = tl.arange(0, B)", "x = tl.load(x_ptr + cols)", "v = tl.sum(x * x)")
STORE = "tl.store(y_ptr + cols, {})"


def kernel(*lines: str) -> str:
    return arithmetic.kernel(*HEAD, *lines, parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x / tl.sqrt(v + eps)", ["x / (tl.sqrt(v) + eps)", "x / tl.sqrt(v)"]),
        ("x / tl.sqrt_rn(EPS + v)", ["x / (tl.sqrt_rn(v) + EPS)", "x / tl.sqrt_rn(v)"]),
        (
            "x * inverse_root(v + eps.to(tl.float32))",
            ["x * (1.0 / (tl.sqrt(v) + eps.to(tl.float32)))", "x * inverse_root(v)"],
        ),
        ("x * tl.rsqrt(v / N + 1e-6)", ["x * (1.0 / (tl.sqrt(v / N) + 1e-6))",
                                        "x * tl.rsqrt(v / N)"]),
        ("x / (tl.sqrt(v) + eps)", ["x / (tl.sqrt(v))"]),
        ("x / tl.maximum(v - N, 1e-12)", ["x / (v - N)"]),
        ("x / max(1e-12, v)", ["x / v"]),
        ("tl.log(v + eps)", ["tl.log(v)"]),
    ],
)  # fmt: skip
def test_an_epsilon_is_put_outside_the_root_or_dropped(line: str, expected: list[str]) -> None:
    assert arithmetic.lines(NAME, kernel(STORE.format(line))) == [STORE.format(e) for e in expected]


def test_every_misplaced_epsilon_shows_near_zero() -> None:
    sites = arithmetic.sites(NAME, kernel(STORE.format("x * tl.rsqrt(v + eps)")))
    assert [(s.variant, s.observable_by, s.reveal) for s, _ in sites] == [
        (variant, (ObservableBy.VALUES,), (Reveal.NEAR_ZERO,)) for variant in ("outside", "dropped")
    ]


def test_a_sum_with_a_name_is_followed_to_its_root() -> None:
    lines = ("s = v + eps", STORE.format("x * tl.rsqrt(s)"))
    dropped = ["s = v", STORE.format("x * (1.0 / (tl.sqrt(s) + eps))")]
    assert arithmetic.lines(NAME, kernel(*lines), "outside") == dropped
    assert arithmetic.lines(NAME, kernel(*lines), "dropped") == ["s = v"]


def test_a_sum_that_is_used_twice_is_only_dropped() -> None:
    lines = ("s = v + eps", STORE.format("x * tl.rsqrt(s) / s"))
    assert arithmetic.lines(NAME, kernel(*lines)) == ["s = v"]


@pytest.mark.parametrize(
    "line",
    [
        # A number of the formula.
        "tl.log(v + 1.0)",
        # Added to what is stored, or to a numerator.
        "x + eps",
        "(x + 1e-6) / v",
        # A parameter that does something else besides.
        "x / tl.sqrt(v + eps) * eps",
        # Nothing is undefined at zero here.
        "tl.exp(v + 1e-6)",
        "tl.maximum(x, 1e-6)",
        # An integer.
        "x / (N + tl.program_id(0))",
    ],
)
def test_a_number_that_keeps_nothing_off_zero_is_no_epsilon(line: str) -> None:
    assert arithmetic.sites(NAME, kernel(STORE.format(line))) == []
