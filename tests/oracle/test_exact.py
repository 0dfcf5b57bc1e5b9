"""Claims about exact mode: what is exact, up to where, and that nothing is left out in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeAlias

import numpy as np
import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for, make_case, why_no_case
from gatecert.oracle.comparators import Absolute, judge
from gatecert.oracle.comparators.where_exact import exactly_compared, judge_where_exact
from gatecert.oracle.exact import Kind, allowance, linear, quantum_of, selecting
from gatecert.oracle.expectation import ExpectedOutput, expect
from gatecert.oracle.formats import FORMATS, torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation, operation, tensor
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.oracle.values import EXACT_RECIPES, PROBES
from tests.oracle.expectations import expected, output

Vector: TypeAlias = Annotated[torch.Tensor, tensor("N")]
EXACT = [found for found in operations() if found.exact is not None]
LINEAR = [found for found in EXACT if found.exact and found.exact.kind is Kind.LINEAR]
EVERY = pytest.mark.parametrize("made", EXACT, ids=lambda found: found.name)


def case_of(made: Operation, recipe: str, dtype: str = "float16", size: int = 65) -> Case:
    sizes = {
        dim: made.sizes[dim][0] if dim in made.sizes else size if dim in made.tiled else 3
        for dim in made.dims
    }
    return make_case(made, sizes, dtype=dtype, recipe=recipe, turn=1)


def outputs_of(
    made: Operation, case: Case, intermediate: str | None = None
) -> list[ExpectedOutput]:
    inputs = make_inputs(made, case)
    return list(expect(made, case, inputs, intermediate=intermediate).outputs)


def in_float32(made: Operation, case: Case, order: int = 1) -> list[torch.Tensor]:
    """What float32 arithmetic gives, rounded once to each output's dtype."""
    args = [
        arg.float() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
        for arg in make_inputs(made, case).args
    ]
    found = made.call(made.second if order < 0 else made.reference, args)
    results = found if isinstance(found, tuple) else (found,)
    return [
        result.to(torch_dtype(spec.dtype(case.dtype)))
        for spec, result in zip(made.outputs, results, strict=True)
    ]


@pytest.mark.parametrize("bits", [8, 11, 24])
@pytest.mark.parametrize("factors", [1, 2])
@pytest.mark.parametrize("terms", [1, 3, 64, 255, 4096, 74_565, 74_566, 10**6, 2**24])
def test_the_largest_allowed_values_sum_to_no_more_than_the_accumulator_holds(
    bits: int, factors: int, terms: int
) -> None:
    found = allowance(bits, terms, factors, FORMATS["float32"])
    if terms <= 2**bits:
        assert found.density == 1.0
        assert terms * found.magnitude**factors <= 2**bits
        assert found.magnitude == 15 or terms * (found.magnitude + 1) ** factors > 2**bits
        # A product's binades, and the carries of the sum, fit its bits.
        assert terms * 2 ** (factors * found.exponents) <= 2**bits
    else:
        assert (found.magnitude, found.exponents) == (1, 0)
        assert terms * found.density**factors == pytest.approx(2**bits / 2)


def test_where_a_sum_is_too_long_for_its_accumulator_fewer_values_differ_from_zero() -> None:
    # CUDA-L2 draws zeros and ones for K up to 16384 and ignores sums past 2047 in silence.
    densities = [allowance(11, terms, 2, FORMATS["float16"]).density for terms in (2048, 8192)]
    assert densities == [1.0, pytest.approx((2048 / 8192 / 2) ** 0.5)]


@pytest.mark.parametrize(
    ("values", "quantum"),
    [([1.0, -3.0], 1.0), ([0.5, 12.0], 0.5), ([0.0, 0.0], 1.0), ([2.0**-24, 1.0], 2.0**-24),
     ([8.0], 1.0), ([float("inf"), 0.75], 0.25)],
)  # fmt: skip
def test_the_quantum_divides_every_value(values: list[float], quantum: float) -> None:
    assert quantum_of(np.array(values)) == quantum


@EVERY
@pytest.mark.parametrize("dtype", FORMATS)
def test_float32_arithmetic_in_any_order_equals_the_reference_where_it_says_exact(
    made: Operation, dtype: str
) -> None:
    compared = 0
    for recipe in (name for name in EXACT_RECIPES if name in made.recipes):
        case = case_of(made, recipe, dtype)
        for order in (1, -1):
            results = in_float32(made, case, order)
            for wanted, found in zip(outputs_of(made, case), results, strict=True):
                if exactly_compared(wanted):
                    compared += exactly_compared(wanted)
                    judgement = judge_where_exact(RoundingInterval(), wanted, found)
                    assert judgement.passed, (case.id, order, judgement)
    assert compared >= 8


@pytest.mark.parametrize("made", LINEAR, ids=lambda found: found.name)
def test_every_element_that_is_declared_linear_is_exact_on_short_sums(made: Operation) -> None:
    assert made.exact is not None
    for recipe in EXACT_RECIPES:
        for wanted in outputs_of(made, case_of(made, recipe)):
            if not made.exact.outputs or wanted.name in made.exact.outputs:
                assert wanted.exact is not None and wanted.exact.all(), (recipe, wanted.name)
            else:
                assert wanted.exact is None


def test_ordinary_values_of_a_linear_operation_are_judged_by_the_tolerance() -> None:
    for made in LINEAR:
        assert all(wanted.exact is None for wanted in outputs_of(made, case_of(made, "normal")))


@pytest.mark.parametrize("name", ["embedding", "transpose", "argmax"])
def test_what_selects_is_exact_on_every_recipe(name: str) -> None:
    made = get_operation(name)
    for recipe in made.recipes:
        (wanted,) = outputs_of(made, case_of(made, recipe))
        assert exactly_compared(wanted) == wanted.reference.size, recipe


def test_long_sums_are_exact_up_to_where_the_accumulator_holds_them_and_no_further() -> None:
    made = get_operation("cumsum")
    case = Case("cumsum", (("B", 1), ("N", 2000)), "float32", recipe="small_integers",
                scalars=(("reverse", 0),))  # fmt: skip
    (wanted,) = outputs_of(made, case, intermediate="float16")
    assert wanted.exact is not None
    magnitudes = np.cumsum(np.abs(make_inputs(made, case).args[0].numpy()[0]))
    assert np.array_equal(wanted.exact[0], magnitudes <= 2048)
    assert 0 < exactly_compared(wanted) < 2000


def test_an_operation_is_exact_only_at_the_scalars_that_it_names() -> None:
    made = get_operation("dropout")
    case = case_of(made, "ternary")
    assert dict(case.scalars)["p"] == 0.5
    (wanted,) = outputs_of(made, case)
    assert exactly_compared(wanted) == wanted.reference.size
    seed = dict(case.scalars)["seed"]
    other = Case(case.operation, case.dims, case.dtype, recipe="ternary",
                 scalars=(("p", 0.3), ("seed", seed)))  # fmt: skip
    assert outputs_of(made, other)[0].exact is None


def test_one_step_of_the_output_is_wrong_in_exact_mode_whatever_the_tolerance() -> None:
    made = get_operation("matmul")
    case = case_of(made, "small_integers", "float32")
    (wanted,) = outputs_of(made, case)
    (right,) = in_float32(made, case)
    wrong = right.clone()
    wrong[1, 2] = torch.nextafter(wrong[1, 2], torch.tensor(torch.inf))
    assert judge(RoundingInterval(), wanted, wrong).passed
    judgement = judge_where_exact(Absolute(1.0), wanted, wrong)
    assert not judgement.passed
    assert (judgement.mismatched, judgement.compared) == (1, right.numel())
    assert judgement.worst_index == (1, 2)


def test_a_narrow_accumulator_is_seen_by_small_integers_and_not_by_ternary_values() -> None:
    made = get_operation("matmul")
    seen = {}
    for recipe in ("ternary", "small_integers"):
        case = case_of(made, recipe, "float16", size=97)
        (wanted,) = outputs_of(made, case)
        a, b = make_inputs(made, case).args
        total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float16)
        for k in range(a.shape[1]):
            total += torch.outer(a[:, k], b[k])
        seen[recipe] = not judge_where_exact(RoundingInterval(), wanted, total).passed
    assert seen == {"ternary": False, "small_integers": True}


def mixed(places: list[bool]) -> ExpectedOutput:
    return replace(expected([1.0, 2.0, 3.0]), exact=np.array(places))


def test_elements_that_need_not_be_equal_are_judged_by_the_tolerance_and_all_are_counted() -> None:
    near = output([1.0, 2.0 + 1e-3, 3.0])
    assert judge_where_exact(Absolute(0.1), mixed([True, False, True]), near).passed
    judgement = judge_where_exact(Absolute(0.1), mixed([False, True, True]), near)
    assert (judgement.passed, judgement.reason) == (False, "values")
    assert (judgement.mismatched, judgement.compared, judgement.worst_index) == (1, 3, (1,))
    far = judge_where_exact(Absolute(0.1), mixed([True, False, True]), output([1.0, 9.0, 3.0]))
    assert (far.passed, far.mismatched, far.worst_index) == (False, 1, (1,))
    spoilt = output([1.5, float("nan"), 3.0])
    both = judge_where_exact(Absolute(0.1), mixed([True, False, True]), spoilt)
    assert (both.reason, both.mismatched) == ("nonfinite", 2)


@pytest.mark.parametrize("recipe", PROBES)
def test_probes_belong_to_operations_that_declare_what_is_exact(recipe: str) -> None:
    for made in operations():
        is_linear = made.exact is not None and made.exact.kind is Kind.LINEAR
        assert (recipe in made.recipes) or not is_linear
    assert recipe not in get_operation("softmax").recipes


def test_the_exact_strategy_has_cases_for_exact_operations_alone_and_says_why() -> None:
    softmax = get_operation("softmax")
    assert cases_for(softmax, dtypes=("float32",), strategy="exact") == ()
    said = why_no_case(softmax, "exact", dtypes=("float32",))
    assert said == "operation 'softmax' is neither linear nor selecting: none of it is exact"
    for made in EXACT:
        assert why_no_case(made, "exact", dtypes=("float32",)) is None


def test_a_linear_operation_without_a_shadow_is_refused() -> None:
    def double(x: Vector) -> Vector:
        return 2 * x

    with pytest.raises(UsageError, match="a linear operation needs a shadow"):
        operation(exact=linear())(double)
    operation(exact=selecting())(double)
    with pytest.raises(UsageError, match="exact names output 'y'; there is output"):
        operation(exact=linear(outputs=["y"]), shadow=lambda y, x: y.abs())(double)
