"""The strategies of profiles: a team's own sizes alone, and sizes around blocks."""

from __future__ import annotations

import pytest

from gatecert.oracle.cases import cases_for
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation


def test_listed_sizes_make_shapes_together_and_a_short_list_starts_again() -> None:
    dims = {"M": (128, 1), "N": (256, 512, 33), "K": (64,)}
    cases = cases_for(
        get_operation("matmul"), dtypes=("float32",), extra_dims=dims, strategy="listed"
    )
    shapes = [tuple(case.sizes[dim] for dim in ("M", "N", "K")) for case in cases]
    assert set(shapes) == {(128, 256, 64), (1, 512, 64), (128, 33, 64)}
    assert len(cases) == 9
    assert len({case.recipe for case in cases}) == 3


@pytest.mark.parametrize("operation", operations(), ids=lambda found: found.name)
def test_every_listed_size_is_taken_also_of_dims_with_few_allowed_ones(
    operation: Operation,
) -> None:
    dims = dict.fromkeys(operation.dims, (24, 40))
    cases = cases_for(operation, dtypes=("float32",), extra_dims=dims, strategy="listed")
    assert {tuple(case.sizes.values()) for case in cases} == {
        (size,) * len(operation.dims) for size in (24, 40)
    }


def test_tiling_tries_every_size_around_the_block_with_values_below_zero() -> None:
    softmax = get_operation("softmax")
    cases = cases_for(softmax, dtypes=("float32",), blocks={"N": (64,)}, strategy="tiling")
    assert {1, 63, 64, 65} <= {case.sizes["N"] for case in cases}
    below = {case.sizes["N"] for case in cases if case.recipe == "all_negative"}
    assert any(size % 64 for size in below)
