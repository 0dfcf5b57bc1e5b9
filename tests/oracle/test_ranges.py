# ruff: noqa: F722 (named dims are not types)
"""Ranges that hold nothing, or do not fit, are refused by the argument's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.cases import cases_for, make_case
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import operations
from gatecert.oracle.ranges import check_ranges, integer_range
from gatecert.oracle.schema import Operation, Scalar, Tensor, operation, tensor
from gatecert.oracle.specs import TensorSpec

PART, WHOLE = Tensor["N"], Tensor["B"]


def rows(x: Tensor["B N"], alpha: float = 1.0) -> Tensor["B N"]:
    return x * alpha


def refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        make()


@pytest.mark.parametrize(
    ("scalar", "said"),
    [
        (Scalar(2.0, 1.0), "no number is in [2.0, 1.0]"),
        (Scalar(0.0, float("inf")), "no number is in [0.0, inf]"),
        (Scalar(float("nan"), 1.0), "no number is in [nan, 1.0]"),
        (Scalar(0.0, 2.0, logarithmic=True), "a logarithmic range starts above 0"),
        (Scalar(0.2, 0.8, integer=True), "no integer is in [0.2, 0.8]"),
        (Scalar(2.0, 3.0), "its default 1.0 is not in [2.0, 3.0]"),
    ],
)
def test_a_scalar_that_cannot_be_drawn_is_refused(scalar: Scalar, said: str) -> None:
    refused(lambda: operation(alpha=scalar)(rows), f"scalar 'alpha': {said}")


def test_a_default_that_is_no_integer_is_refused_where_integers_are_drawn() -> None:
    def half(x: Tensor["B N"], count: float = 0.5) -> Tensor["B N"]:
        return x * count

    refused(
        lambda: operation(count=Scalar(0, 3, integer=True))(half),
        "its default 0.5 is not an integer in [0, 3]",
    )


def test_integers_between_fractions_are_drawn_inside_them() -> None:
    @operation(count=Scalar(0.5, 3.5, integer=True))
    def times(x: Tensor["B N"], count: int) -> Tensor["B N"]:
        return x * count

    drawn = {
        dict(make_case(times, {"B": 1, "N": 1}, dtype="float32", turn=turn).scalars)["count"]
        for turn in range(40)
    }
    assert drawn == {1.0, 2.0, 3.0}


def with_tensor(spec: TensorSpec) -> Callable[[], Operation]:
    def gathers(x: Tensor["B N"], other: spec) -> Tensor["B N"]:  # type: ignore[valid-type]
        return x

    gathers.__annotations__ = {"x": Tensor["B N"], "other": spec, "return": Tensor["B N"]}
    return lambda: operation()(gathers)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (Tensor.int("B", low=3, high=3), "no integer is in [3, 3)"),
        (Tensor.int("B", low=-1, high=3, kind="uint8"), "-1 does not fit uint8 (0 to 255)"),
        (Tensor.int("B", high=300, kind="int8"), "299 does not fit int8 (-128 to 127)"),
        (Tensor.int("B", high=3, marker=-100, kind="uint8"), "-100 does not fit uint8"),
        (tensor("B N", axis=2), "it has 2 dims and no axis 2"),
        (tensor("B N", stand_ins={"normal": "nromal"}), "unknown recipe 'nromal'"),
    ],
)
def test_a_tensor_that_cannot_be_drawn_is_refused(spec: TensorSpec, said: str) -> None:
    refused(with_tensor(spec), f"argument 'other': {said}")


@pytest.mark.parametrize("sizes", [(), (0, 4), (-3,), (2.0,)])
def test_sizes_that_no_dim_has_are_refused(sizes: tuple[Any, ...]) -> None:
    refused(lambda: operation(sizes={"N": sizes}, alpha=Scalar(0, 2))(rows), "sizes of dim 'N'")


def test_an_operation_without_recipes_is_refused() -> None:
    refused(lambda: operation(recipes=(), alpha=Scalar(0, 2))(rows), "it has no recipe")


@pytest.mark.parametrize(
    ("spec", "sizes", "said"),
    [
        (Tensor.int("B", low=2, high="N"), {"B": 3, "N": 2}, "holds none"),
        (Tensor.int("B", high="N", kind="int8"), {"B": 3, "N": 257}, "does not fit int8"),
        (Tensor.offsets("B", total="N"), {"B": 1, "N": 5}, "must end at 5"),
        (Tensor.offsets("B+1", total="N", kind="int8"), {"B": 2, "N": 300}, "300 does not fit"),
        (Tensor.lengths("B", most="N", least=4), {"B": 3, "N": 2}, "must be from 4 to 2"),
    ],
)
def test_a_case_whose_sizes_leave_nothing_to_draw_is_refused(
    spec: TensorSpec, sizes: dict[str, int], said: str
) -> None:
    made = with_tensor(spec)()
    case = make_case(made, sizes, dtype="float32")
    refused(lambda: make_inputs(made, case), said)


def test_a_dim_that_is_divided_by_none_is_refused() -> None:
    @operation(empty="N")
    def chunks(x: Tensor["B cdiv(B,N)"], w: PART) -> WHOLE:
        return x.sum(1)

    case = make_case(chunks, {"B": 3, "N": 0}, dtype="float32")
    refused(lambda: make_inputs(chunks, case), "cdiv(B, N) divides by 0")


def test_two_results_of_one_name_are_refused() -> None:
    def both(x: Tensor["B N"]) -> tuple[Tensor["B N"], Tensor["B N"]]:
        return x, x

    refused(lambda: operation(outputs=["y", "y"])(both), "outputs have one name twice")


@pytest.mark.parametrize("found", operations(), ids=lambda found: found.name)
def test_what_built_in_operations_declare_can_be_drawn(found: Operation) -> None:
    check_ranges(found)
    for case in cases_for(found, dtypes=("float16",), strategy="quick"):
        inputs = make_inputs(found, case)
        for spec, arg in zip(found.inputs, inputs.args, strict=True):
            if isinstance(spec, TensorSpec) and isinstance(arg, torch.Tensor) and not spec.is_float:
                smallest, largest = integer_range(spec.dtype("float16"))
                assert arg.numel() == 0 or smallest <= int(arg.min()) <= int(arg.max()) <= largest
