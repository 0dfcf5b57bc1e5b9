"""Production shapes become cases that the interpreter can run."""

from __future__ import annotations

import pytest

from gatecert.launch_log import LoggedShape
from gatecert.oracle.logged import logged_cases, scaled
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation

SOFTMAX = get_operation("softmax")


def shape(dims: dict[str, int], **changes: object) -> LoggedShape:
    return LoggedShape(tuple(dims.items()), "float16", **changes)  # type: ignore[arg-type]


def test_a_small_shape_is_taken_as_it_is() -> None:
    cases, notes = logged_cases(SOFTMAX, [shape({"B": 3, "N": 130})], blocks={"N": (64,)})
    assert [case.sizes for case in cases] == [{"B": 3, "N": 130}] * 2
    assert {case.dtype for case in cases} == {"float16"}
    assert notes == ()


def test_a_large_shape_keeps_its_remainders_and_says_so() -> None:
    cases, notes = logged_cases(SOFTMAX, [shape({"B": 4096, "N": 50257})], blocks={"N": (128,)})
    size = cases[0].sizes["N"]
    assert 2 * 128 < size < 50257
    assert size % 128 == 50257 % 128
    assert cases[0].sizes["B"] % 16 == 4096 % 16
    small = f"B={cases[0].sizes['B']},N={size}"
    assert notes == (
        f"scaled B=4096,N=50257 float16 contiguous to {small}: remainders by block and by 16 "
        "are kept",
    )


@pytest.mark.parametrize("operation", operations(), ids=lambda found: found.name)
def test_scaling_ends_and_never_enlarges(operation: Operation) -> None:
    large = {dim: 65_537 for dim in operation.dims if dim not in operation.sizes}
    fixed = {dim: sizes[0] for dim, sizes in operation.sizes.items()}
    found = scaled(operation, {**large, **fixed}, {})
    if found is not None:
        assert all(found[dim] == size for dim, size in fixed.items())
        assert all(0 < found[dim] <= size for dim, size in large.items())
        assert all(found[dim] % 16 == 1 for dim in large)


def test_what_no_longer_fits_the_operation_is_skipped_and_said() -> None:
    cases, notes = logged_cases(
        SOFTMAX,
        [shape({"B": 2, "V": 8}), shape({"B": 2, "N": 8}, layout="row_padded:logits")],
        blocks={},
    )
    assert cases == ()
    assert notes == (
        "skipped B=2,V=8 float16 contiguous: softmax has dims B, N",
        "skipped B=2,N=8 float16 row_padded:logits: softmax has no tensor logits",
    )


def test_a_shape_that_no_scaling_helps_is_skipped() -> None:
    attention = get_operation("attention_causal")
    dims = dict.fromkeys(attention.dims, 1) | {"D": 1 << 20}
    _, notes = logged_cases(attention, [shape(dims)], blocks={})
    assert len(notes) == 1
    assert notes[0].startswith("skipped ")
