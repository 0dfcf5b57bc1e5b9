"""Claims about dims of size 0: only where they mean something, and only where a team lists them."""

from __future__ import annotations

import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators.where_exact import judge_where_exact
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import changed_inputs, fresh_copy, make_inputs
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation
from gatecert.oracle.tolerance import RoundingInterval

MAY_BE_EMPTY = [(made, dim) for made in operations() for dim in made.empty]


@pytest.mark.parametrize(
    ("made", "dim"), MAY_BE_EMPTY, ids=[f"{made.name}-{dim}" for made, dim in MAY_BE_EMPTY]
)
def test_an_empty_dim_has_inputs_a_reference_and_a_second_formulation_that_agrees(
    made: Operation, dim: str
) -> None:
    for layout in ("contiguous", "row_padded", "transposed", "offset_base"):
        cases = cases_for(
            made, dtypes=("float16",), layouts=(layout,), extra_dims={dim: (0,)}, strategy="listed"
        )
        assert cases
        for case in cases:
            assert case.sizes[dim] == 0
            inputs = make_inputs(made, case)
            assert changed_inputs(inputs, fresh_copy(inputs)) == []
            assert made.second is not None
            wide = [x.double() if torch.is_tensor(x) and x.is_floating_point() else x
                    for x in inputs.args]  # fmt: skip
            found = made.call(made.second, wide)
            results = found if isinstance(found, tuple) else (found,)
            for wanted, result in zip(expect(made, case, inputs).outputs, results, strict=True):
                assert judge_where_exact(RoundingInterval(), wanted, result).passed


def test_a_matrix_product_over_nothing_is_zero_and_garbage_is_seen() -> None:
    made = get_operation("matmul")
    (case, *_) = cases_for(made, dtypes=("float32",), extra_dims={"K": (0,)}, strategy="listed")
    (wanted,) = expect(made, case, make_inputs(made, case)).outputs
    assert wanted.reference.size > 0 and not wanted.reference.any()
    for value, passes in ((0.0, True), (1e-30, False), (torch.nan, False)):
        output = torch.full(wanted.shape, value)
        assert judge_where_exact(RoundingInterval(), wanted, output).passed is passes


def test_no_case_is_empty_unless_a_team_lists_the_size() -> None:
    for made in operations():
        cases = cases_for(made, dtypes=("float32",))
        assert all(size > 0 for case in cases for size in case.sizes.values())
    softmax = get_operation("softmax")
    cases = cases_for(softmax, dtypes=("float32",), extra_dims={"B": (0,)})
    assert any(case.sizes["B"] == 0 for case in cases)


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_without_a_meaning_is_refused_by_name(size: int) -> None:
    said = rf"operation 'softmax': dim N cannot be {size}; dims of it that may be 0: B"
    with pytest.raises(UsageError, match=said):
        cases_for(get_operation("softmax"), dtypes=("float32",), extra_dims={"N": (64, size)})
    with pytest.raises(UsageError, match="dim B cannot be -1"):
        cases_for(get_operation("softmax"), dtypes=("float32",), extra_dims={"B": (-1,)})
