"""The search for the simplest failing case, on failures that are known by formula."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatecert.oracle.case import Case, parse_case
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.minimise import (
    Budget,
    BudgetSpent,
    Search,
    Space,
    shrink_structure,
    untried_sizes,
)
from gatecert.oracle.minimise_values import shrink_values, written_out
from gatecert.oracle.operations import get_operation

SOFTMAX = get_operation("softmax")
SPACE = Space(SOFTMAX, ("float32", "float16"), {})
START = parse_case("softmax/float16/B=7,N=391/row_padded/spike/seed=9")


def shrunk(fails: Callable[[Case], bool], start: Case = START, runs: int = 2000) -> Case:
    search = Search(start, fails, Budget(runs))
    shrink_structure(search, SPACE)
    assert fails(search.best)
    assert untried_sizes(search, SPACE, search.best) == {}
    return search.best


@pytest.mark.parametrize(
    ("fails", "smallest"),
    [
        (lambda b, n: True, (1, 1)),
        (lambda b, n: n > 128, (1, 129)),
        (lambda b, n: n % 128 != 0, (1, 1)),
        (lambda b, n: n == 391 or n in (37, 41), (1, 37)),  # islands: halving alone misses both
        (lambda b, n: n > 128 and n % 4 == 3, (1, 131)),
        (lambda b, n: b >= 2 and n >= 17, (2, 17)),
        (lambda b, n: b * n >= 30, (6, 5)),  # neither can be less while the other stays
    ],
)
def test_dims_reach_a_minimum_though_failure_is_not_monotone(
    fails: Callable[[int, int], bool], smallest: tuple[int, int]
) -> None:
    best = shrunk(lambda case: fails(case.sizes["B"], case.sizes["N"]))
    assert tuple(best.sizes.values()) == smallest


def test_everything_else_becomes_plain_unless_the_failure_needs_it() -> None:
    assert shrunk(lambda case: True).id == "softmax/float32/B=1,N=1/contiguous/normal/seed=0"
    best = shrunk(lambda case: case.layout == "row_padded" and case.dtype == "float16")
    assert best.id == "softmax/float16/B=1,N=1/row_padded/normal/seed=0"
    assert shrunk(lambda case: case.recipe in ("rising", "spike")).recipe == "rising"


def test_a_layout_stays_with_the_one_tensor_that_needs_it() -> None:
    operation = get_operation("matmul")
    search = Search(
        parse_case("matmul/float32/M=4,N=4,K=4/transposed/normal/seed=0"),
        lambda case: case.layout in ("transposed", "transposed:b"),
        Budget(500),
    )
    shrink_structure(search, Space(operation, ("float32",), {}))
    assert search.best.layout == "transposed:b"


def test_scalars_go_back_to_their_defaults_one_by_one() -> None:
    operation = get_operation("leaky_relu")
    default = next(spec.default for spec in operation.scalars)
    start = parse_case("leaky_relu/float32/B=3,N=5/contiguous/normal/slope=0.37/seed=0")
    search = Search(start, lambda case: True, Budget(100))
    shrink_structure(search, Space(operation, ("float32",), {}))
    assert dict(search.best.scalars) == {"slope": default}


def test_a_dim_with_few_allowed_sizes_takes_those_alone() -> None:
    operation = get_operation("attention_causal")
    dims = dict.fromkeys(operation.dims, 3) | {"D": max(operation.sizes["D"])}
    start = Case("attention_causal", tuple(dims.items()), "float32")
    search = Search(start, lambda case: True, Budget(500))
    shrink_structure(search, Space(operation, ("float32",), {}))
    assert search.best.sizes == dict.fromkeys(operation.dims, 1) | {"D": min(operation.sizes["D"])}


def test_values_become_zero_but_for_those_that_matter() -> None:
    def fails(case: Case) -> bool:
        values = dict(case.given).get("x", (1.0,) * 9)
        return values[5] > 0.3 and values[7] < -2

    start = parse_case("softmax/float16/B=1,N=9/contiguous/uniform01/seed=0")
    given = (("x", (0.4, 0.1, 0.2, 0.9, 0.8, 0.7345, 0.5, -2.7182, 0.9)),)
    start = Case(start.operation, start.dims, "float16", given=given)
    search = Search(start, fails, Budget(500))
    shrink_values(search, SOFTMAX)
    assert search.best.given == (("x", (0.0,) * 5 + (1.0, 0.0, -3.0, 0.0)),)


def test_equal_budgets_give_equal_answers_and_no_more_runs() -> None:
    def fails(case: Case) -> bool:
        return case.sizes["N"] > 128

    seen = []
    for _ in range(2):
        search = Search(START, fails, Budget(runs=12))
        with pytest.raises(BudgetSpent):
            shrink_structure(search, SPACE)
        assert search.budget.used == 12
        assert fails(search.best)
        seen.append(search.best)
    assert seen[0] == seen[1]


def test_no_case_is_run_twice() -> None:
    ran: list[str] = []

    def fails(case: Case) -> bool:
        ran.append(case.id)
        return case.sizes["N"] > 20

    shrunk(fails)
    assert len(ran) > 30
    # `shrunk` itself asks once more in the end.
    assert len(set(ran)) == len(ran) - 1


def test_written_out_values_are_the_same_inputs() -> None:
    from gatecert.oracle.inputs import make_inputs

    for dtype in ("float32", "float16", "bfloat16"):
        for recipe in ("normal", "nonfinite", "subnormal"):
            case = parse_case(f"cross_entropy/{dtype}/B=4,V=9/row_padded/{recipe}/seed=2")
            operation = get_operation("cross_entropy")
            written = written_out(operation, case)
            assert make_inputs(operation, written).sha256 == make_inputs(operation, case).sha256
            assert parse_case(written.id).id == written.id


def test_an_optional_argument_goes_unless_the_failure_needs_it() -> None:
    operation = get_operation("masked_softmax")
    start = parse_case("masked_softmax/float32/B=3,N=5/contiguous/normal/seed=0")
    space = Space(operation, ("float32",), {})
    for fails, left_out in (
        (lambda case: True, ("bias",)),
        (lambda case: "bias" not in case.absent, ()),
    ):
        search = Search(start, fails, Budget(500))
        shrink_structure(search, space)
        assert search.best.absent == left_out


def test_index_tensors_stay_valid_while_values_are_written_out_and_shrunk() -> None:
    operation = get_operation("segment_sum")
    start = parse_case("segment_sum/float32/T=6,N=2,S=3/contiguous/normal/seed=0")
    drawn = make_inputs(operation, start).tensors["segments"].tolist()
    search = Search(start, lambda case: bool(make_inputs(operation, case)), Budget(500))
    shrink_values(search, operation)
    assert list(dict(search.best.given)["segments"]) == drawn
    assert set(dict(search.best.given)["x"]) == {0.0}
