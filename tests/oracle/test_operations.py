from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import Exact, judge
from gatecert.oracle.expectation import Expected, expect
from gatecert.oracle.formats import FORMATS, is_float_format, to_float64, torch_dtype
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.operations import get_operation, operations, resolve_operation
from gatecert.oracle.schema import Operation
from gatecert.oracle.tolerance import FP32_UNIT, RoundingInterval
from gatecert.oracle.values import RECIPES

EVERY = pytest.mark.parametrize("operation", operations(), ids=lambda found: found.name)


def certify_cases(operation: Operation, *dtypes: str) -> tuple[Case, ...]:
    return cases_for(
        operation, dtypes=dtypes, layouts=("contiguous", "row_padded", "transposed"), seed=5
    )


def as_float(args: tuple[object, ...], dtype: torch.dtype) -> list[object]:
    def convert(arg: object) -> object:
        return arg.to(dtype) if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg

    return [convert(arg) for arg in args]


def results_of(
    formulation: object, operation: Operation, inputs: Inputs, dtype: torch.dtype
) -> tuple[torch.Tensor, ...]:
    """Of a formulation in that arithmetic: the results that these inputs have."""
    return operation.returned(
        inputs.args, operation.call(formulation, as_float(inputs.args, dtype))
    )


def as_kernel_would_return(results: Sequence[torch.Tensor], made: Expected) -> list[torch.Tensor]:
    """Rounded to the outputs' dtypes; what an integer output is rounded from, to the nearest."""
    return [
        (result if is_float_format(output.dtype) else result.round()).to(torch_dtype(output.dtype))
        for result, output in zip(results, made.outputs, strict=True)
    ]


@EVERY
def test_the_reference_agrees_with_an_independent_formulation_to_float64_rounding(
    operation: Operation,
) -> None:
    for case in certify_cases(operation, "float32"):
        inputs = make_inputs(operation, case)
        expected = expect(operation, case, inputs)
        found = results_of(operation.second, operation, inputs, torch.float64)
        for made, result in zip(expected.outputs, found, strict=True):
            second = result.detach().numpy()
            assert np.array_equal(np.isfinite(made.reference), np.isfinite(second)), case.id
            finite = np.isfinite(second)
            apart = np.abs(made.reference[finite] - second[finite])
            growth = max(1.0, made.reduction_length / 128)
            # The same model as for kernels, with float64's unit in place of float32's.
            allowed = 16 * 2.0**-53 * growth * made.shadow[finite] + 2.0**-125
            assert (apart <= allowed).all(), (case.id, made.name)


@EVERY
@pytest.mark.parametrize("dtype", FORMATS)
def test_correct_float32_arithmetic_is_accepted_with_room_to_spare(
    operation: Operation, dtype: str
) -> None:
    for case in certify_cases(operation, dtype):
        inputs = make_inputs(operation, case)
        expected = expect(operation, case, inputs)
        for formulation in (operation.reference, operation.second):
            found = results_of(formulation, operation, inputs, torch.float32)
            results = as_kernel_would_return(found, expected)
            for made, result in zip(expected.outputs, results, strict=True):
                judgement = judge(RoundingInterval(), made, result)
                assert judgement.score <= 0.5, (case.id, made.name, judgement)


@EVERY
@pytest.mark.parametrize("dtype", FORMATS)
def test_a_result_wrong_by_one_part_in_a_thousand_is_rejected(
    operation: Operation, dtype: str
) -> None:
    rejected: set[str] = set()
    rounded_back: set[str] = {spec.name for spec in operation.outputs if spec.is_float}
    for case in certify_cases(operation, dtype):
        inputs = make_inputs(operation, case)
        expected = expect(operation, case, inputs)
        found = results_of(operation.reference, operation, inputs, torch.float64)
        right = as_kernel_would_return(found, expected)
        wrong = as_kernel_would_return([part * 1.001 for part in found], expected)
        # A copy of bfloat16 values times 1.001 is rounded to the same values.
        rounded_back -= {
            made.name
            for made, a, b in zip(expected.outputs, right, wrong, strict=True)
            if not np.array_equal(to_float64(a), to_float64(b), equal_nan=True)
        }
        rejected |= {
            made.name
            for made, result in zip(expected.outputs, wrong, strict=True)
            if not judge(RoundingInterval(), made, result).passed
        }
    floats = {spec.name for spec in operation.outputs if spec.is_float}
    assert rejected >= floats - rounded_back


@EVERY
def test_zeros_are_rejected_in_the_first_case_of_every_dtype(operation: Operation) -> None:
    for case in certify_cases(operation, *FORMATS)[: len(FORMATS)]:
        for made in expect(operation, case, make_inputs(operation, case)).outputs:
            zeros = torch.zeros(made.shape, dtype=torch_dtype(made.dtype))
            assert not judge(RoundingInterval(), made, zeros).passed, made.name


@EVERY
def test_shadows_are_finite_positive_magnitudes_at_least_as_large_as_the_output(
    operation: Operation,
) -> None:
    for case in certify_cases(operation, *FORMATS):
        for made in expect(operation, case, make_inputs(operation, case)).outputs:
            assert np.isfinite(made.shadow).all()
            if not is_float_format(made.dtype):
                continue
            finite = np.isfinite(made.reference)
            sizes = np.abs(made.reference[finite])
            assert (made.shadow[finite] >= sizes * (1 - 1e-12)).all(), (case.id, made.name)


@EVERY
def test_no_case_overflows_its_own_dtype(operation: Operation) -> None:
    for case in certify_cases(operation, *FORMATS):
        # A mean over no rows is NaN.
        all_marked = case.recipe == "ties" and any(x.all_marked for x in operation.tensors)
        if all_marked or not RECIPES[case.recipe].finite:
            continue
        for made in expect(operation, case, make_inputs(operation, case)).outputs:
            if made.dtype in FORMATS:
                largest = FORMATS[made.dtype].largest
                assert np.abs(made.reference).max() < largest / 2, (case.id, made.name)


def test_a_constant_wrong_by_1e_5_is_seen_in_float16_softmax() -> None:
    operation = get_operation("softmax")
    case = Case("softmax", (("B", 40), ("N", 128)), "float16")
    inputs = make_inputs(operation, case)
    made = expect(operation, case, inputs).outputs[0]
    right = torch.from_numpy(made.reference)
    assert judge(RoundingInterval(), made, right.to(torch.float16)).passed
    assert not judge(RoundingInterval(), made, (right * (1 + 1e-5)).to(torch.float16)).passed


@pytest.mark.parametrize("dtype", FORMATS)
def test_sums_of_ternary_products_are_exact_in_any_order(dtype: str) -> None:
    operation = get_operation("matmul")
    case = Case("matmul", (("M", 5), ("K", 400), ("N", 7)), dtype, recipe="ternary")
    a, b = (t.float() for t in make_inputs(operation, case).args)
    made = expect(operation, case, make_inputs(operation, case)).outputs[0]
    split = a[:, :129] @ b[:129] + (a[:, 129:].flip(1) @ b[129:].flip(0))
    assert judge(Exact(), made, split.to(torch_dtype(dtype))).passed
    short = a[:, :-1] @ b[:-1]
    assert not judge(Exact(), made, short.to(torch_dtype(dtype))).passed


def test_one_pass_accumulation_in_float16_is_rejected_where_float32_was_promised() -> None:
    operation = get_operation("matmul")
    case = Case("matmul", (("M", 16), ("K", 256), ("N", 16)), "float16")
    a, b = make_inputs(operation, case).args
    made = expect(operation, case, make_inputs(operation, case)).outputs[0]
    total = torch.zeros(16, 16, dtype=torch.float16)
    for k in range(256):
        total += torch.outer(a[:, k], b[k])
    assert not judge(RoundingInterval(), made, total).passed


def test_probabilities_rounded_to_16_bits_pass_only_where_that_is_declared() -> None:
    operation = get_operation("attention")
    dims = (("B", 2), ("H", 2), ("S", 33), ("D", 40), ("T", 65))
    case = Case("attention", dims, "bfloat16")
    inputs = make_inputs(operation, case)
    q, k, v = (t.float() for t in inputs.args)
    weights = torch.softmax(q @ k.mT / 40**0.5, -1).to(torch.bfloat16).float()
    result = (weights @ v).to(torch.bfloat16)
    undeclared = expect(operation, case, inputs).outputs[0]
    declared = expect(operation, case, inputs, intermediate="input").outputs[0]
    assert not judge(RoundingInterval(), undeclared, result).passed
    assert judge(RoundingInterval(), declared, result).passed


def test_declaring_the_input_dtype_allows_nothing_more_in_float32() -> None:
    operation = get_operation("matmul")
    case = Case("matmul", (("M", 2), ("K", 3), ("N", 2)), "float32")
    inputs = make_inputs(operation, case)
    assert expect(operation, case, inputs, intermediate="input").outputs[0].mid_unit == 0.0
    assert expect(operation, case, inputs, intermediate="tf32").outputs[0].mid_unit == 2.0**-11
    assert FP32_UNIT == 2.0**-24


def test_causal_attention_does_not_see_later_keys() -> None:
    operation = get_operation("attention_causal")
    q, k, v = torch.randn(3, 1, 2, 9, 16, dtype=torch.float64).unbind(0)
    before = operation.reference(q, k, v)
    k[:, :, 5:], v[:, :, 5:] = 7.0, -3.0
    after = operation.reference(q, k, v)
    assert torch.equal(before[:, :, :5], after[:, :, :5])
    assert not torch.equal(before[:, :, 5:], after[:, :, 5:])


def test_attention_scores_rise_along_the_keys_under_the_rising_recipe() -> None:
    operation = get_operation("attention")
    dims = (("B", 1), ("H", 2), ("S", 3), ("D", 40), ("T", 97))
    for recipe, grows in (("rising", True), ("falling", False)):
        q, k, _ = make_inputs(operation, Case("attention", dims, "float32", recipe=recipe)).args
        scores = (q @ k.mT)[..., ::32]
        assert (scores.diff(dim=-1) > 0).all().item() is grows


def test_ignored_targets_do_not_count_in_the_mean() -> None:
    operation = get_operation("cross_entropy")
    logits = torch.randn(4, 7, dtype=torch.float64)
    target = torch.tensor([1, -100, 3, -100])
    kept = operation.reference(logits[::2], target[::2])
    assert torch.equal(operation.reference(logits, target), kept)


def test_head_sizes_that_are_no_powers_of_two_are_in_the_domain() -> None:
    for name in ("attention", "attention_causal"):
        assert 40 in get_operation(name).sizes["D"]


def test_an_unknown_operation_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'softmax'"):
        get_operation("sofmax")


def test_a_users_operation_is_found_by_module_and_attribute() -> None:
    found = resolve_operation("gatecert.oracle.operations.rows:softmax")
    assert found is get_operation("softmax")
    with pytest.raises(UsageError, match="has no operation 'IGNORED'"):
        resolve_operation("gatecert.oracle.operations.rows:IGNORED")
    with pytest.raises(EnvironmentFailure, match="ModuleNotFoundError"):
        resolve_operation("no_such_module:thing")
