# ruff: noqa: F722 (named dims are not types)
"""Noise on every step of a reference stands for a shadow: right kernels pass, wrong ones do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import judge
from gatecert.oracle.expectation import expect
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.schema import Operation, Tensor, operation
from gatecert.oracle.tolerance import RoundingInterval

DTYPES = ("float32", "float16", "bfloat16")


@operation(reduces="N")
def normalised(x: Tensor["B N"]) -> Tensor["B N"]:
    centred = x - x.mean(1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(1, keepdim=True) + 1e-5)


@operation(reduces="N")
def weights(x: Tensor["B N"]) -> Tensor["B N"]:
    return torch.softmax(x, 1)


@operation(reduces="K", contraction=True, tiled="M K N")
def product(a: Tensor["M K"], b: Tensor["K N"]) -> Tensor["M N"]:
    return a @ b


def by_moments(x: torch.Tensor) -> torch.Tensor:
    mean = x.mean(1, keepdim=True)
    return (x - mean) * torch.rsqrt(((x - mean) * (x - mean)).mean(1, keepdim=True) + 1e-5)


def by_exp2(x: torch.Tensor) -> torch.Tensor:
    lifted = torch.exp2((x - x.amax(1, keepdim=True)) * 1.4426950408889634)
    return lifted / lifted.flip(1).cumsum(1)[:, -1:]


def in_turn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(a.shape[0], b.shape[1])
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k : k + 1]
    return total


RIGHT = [(normalised, by_moments), (weights, by_exp2), (product, in_turn)]
NAMES = [found.name for found, _ in RIGHT]


def outcomes(
    found: Operation, kernel: Callable[..., torch.Tensor], factor: float = 1.0
) -> list[bool]:
    """Whether it passes, on each case, in float32 arithmetic and rounded once."""
    passed = []
    for case in cases_for(found, dtypes=DTYPES, strategy="quick", seed=2):
        inputs = make_inputs(found, case)
        (made,) = expect(found, case, inputs).outputs
        result = kernel(*(arg.float() for arg in inputs.args)) * factor
        output = result.to(torch_dtype(case.dtype))
        passed.append(judge(RoundingInterval(), made, output).passed)
    return passed


@pytest.mark.parametrize(("found", "kernel"), RIGHT, ids=NAMES)
def test_right_kernels_in_another_order_pass_without_a_shadow(
    found: Operation, kernel: Callable[..., torch.Tensor]
) -> None:
    assert all(outcomes(found, kernel))


@pytest.mark.parametrize(("found", "kernel"), RIGHT, ids=NAMES)
def test_a_constant_wrong_by_1e_4_does_not_pass_without_a_shadow(
    found: Operation, kernel: Callable[..., torch.Tensor]
) -> None:
    assert not all(outcomes(found, kernel, 1.0001))


def test_a_difference_of_equal_numbers_may_be_as_wrong_as_these_are_rounded() -> None:
    @operation()
    def difference(x: Tensor["B N"]) -> Tensor["B N"]:
        return (x * 3.0) - (x + x + x)

    case = cases_for(difference, dtypes=("float32",), strategy="quick")[1]
    inputs = make_inputs(difference, case)
    (made,) = expect(difference, case, inputs).outputs
    x = inputs.args[0].double().numpy()
    assert (made.shadow > 0.1 * np.abs(x)).mean() > 0.9
    assert (made.shadow < 30 * np.abs(x) + 1e-30).all()


def test_the_same_case_has_the_same_shadow_and_what_only_moves_gets_no_wider() -> None:
    case = cases_for(weights, dtypes=("float32",), strategy="quick")[1]
    inputs = make_inputs(weights, case)
    first, again = (expect(weights, case, inputs).outputs[0].shadow for _ in range(2))
    assert np.array_equal(first, again)

    @operation()
    def moved(x: Tensor["B N"]) -> Tensor["B N"]:
        return x.t().t().reshape(-1).view(x.shape)

    case = cases_for(moved, dtypes=("float32",), strategy="quick")[1]
    inputs = make_inputs(moved, case)
    (made,) = expect(moved, case, inputs).outputs
    assert (made.shadow <= 5.0 * np.abs(inputs.args[0].double().numpy())).all()
