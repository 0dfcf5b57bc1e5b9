"""Claims about fitting: an envelope over all kernels, tried on what was held out, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gatecert.calibration.collect import Run
from gatecert.calibration.fit import Fitted, check_agreement, fit
from gatecert.calibration.models import get_model
from gatecert.calibration.records import Row
from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.oracle.case import Case
from gatecert.oracle.observation import Interval

SIZES = (1, 31, 63, 65, 257)
RECIPES = ("normal", "rising", "ties", "uniform01")
PLAIN = Interval(0.0, 0.0, 0, "linear", 0.0, contraction=False)
Need = Callable[[str, Case], float]


def runs(
    need: Need = lambda kernel, case: 6.0,
    *,
    kernels: tuple[str, ...] = ("a", "b", "torch-softmax"),
    law: Interval = PLAIN,
    beyond: dict[str, str] | None = None,
) -> Iterator[Run]:
    """Every size in every recipe under five seeds, for each kernel."""
    for kernel in kernels:
        for size in SIZES:
            for recipe in RECIPES:
                for seed in range(5):
                    dims = (("B", 3), ("N", size))
                    case = Case("softmax", dims, "float16", recipe=recipe, seed=seed)
                    yield Run(
                        "softmax",
                        kernel,
                        f"{kernel}/original",
                        case,
                        need(kernel, case),
                        3 * size,
                        law,
                        (beyond or {}).get(kernel, ""),
                    )


def fitted(found: Iterator[Run], model: str = "interval", envelope: float = 1.5) -> Fitted:
    return fit(found, get_model(model), envelope=envelope, held_out_seeds=(3, 4))


def only_row(found: Fitted) -> Row:
    assert not found.refused
    (row,) = found.rows
    return row


def test_the_constant_is_an_envelope_over_the_largest_need() -> None:
    row = only_row(fitted(runs(lambda kernel, case: 10.0 if kernel == "b" else 2.0)))
    assert row.constant == 15.0
    assert row.comparator["type"] == "RoundingInterval"
    assert row.comparator["constant"] == row.comparator["contraction_constant"] == 15.0
    assert row.largest_case.startswith("b/original on softmax/float16/")
    assert row.kernels == ("a", "b", "torch-softmax")


def test_a_constant_never_falls_below_the_floor() -> None:
    assert only_row(fitted(runs(lambda kernel, case: 0.5))).constant == 8.0
    # Two units of a declared step: 2 / (1/4) here, 2 / (1/8) in a contraction.
    step = Interval(0.0, 0.0, 0, "linear", 0.125, contraction=True)
    row = only_row(fitted(runs(lambda kernel, case: 0.5, law=step)))
    assert row.constant == 16.0
    assert row.comparator["lower_precision_constant"] == 2.0


def test_one_rare_large_need_counts_in_full_where_a_percentile_would_drop_it() -> None:
    row = only_row(
        fitted(
            runs(
                lambda kernel, case: (
                    12.0
                    if (kernel, case.sizes["N"], case.recipe, case.seed) == ("a", 1, "ties", 0)
                    else 1.0
                )
            )
        )
    )
    assert (row.constant, row.p95, row.largest) == (18.0, 1.0, 12.0)


def test_what_is_held_out_is_not_fitted_on() -> None:
    row = only_row(fitted(runs()))
    seeds, shape, recipe = (row.held_out[what] for what in ("seeds", "shape", "recipe"))
    # 3 kernels; 2 of 4 recipes may be held out, and 3 of 5 sizes.
    assert recipe.runs == 3 * len(SIZES) * 5
    assert shape.runs == 3 * (len(RECIPES) - 1) * 5
    assert seeds.runs == 3 * (len(SIZES) - 1) * (len(RECIPES) - 1) * 2
    assert row.runs == 3 * (len(SIZES) - 1) * (len(RECIPES) - 1) * 3
    assert row.runs + seeds.runs + shape.runs + recipe.runs == 300


def test_new_seeds_that_need_more_are_counted_and_nothing_is_widened() -> None:
    row = only_row(fitted(runs(lambda kernel, case: 100.0 if case.seed == 4 else 6.0)))
    assert row.constant == 9.0
    assert row.held_out["seeds"].rejected == row.held_out["seeds"].runs / 2
    assert row.held_out["seeds"].kernels_rejected == 3


def test_the_bound_has_the_kernel_as_unit_however_many_runs_there_were() -> None:
    tried = only_row(fitted(runs())).held_out["seeds"]
    assert (tried.kernels, tried.kernels_rejected, tried.runs) == (3, 0, 72)
    assert tried.bound == pytest.approx(1 - 0.025 ** (1 / 3), abs=1e-4)


@pytest.mark.parametrize("size", [31, 63, 65])
def test_a_shape_is_held_out_that_has_other_recipes_than_the_one_held_out(size: int) -> None:
    # Of these recipes only `rising` may be held out, and with it all runs of one inner size.
    other = 65 if size == 63 else 63
    inner = {"rising": size, "normal": other, "ties": other}
    some = [
        run
        for run in runs()
        if run.case.recipe in inner and run.case.sizes["N"] in (1, 257, inner[run.case.recipe])
    ]
    assert only_row(fitted(iter(some))).held_out["shape"].kernels == 3


@pytest.mark.parametrize("size", [31, 63, 65])
def test_a_held_out_shape_is_neither_the_smallest_nor_the_largest(size: int) -> None:
    row = only_row(fitted(runs(lambda kernel, case: 50.0 if case.sizes["N"] == size else 6.0)))
    ends = only_row(fitted(runs(lambda kernel, case: 50.0 if case.sizes["N"] in (1, 257) else 6.0)))
    assert row.constant in (9.0, 75.0)
    assert ends.constant == 75.0


def test_a_kernel_left_out_is_judged_by_what_the_others_need() -> None:
    row = only_row(fitted(runs(lambda kernel, case: 15.0 if kernel == "a" else 2.0)))
    left = {one.kernel: one for one in row.left_out}
    assert (left["a"].constant, left["a"].rejected) == (8.0, 100)
    assert (left["b"].constant, left["b"].rejected) == (22.5, 0)
    assert row.rejected == 100


def test_too_few_kernels_are_refused_with_how_many_are_needed() -> None:
    (refused,) = fitted(runs(kernels=("a", "torch-softmax"))).refused
    assert "3 such kernels are needed" in refused.reason
    assert "add another kernel for softmax" in refused.reason


def test_too_few_runs_are_refused_with_how_many_are_needed() -> None:
    (refused,) = fitted(runs(), "absolute").refused
    assert "0 of 3 kernels have the 100 runs that 'absolute' needs" in refused.reason
    # Three seeds give 36 runs each.
    assert "raise --seeds to 9 (a has 36" in refused.reason


def test_a_kernel_that_disagrees_is_an_error_and_no_tolerance_to_fit() -> None:
    with pytest.raises(EnvironmentFailure, match=r"b/original disagrees .* no tolerance to fit"):
        check_agreement(runs(beyond={"b": "y is 700 units off, and may be 16"}))
    check_agreement(runs())


def test_torchs_result_is_left_out_where_it_rounds_on_the_way() -> None:
    found = runs(
        lambda kernel, case: 700.0 if kernel == "torch-softmax" else 6.0,
        kernels=("a", "b", "c", "torch-softmax"),
        beyond={"torch-softmax": "y is 700 units off, and may be 16"},
    )
    listed = list(found)
    check_agreement(listed)
    result = fitted(iter(listed))
    assert only_row(result).kernels == ("a", "b", "c")
    assert only_row(result).constant == 9.0
    assert result.torch_left_out == ("softmax in float16: y is 700 units off, and may be 16",)


def test_a_need_without_measure_is_refused() -> None:
    found = list(runs(lambda kernel, case: float("inf") if case.seed == 0 else 1.0))
    (refused,) = fitted(iter(found)).refused
    assert "no constant passes" in refused.reason


def test_an_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'interval'"):
        get_model("intervall")
