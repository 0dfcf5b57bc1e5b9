"""Layouts of some tensors only: strides of one cannot stand in for another's unseen."""

from __future__ import annotations

import itertools

import pytest

from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.layouts import LAYOUTS, moves, split_layout
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.partial_layouts import parts_of
from gatecert.oracle.schema import Operation

DTYPES = ("float32", "float16", "bfloat16")
EVERY = pytest.mark.parametrize("operation", operations(), ids=lambda found: found.name)


def parted(operation: Operation, case: Case) -> set[tuple[str, str]]:
    """Pairs of tensors of one shape that lie differently in memory."""
    tensors = make_inputs(operation, case).tensors
    return {
        (one, other)
        for one, other in itertools.combinations(tensors, 2)
        if tensors[one].shape == tensors[other].shape
        and any(
            size > 1 and first != second
            for size, first, second in zip(
                tensors[one].shape, tensors[one].stride(), tensors[other].stride(), strict=True
            )
        )
    }


def alike(operation: Operation) -> set[tuple[str, str]]:
    """Pairs of tensors that have the same dims."""
    return {
        (one.name, other.name)
        for one, other in itertools.combinations(operation.tensors, 2)
        if one.dims == other.dims
    }


@EVERY
@pytest.mark.parametrize("dtypes", [DTYPES, DTYPES[:1]])
def test_every_two_tensors_of_one_shape_part_in_every_dtype(
    operation: Operation, dtypes: tuple[str, ...]
) -> None:
    cases = cases_for(operation, dtypes=dtypes, layouts=tuple(LAYOUTS))
    for dtype in dtypes:
        found = [parted(operation, case) for case in cases if case.dtype == dtype]
        assert alike(operation) <= set().union(*found)


@pytest.mark.parametrize("layout", ["transposed", "row_padded"])
@pytest.mark.parametrize("name", ["swiglu", "layer_norm_backward", "rope", "attention_causal"])
def test_one_layout_beside_the_contiguous_one_is_enough(name: str, layout: str) -> None:
    operation = get_operation(name)
    cases = cases_for(operation, dtypes=DTYPES, layouts=("contiguous", layout))
    for dtype in DTYPES:
        found = [parted(operation, case) for case in cases if case.dtype == dtype]
        assert alike(operation) <= set().union(*found)


@EVERY
def test_no_case_is_added_and_most_layouts_stay_whole(operation: Operation) -> None:
    plain = cases_for(operation, dtypes=DTYPES)
    mixed = cases_for(operation, dtypes=DTYPES, layouts=("contiguous", "row_padded", "transposed"))
    assert len(mixed) <= len(plain) + 1  # the far transposed case
    for layout in ("row_padded", "transposed"):
        own = [case for case in mixed if split_layout(case.layout)[0] == layout]
        assert 3 * sum(":" in case.layout for case in own) <= 2 * len(own)


def test_a_contiguous_subject_has_no_part_of_a_layout() -> None:
    for operation in operations():
        assert {case.layout for case in cases_for(operation, dtypes=DTYPES)} == {"contiguous"}


@EVERY
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_sets_of_a_layout_name_tensors_that_it_moves(operation: Operation, layout: str) -> None:
    sizes = {dim: 2 + place for place, dim in enumerate(operation.dims)}
    for part in parts_of(operation, layout, sizes):
        for name in part.split("+"):
            (spec,) = [spec for spec in operation.tensors if spec.name == name]
            assert moves(layout, spec.shape(sizes))


def test_as_few_sets_as_part_every_pair_come_first() -> None:
    sizes = {"B": 2, "H": 3, "S": 4, "T": 4, "D": 5, "N": 6, "V": 7}

    def parts(name: str, layout: str) -> tuple[str, ...]:
        return parts_of(get_operation(name), layout, sizes)

    assert parts("swiglu", "transposed") == ("b", "a")
    assert parts("attention", "transposed") == ("k", "v", "q+v", "q+k")
    assert parts("rope", "transposed") == ("sin", "x+cos")
    assert parts("layer_norm", "transposed") == ()
    assert parts("layer_norm", "strided_vectors") == ("bias", "weight")
    assert parts("swiglu", "offset_base") == parts("softmax", "transposed") == ()
