# ruff: noqa: F722 (named dims are not types)
from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pytest
import torch

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import AllClose, Comparator, Exact, judge, judge_observation
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import ExpectedOutput, expect
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.observation import observe
from gatecert.oracle.schema import Operation, Scalar, Tensor, operation, tensor
from gatecert.oracle.tolerance import RoundingInterval


@operation(alpha=Scalar(-2.0, 2.0))
def scaled_add(x: Tensor["B N"], y: Tensor["B N"], alpha: float) -> Tensor["B N"]:
    """x plus alpha times y."""
    return x + alpha * y


@operation(outputs=["low", "high"])
def split(x: Tensor["B 2N"]) -> tuple[Tensor["B N"], Tensor["B N"]]:
    half = x.shape[1] // 2
    return x[:, :half], x[:, half:]


def test_annotations_are_the_schema() -> None:
    assert scaled_add.name == "scaled_add"
    assert scaled_add.dims == ("B", "N")
    assert [spec.name for spec in scaled_add.inputs] == ["x", "y", "alpha"]
    assert [spec.name for spec in scaled_add.outputs] == ["output"]
    assert scaled_add.summary == "x plus alpha times y."
    assert scaled_add.tiled == ("N",)


def test_annotated_tensors_read_the_same_for_a_type_checker() -> None:
    @operation()
    def double(x: Annotated[torch.Tensor, Tensor["B N"]]) -> Annotated[torch.Tensor, Tensor["B N"]]:
        return 2 * x

    assert isinstance(double, Operation)
    assert double.tensors[0].dims == ("B", "N")


def test_a_users_operation_without_a_shadow_accepts_right_and_rejects_wrong_code() -> None:
    wrong_seen = 0
    for case in cases_for(scaled_add, dtypes=("float32", "float16"), seed=1):
        inputs = make_inputs(scaled_add, case)
        made = expect(scaled_add, case, inputs).outputs[0]
        x, y, alpha = inputs.args
        right = (x.float() + alpha * y.float()).to(x.dtype)
        wrong = (x.float() + 1.001 * alpha * y.float()).to(x.dtype)
        assert judge(RoundingInterval(), made, right).passed, case.id
        wrong_seen += not judge(RoundingInterval(), made, wrong).passed
    assert wrong_seen > 0


def test_scalars_are_drawn_in_their_range_and_differ_between_cases() -> None:
    drawn = {dict(case.scalars)["alpha"] for case in cases_for(scaled_add, dtypes=("float32",))}
    assert len(drawn) > 5
    assert all(-2.0 <= alpha <= 2.0 for alpha in drawn)


def test_derived_dims_and_several_outputs() -> None:
    assert split.dims == ("B", "N")
    (case, *_) = cases_for(split, dtypes=("float32",))
    inputs = make_inputs(split, case)
    assert inputs.args[0].shape[1] == 2 * case.sizes["N"]
    made = expect(split, case, inputs)
    assert [found.name for found in made.outputs] == ["low", "high"]
    halves = tuple(inputs.args[0].chunk(2, dim=1))
    assert contract_violation(split, case, inputs, halves) is None
    for found, half in zip(made.outputs, halves, strict=True):
        assert judge(RoundingInterval(), found, half).passed


def test_the_contract_names_output_actual_and_expected() -> None:
    (case, *_) = cases_for(split, dtypes=("float16",))
    inputs = make_inputs(split, case)
    low, high = inputs.args[0].chunk(2, dim=1)
    # A published validator compares the output's shape with itself.
    for outputs, message in (
        ((low,), "1 outputs instead of 2"),
        ((low, None), "high is a NoneType, not a tensor"),
        ((low, high[:1]), f"high has shape {tuple(high[:1].shape)}, not {tuple(high.shape)}"),
        ((low.float(), high), "low has dtype torch.float32, not torch.float16"),
    ):
        assert contract_violation(split, case, inputs, outputs) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: operation()(lambda x: x), "argument 'x' is neither annotated"),
        (lambda: operation(beta=Scalar(0, 1))(scaled_add.reference), "argument 'alpha' is neither"),
        (lambda: Tensor["B N-1"], "'N-1' is no dim"),
        (
            lambda: operation(alpha=Scalar(0, 1), beta=Scalar(0, 1))(scaled_add.reference),
            "there is no argument 'beta'",
        ),
        (
            lambda: operation(alpha=Scalar(0, 1), reduces="K")(scaled_add.reference),
            "reduces names dim 'K'; its dims are B, N",
        ),
        (
            lambda: operation(alpha=Scalar(0, 1), recipes=["nromal"])(scaled_add.reference),
            "unknown recipe 'nromal'",
        ),
        (
            lambda: operation(alpha=Scalar(0, 1), in_place=["z"])(scaled_add.reference),
            "no tensor 'z'",
        ),
    ],
)
def test_a_wrong_declaration_is_an_error_that_says_what_is_wrong(make, message) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_a_reference_that_breaks_its_own_annotation_is_an_environment_failure() -> None:
    @operation()
    def lying(x: Tensor["B N"]) -> Tensor["B N"]:
        return x.sum(dim=1)

    (case, *_) = cases_for(lying, dtypes=("float32",))
    with pytest.raises(EnvironmentFailure, match="its annotation says"):
        expect(lying, case, make_inputs(lying, case))


@operation(seed=Scalar(0, 2**31 - 1, integer=True), tiled="S")
def shared_heads(
    q: Tensor["B G*H S 2D"],
    k: Tensor["B H S 2*D"],
    scale: tensor("B", kind="float32"),
    keep: tensor("B S", kind="bool"),
    seed: float,
) -> tuple[Tensor["B G*H"], tensor("B S", kind="int8")]:
    whole = torch.full(keep.shape, 1.25, dtype=torch.float64)
    return q.sum((2, 3)) * scale[:, None] + 0 * k.sum(), whole * keep


def test_a_dim_may_be_a_product_of_dims() -> None:
    assert shared_heads.dims == ("B", "G", "H", "S", "D")
    sizes = {"B": 2, "G": 3, "H": 5, "S": 7, "D": 11}
    assert [spec.shape(sizes) for spec in shared_heads.tensors[:2]] == [
        (2, 15, 7, 22),
        (2, 5, 7, 22),
    ]


@pytest.mark.parametrize(
    "dim",
    ["G*", "*G", "G**H", "G-H", "2.5N", "cdiv", "cdiv(N)", "min(N,2)", "N//2", "-N", "N[0]"],
)
def test_a_dim_that_is_made_in_another_way_is_refused(dim: str) -> None:
    with pytest.raises(UsageError, match="is no dim"):
        tensor(f"B {dim}")


def test_a_kind_that_is_no_dtype_is_refused() -> None:
    with pytest.raises(UsageError, match="complex7"):
        tensor("B", kind="complex7")


def test_fixed_dtypes_stay_whatever_is_tested_and_integer_scalars_are_ints() -> None:
    for case in cases_for(shared_heads, dtypes=("float16", "bfloat16"), seed=3):
        q, _, scale, keep, seed = make_inputs(shared_heads, case).args
        assert (str(q.dtype), scale.dtype) == (f"torch.{case.dtype}", torch.float32)
        assert keep.dtype is torch.bool
        assert type(seed) is int and 0 <= seed < 2**31
        assert [output.dtype for output in expect_outputs(case)] == [case.dtype, "int8"]


def expect_outputs(case: Case) -> tuple[ExpectedOutput, ...]:
    return expect(shared_heads, case, make_inputs(shared_heads, case)).outputs


def test_an_integer_that_a_kernel_rounds_to_may_be_either_neighbour_at_a_tie_only() -> None:
    case = cases_for(shared_heads, dtypes=("float32",), seed=3)[0]
    rounded = expect_outputs(case)[1]
    tie = replace(rounded, reference=np.full(rounded.shape, 2.5), shadow=np.ones(rounded.shape))
    off = replace(rounded, reference=np.full(rounded.shape, 2.6), shadow=np.ones(rounded.shape))
    two = torch.full(rounded.shape, 2, dtype=torch.int8)
    assert judge(RoundingInterval(), tie, two).passed
    assert judge(RoundingInterval(), tie, two + 1).passed
    assert not judge(RoundingInterval(), off, two).passed
    assert judge(RoundingInterval(), off, two + 1).passed
    assert not judge(RoundingInterval(), off, two + 2).passed
    comparators: tuple[Comparator, ...] = (
        RoundingInterval(),
        AllClose(0.0, 0.0, round_reference=True),
        Exact(),
    )
    for comparator in comparators:
        for output in (two, two + 1, two + 2):
            seen = observe(off, output, rounded_reference=isinstance(comparator, AllClose))
            said = judge_observation(comparator, seen).passed
            assert said == judge(comparator, off, output).passed == bool((output == 3).all())
