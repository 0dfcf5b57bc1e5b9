"""Claims about the axes of a declared domain, and what reveal tags call for on them."""

from __future__ import annotations

import pytest

from gatecert.operators.records import Reveal
from gatecert.oracle.cases import cases_for
from gatecert.oracle.operations import get_operation
from gatecert.subjects import Subject
from gatecert.witness.called import called_for
from gatecert.witness.space import Space, changed, differences, elements, space_of, turns

SOFTMAX = get_operation("softmax")
SUBJECT = Subject(
    "softmax",
    "kernels:softmax",
    "softmax",
    dtypes=("float32", "bfloat16"),
    layouts=("contiguous", "transposed"),
    blocks={"N": (64,)},
)
OWN = cases_for(SOFTMAX, dtypes=SUBJECT.dtypes, blocks=SUBJECT.blocks, strategy="quick")


@pytest.fixture(scope="module")
def space() -> Space:
    return space_of(SOFTMAX, SUBJECT, OWN, seed=0)


def test_every_part_of_the_domain_is_an_axis(space: Space) -> None:
    assert set(space.axes) == {"dtype", "layout", "recipe", "seed", "dim B", "dim N"}
    assert space.axes["dtype"] == ("float32", "bfloat16")
    assert space.axes["recipe"] == SOFTMAX.recipes


def test_sizes_lie_around_multiples_of_the_block_and_go_on_to_long_ones(space: Space) -> None:
    assert {1, 2, 63, 64, 65, 97, 129, 192, 259, 1025} <= set(space.axes["dim N"])
    assert {1, 2, 3, 17, 65} <= set(space.axes["dim B"])


def test_scalars_optional_arguments_and_single_layouts_are_axes_where_there_are_some() -> None:
    operation = get_operation("layer_norm")
    subject = Subject("x", "a:b", "layer_norm", layouts=("contiguous", "row_padded"))
    own = cases_for(operation, dtypes=("float32",), strategy="quick")
    axes = space_of(operation, subject, own, seed=0).axes
    assert "scalar eps" in axes
    assert {"row_padded", "row_padded:x", "row_padded:weight+bias"} <= set(axes["layout"])
    assert "dtype" not in axes  # there is but one


def test_a_changed_case_differs_on_what_was_changed_alone() -> None:
    case = changed(SOFTMAX, OWN[0], {"dim N": 77, "recipe": "spike"})
    assert set(differences(OWN[0], case)) == {"dim N", "recipe"}
    assert differences(OWN[0], case)["dim N"] == (OWN[0].sizes["N"], 77)


def test_scalars_of_an_exact_recipe_stay_what_it_needs() -> None:
    operation = get_operation("leaky_relu")
    (case, *_) = cases_for(operation, dtypes=("float32",), strategy="quick")
    exact = changed(operation, case, {"recipe": "ternary", "scalar slope": 0.9})
    assert dict(exact.scalars)["slope"] == 0.25


def test_what_costs_much_more_than_the_gates_dearest_case_does_not_fit(space: Space) -> None:
    assert space.fits(changed(SOFTMAX, OWN[0], {"dim N": 1025}))
    assert not space.fits(changed(SOFTMAX, OWN[0], {"dim N": 1025, "dim B": 100_000}))
    assert turns(changed(SOFTMAX, OWN[0], {"dim N": 129, "dim B": 5}), space.blocks) == 15
    assert elements(SOFTMAX, changed(SOFTMAX, OWN[0], {"dim N": 129, "dim B": 5})) == 2 * 5 * 129


@pytest.mark.parametrize(
    ("tag", "wanted"),
    [
        (Reveal.TAIL, {"dim N": 65}),
        (Reveal.SHORT, {"dim N": 1}),
        (Reveal.SEVERAL_BLOCKS, {"dim N": 192}),
        (Reveal.SEVERAL_ROWS, {"dim B": 3}),
        (Reveal.ALL_NEGATIVE, {"recipe": "all_negative"}),
        (Reveal.STRIDED, {"layout": "transposed"}),
        (Reveal.HALF_PRECISION, {"dtype": "bfloat16"}),
        (Reveal.LARGE_SPAN, {"dim B": 513, "dim N": 65, "layout": "transposed"}),
    ],
)
def test_a_tag_calls_for_the_values_that_show_it(
    space: Space, tag: Reveal, wanted: dict[str, object]
) -> None:
    assert wanted in called_for((tag,), space)


def test_values_of_several_tags_take_turns(space: Space) -> None:
    first, second, *_ = called_for((Reveal.TAIL, Reveal.HALF_PRECISION), space)
    assert (set(first), set(second)) == ({"dim N"}, {"dtype"})


def test_any_calls_for_nothing(space: Space) -> None:
    assert called_for((Reveal.ANY,), space) == ()
