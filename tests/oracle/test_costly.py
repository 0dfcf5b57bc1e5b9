"""Claims about the steps that come last: where a recipe stands in, and what far strides show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
import torch

from gatecert.oracle.case import Case
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import judge
from gatecert.oracle.costly import costly_shapes
from gatecert.oracle.expectation import expect
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import get_operation, operations
from gatecert.oracle.schema import Operation
from gatecert.oracle.strategies import FAR_ROWS, LONG_LAST, SPREAD, STRATEGIES, Step, Strategy
from gatecert.oracle.tolerance import RoundingInterval

SOFTMAX = get_operation("softmax")
TILE = 16


def recipes(operation: Operation, *steps: Step) -> list[str]:
    """Of the costly cases that these steps make."""
    plan = Strategy("one", "", (), costly=steps)
    return [recipe for _, recipe, _ in costly_shapes(operation, plan, {}, {})]


def test_the_first_recipe_stands_in_for_one_that_is_not_listed_but_in_a_step_for_it_alone() -> None:
    without = replace(SOFTMAX, recipes=("ties", "normal"))
    step = Step(SPREAD, "spike", layout=SPREAD)
    alone = replace(step, only_if_listed=True)
    assert recipes(SOFTMAX, step) == recipes(SOFTMAX, alone) == ["spike"]
    assert recipes(without, step) == ["ties"]
    assert recipes(without, alone) == []
    assert recipes(without, alone, step) == ["ties"]


def test_a_step_that_needs_its_recipe_leaves_no_other_out() -> None:
    """Strategies without the step have the same cases otherwise."""
    certify = STRATEGIES["certify"]
    needy = [step for step in certify.costly if step.only_if_listed]
    assert [(step.sizes, step.recipe, step.layout) for step in needy] == [
        (SPREAD, "spike", SPREAD),
        (LONG_LAST, "early_peak", ""),
    ]
    fewer = replace(certify, costly=tuple(s for s in certify.costly if not s.only_if_listed))
    for operation in operations():
        every = list(costly_shapes(operation, certify, {}, {}))
        rest = list(costly_shapes(operation, fewer, {}, {}))
        peaked = [shape for shape in every if shape not in rest]
        listed = [step.recipe for step in needy if step.recipe in operation.recipes]
        assert [recipe for _, recipe, _ in peaked] == listed, operation.name
        assert [shape for shape in every if shape not in peaked] == rest


def spread_cases(operation: Operation, *layouts: str) -> list[Case]:
    cases = cases_for(operation, dtypes=("float32", "bfloat16"), layouts=layouts)
    return [case for case in cases if case.layout == SPREAD]


def test_spread_comes_with_ordinary_values_and_with_a_late_peak_where_it_is_declared() -> None:
    assert spread_cases(SOFTMAX, "contiguous", "row_padded", FAR_ROWS) == []
    ordinary, peaked = spread_cases(SOFTMAX, "contiguous", SPREAD)
    assert (ordinary.recipe, peaked.recipe) == ("normal", "spike")
    assert ordinary.dims == peaked.dims
    flat = replace(SOFTMAX, recipes=("normal", "rising"))
    assert [case.recipe for case in spread_cases(flat, "contiguous", SPREAD)] == ["normal"]


def two_passes(x: torch.Tensor, *, tiles_of_the_first: int | None = None) -> torch.Tensor:
    """Softmax whose first pass finds the maximum, of so many tiles, and whose second adds up."""
    tiles = x.split(TILE, dim=1)[:tiles_of_the_first]
    high = torch.stack([tile.amax(1) for tile in tiles]).amax(0)[:, None]
    powers = torch.exp(x - high)
    return powers / powers.sum(1, keepdim=True)


@pytest.mark.parametrize(("tiles", "caught"), [(None, []), (1, ["spike"])])
def test_a_maximum_of_too_few_places_shows_under_far_strides_with_a_late_peak_alone(
    tiles: int | None, caught: list[str]
) -> None:
    found = []
    for case in spread_cases(SOFTMAX, "contiguous", SPREAD):
        inputs = make_inputs(SOFTMAX, case)
        (x,) = inputs.args
        assert x.stride(1) > 1 and x.shape[1] > TILE
        (made,) = expect(SOFTMAX, case, inputs).outputs
        output = two_passes(x.float(), tiles_of_the_first=tiles).to(torch_dtype(case.dtype))
        if not judge(RoundingInterval(), made, output).passed:
            found.append(case.recipe)
    assert found == caught


def attend_in_tiles(values: Sequence[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Attention of one head, whose sums of tiles are kept in that dtype."""
    q, k, v = values
    weights = torch.exp(q @ k.mT / q.shape[-1] ** 0.5)
    weights = weights / weights.amax(-1, keepdim=True)
    total, out = torch.zeros(q.shape[-2], 1, dtype=dtype), torch.zeros(q.shape, dtype=dtype)[0, 0]
    for some, part in zip(weights[0, 0].split(TILE, -1), v[0, 0].split(TILE), strict=True):
        total = (total + some.sum(-1, keepdim=True)).to(dtype)
        out = (out + some @ part).to(dtype)
    return (out.float() / total.float())[None, None]


@pytest.mark.parametrize(("narrow", "passes"), [(False, True), (True, False)])
def test_sums_in_16_bits_show_after_an_early_peak(narrow: bool, passes: bool) -> None:
    operation = get_operation("attention")
    cases = cases_for(operation, dtypes=("float32", "float16", "bfloat16"))
    (case,) = (case for case in cases if case.recipe == "early_peak")
    assert case.dtype != "float32"
    assert case.sizes == {"B": 1, "H": 1, "S": 33, "D": 16, "T": 1025}
    for dtype in ("float16", "bfloat16"):
        case = msgspec.structs.replace(case, dtype=dtype)
        inputs = make_inputs(operation, case)
        (made,) = expect(operation, case, inputs, intermediate="input").outputs
        kept = torch_dtype(dtype) if narrow else torch.float32
        output = attend_in_tiles([arg.float() for arg in inputs.args], kept).to(torch_dtype(dtype))
        assert judge(RoundingInterval(), made, output).passed is passes
