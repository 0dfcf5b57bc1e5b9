from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from gatecert.oracle.case import Case
from gatecert.oracle.comparators import Judgement, judge
from gatecert.oracle.expectation import expect
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation
from gatecert.oracle.tolerance import RoundingInterval


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def judged(case: Case, outputs: tuple[torch.Tensor, ...]) -> list[Judgement]:
    """The default tolerance on float64 results, rounded to the dtype of each output."""
    operation = get_operation(case.operation)
    made = expect(operation, case, make_inputs(operation, case)).outputs
    return [
        judge(RoundingInterval(), output, found.to(torch_dtype(output.dtype)))
        for output, found in zip(made, outputs, strict=True)
    ]


def float32_inputs(case: Case) -> tuple[torch.Tensor, ...]:
    inputs = make_inputs(get_operation(case.operation), case)
    return tuple(tensor.float() for tensor in inputs.tensors.values())


def test_exponentials_of_log_softmax_sum_to_one() -> None:
    y = get_operation("log_softmax").reference(100 + normal(4, 33))
    assert torch.allclose(y.exp().sum(dim=1), torch.ones(4, dtype=torch.float64))


def test_l2_norm_keeps_rows_of_zeros_and_divides_short_rows_by_epsilon() -> None:
    x = torch.tensor([[0.0, 0.0], [3e-4, 4e-4], [3.0, 4.0]], dtype=torch.float64)
    y = get_operation("l2_norm").reference(x, eps=1e-3)
    assert torch.allclose(y, torch.tensor([[0.0, 0.0], [0.3, 0.4], [0.6, 0.8]]).double())


def test_group_norm_of_one_group_is_layer_norm_of_the_whole_image() -> None:
    x, ones, zeros = normal(3, 6, 11), torch.ones(6).double(), torch.zeros(6).double()
    y = get_operation("group_norm").reference(x, ones, zeros, groups=1, eps=1e-5)
    assert torch.allclose(y, functional.layer_norm(x, (6, 11), eps=1e-5))


def test_a_group_does_not_see_the_other_groups() -> None:
    operation = get_operation("group_norm")
    x, weight, bias = normal(2, 6, 11), normal(6), normal(6)
    before = operation.reference(x, weight, bias, groups=3, eps=1e-5)
    x[:, 2:4] = 7.0
    after = operation.reference(x, weight, bias, groups=3, eps=1e-5)
    assert torch.equal(before[:, [0, 1, 4, 5]], after[:, [0, 1, 4, 5]])
    assert not torch.equal(before[:, 2:4], after[:, 2:4])


def test_the_number_of_groups_always_divides_the_channels() -> None:
    operation = get_operation("group_norm")
    groups = next(spec for spec in operation.scalars if spec.name == "groups").scalar
    for channels in range(1, 5):
        (_, size, _) = operation.tensors[0].shape({"B": 2, "C": channels, "S": 3})
        drawn = range(int(groups.low), int(groups.high) + 1)
        assert all(size % number == 0 for number in drawn)


def test_row_moments_are_those_of_numpy() -> None:
    x = normal(3, 17)
    found = get_operation("row_moments").reference(x)
    for part, function in zip(found, (np.sum, np.mean, np.var), strict=True):
        assert np.allclose(part.numpy(), function(x.numpy(), axis=1))


def test_moments_stay_float32_whatever_is_tested() -> None:
    operation = get_operation("row_moments")
    case = Case("row_moments", (("B", 2), ("N", 5)), "float16")
    made = expect(operation, case, make_inputs(operation, case)).outputs
    assert [output.dtype for output in made] == ["float32"] * 3


@pytest.mark.parametrize("columns", [1, 3, 129, 1024, 4099])
def test_the_variance_that_rounding_leaves_in_rows_of_one_value_is_allowed(columns: int) -> None:
    case = Case("row_moments", (("B", 40), ("N", columns)), "float32", recipe="ties")
    (x,) = float32_inputs(case)
    # One long chain of additions is the worst order.
    mean = (x.cumsum(dim=1)[:, -1:]) / columns
    scatter = (x - mean).square().cumsum(dim=1)[:, -1]
    *_, variance = judged(case, (x.sum(1), x.mean(1), (scatter / columns).double()))
    assert variance.passed, variance


def test_a_variance_over_one_less_is_rejected() -> None:
    case = Case("row_moments", (("B", 4), ("N", 129)), "float32")
    (x,) = float32_inputs(case)
    x = x.double()
    *right, variance = judged(case, (x.sum(1), x.mean(1), x.var(dim=1, unbiased=True)))
    assert all(judgement.passed for judgement in right)
    assert not variance.passed


def test_argmax_takes_the_first_of_equal_values() -> None:
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [-torch.inf, -torch.inf, -1.0]])
    assert get_operation("argmax").reference(x.double()).tolist() == [1, 0, 2]


def test_the_last_of_equal_values_is_rejected() -> None:
    case = Case("argmax", (("B", 4), ("N", 33)), "float16", recipe="ties")
    last = torch.full((4,), 32)
    assert not judged(case, (last,))[0].passed
    assert judged(case, (torch.zeros(4, dtype=torch.int64),))[0].passed


def test_a_carry_that_is_lost_after_the_first_tile_is_rejected() -> None:
    case = Case("cumsum", (("B", 3), ("N", 129)), "bfloat16", scalars=(("reverse", 0),))
    (x,) = float32_inputs(case)
    apart = torch.cat([part.cumsum(dim=1) for part in x.split(64, dim=1)], dim=1)
    assert judged(case, (x.cumsum(dim=1),))[0].passed
    assert not judged(case, (apart,))[0].passed


def test_a_reversed_cumsum_ends_with_the_last_value_alone() -> None:
    x = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64)
    operation = get_operation("cumsum")
    assert operation.reference(x, reverse=1).tolist() == [[7.0, 6.0, 4.0]]
    assert operation.reference(x, reverse=0).tolist() == [[1.0, 3.0, 7.0]]


@pytest.mark.parametrize("name", ["layer_norm_backward", "rms_norm_backward"])
@pytest.mark.parametrize("recipe", ["normal", "large_offset", "ties", "near_zero", "spike"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_gradient_without_its_projection_is_rejected(name: str, recipe: str, dtype: str) -> None:
    operation = get_operation(name)
    case = Case(name, (("B", 5), ("N", 65)), dtype, recipe=recipe, scalars=(("eps", 1e-5),))
    dy, x, weight = (tensor.double() for tensor in float32_inputs(case))
    dx, *others = operation.reference(dy, x, weight, eps=1e-5)
    centred = x - x.mean(dim=1, keepdim=True) if name == "layer_norm_backward" else x
    scale = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + 1e-5)
    short = scale * (dy * weight)
    if name == "layer_norm_backward":
        short = short - short.mean(dim=1, keepdim=True)
    assert all(judgement.passed for judgement in judged(case, (dx, *others)))
    constant_rows = recipe == "ties" and name == "layer_norm_backward"
    # Rows of one value have nothing to project on.
    assert judged(case, (short, *others))[0].passed is constant_rows


@pytest.mark.parametrize("name", ["layer_norm_backward", "rms_norm_backward"])
def test_a_weights_gradient_without_the_last_row_is_rejected(name: str) -> None:
    operation = get_operation(name)
    case = Case(name, (("B", 33), ("N", 3)), "bfloat16", scalars=(("eps", 1e-5),))
    dy, x, weight = (tensor.double() for tensor in float32_inputs(case))
    dx, *others = operation.reference(dy, x, weight, eps=1e-5)
    _, *short = operation.reference(dy[:-1], x[:-1], weight, eps=1e-5)
    assert all(judgement.passed for judgement in judged(case, (dx, *others)))
    assert not any(judgement.passed for judgement in judged(case, (dx, *short))[1:])
