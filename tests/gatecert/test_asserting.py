# ruff: noqa: F722 (named dims are not types)
"""assert_correct says of a function what the oracle says of its values."""

from __future__ import annotations

import pytest
import torch

from gatecert import Tensor, assert_correct, operation
from gatecert.errors import UsageError

CASE = "softmax/{}/B=3,N=33/{}/normal/seed=0"


def right(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "row_padded"])
def test_a_right_function_passes(dtype: str, layout: str) -> None:
    assert_correct(right, CASE.format(dtype, layout))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_wrong_one_fails_with_its_worst_element(dtype: str) -> None:
    with pytest.raises(
        AssertionError, match=r"elements of output are wrong; output\[\d+, \d+\] is"
    ):
        assert_correct(lambda x: right(x) * 1.01, CASE.format(dtype, "contiguous"))


def test_another_shape_dtype_or_number_of_results_fails() -> None:
    case = CASE.format("float16", "contiguous")
    for broken in (lambda x: right(x)[:2], lambda x: right(x).float(), lambda x: (x, x)):
        with pytest.raises(AssertionError, match="softmax/float16"):
            assert_correct(broken, case)


def test_the_function_gets_the_layout_of_the_case() -> None:
    def strided(x: torch.Tensor) -> torch.Tensor:
        assert not x.is_contiguous()
        return right(x)

    assert_correct(strided, CASE.format("float32", "transposed"))


@operation()
def twice(x: Tensor["B N"]) -> Tensor["B N"]:
    return 2 * x


def test_an_operation_of_ones_own_is_given() -> None:
    case = "twice/float32/B=2,N=3/contiguous/normal/seed=0"
    assert_correct(lambda x: x + x, case, operation=twice)
    with pytest.raises(UsageError, match="twice"):
        assert_correct(lambda x: x + x, case)
