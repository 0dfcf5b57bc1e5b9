"""Which factor a formula loses: the coefficient, not what it multiplies."""

from __future__ import annotations

import libcst as cst
import pytest

from gatecert.operators.facts.constants import literal
from tests.operators.arithmetic import kernel, lines

ROW = (
    "r = tl.program_id(0)",
    "c = tl.arange(0, B)",
    "x = tl.load(x_ptr + r * N + c, mask=c < N, other=0.0)",
)
STORE = "tl.store(y_ptr + r * N + c, {}, mask=c < N)"
WEIGHT = "w = tl.load(w_ptr + c, mask=c < N, other=0.0)"
ROOT = "rstd = tl.rsqrt(tl.sum(x * x, axis=0) + 1e-6)"


def lost(*body: str) -> list[str]:
    return lines("dropped-factor", kernel(*ROW, *body))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("scale * t", "t"),
        ("t * scale", "t"),
        ("(1.0 - scale) * t", "t"),
        ("g * t", "t"),
        ("t * g", "t"),
    ],
)
def test_of_two_scalars_the_parameter_or_the_loaded_one_is_lost(before: str, after: str) -> None:
    body = ("t = tl.sum(x, 0)", "g = tl.load(w_ptr)")
    assert lost(*body, f"tl.store(y_ptr, {before})") == [f"tl.store(y_ptr, {after})"]


def test_both_terms_of_a_blend_lose_their_coefficient() -> None:
    blend = lost("t = tl.sum(x, 0)", "s = tl.max(x, 0)", "t = (1 - scale) * t + scale * (t - s)",
                 "tl.store(y_ptr, t)")  # fmt: skip
    assert blend == ["t = t + scale * (t - s)", "t = (1 - scale) * t + (t - s)"]


def test_a_factor_that_is_a_product_loses_each_of_its_own_factors() -> None:
    found = lost(ROOT, WEIGHT, STORE.format("x * (rstd * w)"))
    assert found == [STORE.format("x * (w)"), STORE.format("x * (rstd)")]


def test_a_weight_times_a_statistic_of_other_data_may_lose_either() -> None:
    found = lost(ROOT, WEIGHT, "g = rstd * w", STORE.format("x * g"))
    assert found == ["g = w", "g = rstd", STORE.format("x")]


def test_a_chain_of_coefficients_never_loses_the_data_at_its_end() -> None:
    found = lost("t = tl.sum(x, 0)", "s = scale * N * t", "tl.store(y_ptr, s)")
    assert found == ["s = scale * t"]
    found = lost("t = tl.sum(x, 0)", STORE.format("scale * N * t * x"))
    assert found == [STORE.format("scale * N * x"), STORE.format("scale * t * x")]


def test_data_times_its_own_statistic_loses_the_statistic_alone() -> None:
    body = ("c = tl.arange(0, B)", "x = tl.load(x_ptr + c)", ROOT, "tl.store(y_ptr + c, x * rstd)")
    assert lines("dropped-factor", kernel(*body)) == ["tl.store(y_ptr + c, x)"]


def test_of_two_loaded_tiles_either_may_be_the_weight() -> None:
    w = "w = tl.load(w_ptr + r * N + c, mask=c < N, other=0.0)"
    found = lost(w, STORE.format("w * x"))
    assert found == [STORE.format("x"), STORE.format("w")]


def test_a_matrix_summed_against_a_vector_is_a_contraction() -> None:
    body = (
        "r = tl.program_id(0) * B + tl.arange(0, B)",
        "c = tl.arange(0, 2 * B)",
        "a = tl.load(x_ptr + r[:, None] * N + c[None, :])",
        "v = tl.load(w_ptr + c)",
        "u = tl.load(w_ptr + r)",
        "tl.store(y_ptr + r, tl.sum(a * v[None, :], 1))",
        "tl.store(y_ptr + r, tl.sum(a * u[:, None], 1))",
    )
    assert lines("dropped-factor", kernel(*body)) == ["tl.store(y_ptr + r, tl.sum(a, 1))"]


def test_a_number_does_not_stay_alone_where_the_data_is_lost() -> None:
    tanh = kernel("return 2.0 * tl.sigmoid(2.0 * x) - 1.0", parameters="x")
    assert lines("dropped-factor", tanh) == [
        "return tl.sigmoid(2.0 * x) - 1.0",
        "return 2.0 * tl.sigmoid(x) - 1.0",
    ]
    assert lines("dropped-factor", tanh, "kept-number") == []


def test_a_scale_times_a_constant_of_the_module_may_lose_either() -> None:
    found = lost("s = scale * LOG2_E", STORE.format("tl.exp2(x * s)"))
    assert found == ["s = scale", "s = LOG2_E", STORE.format("tl.exp2(x)")]


INDEX = "i = tl.program_id(0) * B + tl.arange(0, B)"
HELPERS = """\
@triton.jit
def inside(i, n):
    return i < n


@triton.jit
def guarded(p, i, n):
    return tl.load(p + i, mask=inside(i, n), other=0.0)


@triton.jit
def put(p, i, value):
    tl.store(p + i, value)


"""


def test_an_index_given_to_a_function_of_the_module_has_no_factor() -> None:
    body = (INDEX, "v = guarded(x_ptr, i, N)", "put(y_ptr, i, v * scale)")
    assert lines("dropped-factor", HELPERS + kernel(*body)) == ["put(y_ptr, i, v)"]


def test_an_index_given_to_a_function_of_another_module_has_no_factor() -> None:
    body = (INDEX, "v = elsewhere(x_ptr, i, N)", "tl.store(y_ptr + i, v * scale, mask=i < N)")
    assert lines("dropped-factor", kernel(*body)) == ["tl.store(y_ptr + i, v, mask=i < N)"]


def test_an_index_that_is_stored_is_data() -> None:
    assert lines("dropped-factor", kernel("i = tl.arange(0, B)", "tl.store(y_ptr + i, i * scale)"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tl.constexpr(2.0)", 2.0),
        ("float(2)", 2.0),
        ("(2.0).to(tl.float32)", 2.0),
        ("-constexpr(2.0)", -2.0),
        ("tl.program_id(0)", None),
        ("tl.log(2.0)", None),
        ("tl.sqrt(2.0)", None),
        ("float('inf')", None),
    ],
)
def test_only_what_keeps_a_number_as_it_is_may_wrap_it(text: str, value: float | None) -> None:
    assert literal(cst.parse_expression(text)) == value
