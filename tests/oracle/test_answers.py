# ruff: noqa: F722 (named dims are not types)
"""A reference or shadow that is not what its operation declares is refused, and no kernel is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.cases import make_case
from gatecert.oracle.expectation import Expected, expect
from gatecert.oracle.gradients import grad_of
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.schema import Operation, Tensor, operation, tensor

SIZES = {"B": 3, "N": 5}
ONE, EACH = Tensor["N"], Tensor["B"]


def made(function: Callable[..., Any], **said: Any) -> Operation:
    """An operation of rows with this reference."""

    def rows(x: Tensor["B N"]) -> Tensor["B N"]:
        return function(x)

    return operation(**said)(rows)


def expected(found: Operation, recipe: str = "normal") -> Expected:
    case = make_case(found, SIZES, dtype="float32", recipe=recipe)
    return expect(found, case, make_inputs(found, case))


def refused(found: Operation, said: str, recipe: str = "normal") -> None:
    with pytest.raises(EnvironmentFailure, match=re.escape(said)) as raised:
        expected(found, recipe)
    assert f"operation {found.name!r}" in str(raised.value)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (lambda x: x.float(), "returned float32, which rounds as a kernel does"),
        (lambda x: x > 0, "returned bool where floating-point numbers are declared"),
        (lambda x: x.round().long(), "returned int64 where floating-point numbers are declared"),
        (lambda x: x[:2], "returned shapes [(2, 5)]"),
        (lambda x: None, "returned shapes ['NoneType']"),
        (lambda x: (x, x), "returned shapes [(3, 5), (3, 5)]"),
        (lambda x: x / torch.zeros(7), "its reference raised RuntimeError"),
        (lambda x: {}["key"], "its reference raised KeyError: 'key'"),
    ],
)
def test_a_reference_that_gives_what_is_not_declared_is_refused(
    reference: Callable[..., Any], said: str
) -> None:
    refused(made(reference), said)


@pytest.mark.parametrize("number", [np.nan, np.inf, -1.0])
def test_a_shadow_that_is_no_magnitude_is_refused(number: float) -> None:
    def shadow(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        found = y.abs()
        found[1, 2] = number
        return found

    refused(made(lambda x: 2 * x, shadow=shadow), f"its shadow is {number} at output[1, 2]")


def test_a_shadow_may_be_anything_where_the_reference_is_not_finite() -> None:
    found = made(lambda x: 2 * x, shadow=lambda y, x: y.abs(), recipes=("nonfinite",))
    assert expected(found, "nonfinite").outputs[0].shadow.shape == (3, 5)


@pytest.mark.parametrize(
    ("shadow", "said"),
    [
        (lambda y, x: y.abs()[:2], "its shadow returned shapes [(2, 5)]"),
        (lambda y, x: (y.abs(), y.abs()), "its shadow returned shapes [(3, 5), (3, 5)]"),
        (lambda y, x: y.abs() @ x, "its shadow raised RuntimeError"),
        (lambda y: y.abs(), "its shadow raised TypeError"),
    ],
)
def test_a_shadow_of_another_shape_or_signature_is_refused(
    shadow: Callable[..., Any], said: str
) -> None:
    refused(made(lambda x: 2 * x, shadow=shadow), said)


def test_a_shadow_may_be_a_number_or_a_row() -> None:
    for shadow in (lambda y, x: 3.0, lambda y, x: y.abs().amax(0)):
        assert expected(made(lambda x: 2 * x, shadow=shadow)).outputs[0].shadow.shape == (3, 5)


@operation()
def counts(x: Tensor["B N"]) -> tensor("B", kind="int32"):
    return (x > 0).sum(1) * 2**31


@operation()
def codes(x: Tensor["B N"]) -> tensor("B N", kind="int8"):
    return x * 100


@operation()
def nowhere(x: Tensor["B N"]) -> tensor("B N", kind="int8"):
    return x / 0.0


def test_integers_that_their_kind_cannot_hold_are_refused() -> None:
    refused(counts, "which int32 cannot hold (-2147483648 to 2147483647)")
    refused(codes, "which int8 cannot hold (-128 to 127)")
    refused(nowhere, "NaN or infinity, which int8 has not")


def test_what_a_reference_writes_into_reaches_no_kernel() -> None:
    @operation()
    def gathers(
        x: Tensor["B N"], index: Tensor.int("B", high="N"), keep: Tensor.mask("B N")
    ) -> Tensor["B N"]:
        y = x * 1.0
        index.zero_()
        keep.fill_(False)
        x.zero_()
        return y

    case = make_case(gathers, {"B": 6, "N": 9}, dtype="float32")
    inputs, untouched = make_inputs(gathers, case), make_inputs(gathers, case)
    expect(gathers, case, inputs)
    for one, other in zip(inputs.args, untouched.args, strict=True):
        assert torch.equal(one, other)


@operation()
def detached(x: Tensor["B N"], y: Tensor["B N"]) -> Tensor["B N"]:
    return x.detach() * y


def test_a_gradient_of_what_the_reference_detaches_is_refused_and_not_zero() -> None:
    gradient = grad_of(detached, wrt="x")
    refused(gradient, "no result of detached depends on 'x'")
    refused(grad_of(made(lambda x: x.round().detach()), wrt="x"), "no result of rows depends")
    assert expected(grad_of(detached, wrt="y")).outputs[0].reference.any()


@operation(outputs=["y", "mean"])
def with_a_mean_of_one(x: Tensor["B N"], weight: ONE) -> tuple[Tensor["B N"], EACH]:
    return x * weight, x.mean(1)


def test_a_gradient_is_there_where_one_of_several_results_depends_on_the_input() -> None:
    made_of = expected(grad_of(with_a_mean_of_one, wrt="weight"))
    assert made_of.outputs[0].reference.any()


@pytest.mark.parametrize(
    ("reference", "shadow", "said"),
    [
        (lambda x: x * x, lambda y, x: y.abs(), ""),
        (torch.exp, lambda y, x: y.abs(), "is no sum of products of its inputs"),
        (lambda x: x + 3, lambda y, x: x.abs(), "exceeds its shadow"),
    ],
)
def test_a_claim_of_linearity_that_integers_refute_is_refused(
    reference: Callable[..., Any], shadow: Callable[..., Any], said: str
) -> None:
    from gatecert.oracle.exact import linear

    found = made(reference, shadow=shadow, exact=linear(factors=2 if not said else 1))
    if said:
        refused(found, said, "small_integers")
    else:
        assert expected(found, "small_integers").outputs[0].exact is not None
