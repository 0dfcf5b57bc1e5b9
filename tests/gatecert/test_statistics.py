"""Intervals against worked examples from the literature and against first principles."""

from __future__ import annotations

import itertools

import pytest

from gatecert.statistics import (
    Rate,
    clopper_pearson,
    cluster_bootstrap,
    macro_average,
    tally,
    wilson,
)


def test_clopper_pearson_matches_newcombes_worked_example() -> None:
    # Newcombe 1998 (Statistics in Medicine 17, table I): 81 of 263 and 15 of 148.
    rate = clopper_pearson(81, 263)
    assert (rate.low, rate.high) == pytest.approx((0.2527, 0.3676), abs=5e-5)
    rate = clopper_pearson(15, 148)
    assert (rate.low, rate.high) == pytest.approx((0.0578, 0.1617), abs=5e-5)


def test_wilson_matches_newcombes_worked_example() -> None:
    rate = wilson(81, 263)
    assert (rate.low, rate.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    rate = wilson(15, 148)
    assert (rate.low, rate.high) == pytest.approx((0.0624, 0.1605), abs=5e-5)


@pytest.mark.parametrize("kernels", [1, 9, 30])
def test_zero_rejections_prove_the_closed_form_upper_bound(kernels: int) -> None:
    rate = clopper_pearson(0, kernels)
    assert rate.low == 0.0
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / kernels), rel=1e-9)


def test_nothing_tried_is_nothing_known() -> None:
    unknown = Rate(None, None, None, 0)
    assert clopper_pearson(0, 0) == unknown
    assert wilson(0, 0) == unknown
    assert cluster_bootstrap({}, seed=0) == unknown
    assert cluster_bootstrap({"softmax": (0, 0)}, seed=0) == unknown
    assert macro_average({"mask-missing": (0, 0)}) is None


def test_more_successes_than_trials_are_refused() -> None:
    with pytest.raises(ValueError, match="4 successes of 3"):
        clopper_pearson(4, 3)
    with pytest.raises(ValueError, match="-1 successes"):
        wilson(-1, 3)


def test_the_bootstrap_draws_whole_kernels() -> None:
    # Two kernels, all killed and none killed: the resamples are (1, 1), (1, 0), (0, 1), (0, 0),
    # so the interval is everything, however many mutants each kernel has.
    rate = cluster_bootstrap({"a": (500, 500), "b": (0, 500)}, seed=1)
    assert rate == Rate(0.5, 0.0, 1.0, 1000)


def test_the_bootstrap_agrees_with_the_exact_resampling_distribution() -> None:
    clusters = {"a": (8, 10), "b": (5, 5), "c": (9, 12)}
    counts = list(clusters.values())
    exact = sorted(
        sum(k for k, _ in draw) / sum(n for _, n in draw)
        for draw in itertools.product(counts, repeat=3)
    )
    rate = cluster_bootstrap(clusters, seed=3)
    assert rate.value == pytest.approx(22 / 27)
    # 27 equally likely draws: each tail of 2.5% lies within the outermost one (3.7%).
    assert rate.low == pytest.approx(exact[0])
    assert rate.high == pytest.approx(exact[-1])


def test_the_bootstrap_is_a_function_of_its_seed() -> None:
    clusters = {f"kernel{i}": (i, 20) for i in range(20)}
    assert cluster_bootstrap(clusters, seed=7) == cluster_bootstrap(clusters, seed=7)
    assert cluster_bootstrap(clusters, seed=7) != cluster_bootstrap(clusters, seed=8)


def test_one_kernel_gives_no_interval() -> None:
    assert cluster_bootstrap({"softmax": (9, 10)}, seed=0) == Rate(0.9, None, None, 10)


@pytest.mark.parametrize("killed", [0, 3, 4])
def test_kernels_of_one_rate_give_no_interval(killed: int) -> None:
    clusters = {"a": (killed, 4), "b": (2 * killed, 8), "none": (0, 0)}
    assert cluster_bootstrap(clusters, seed=0) == Rate(killed / 4, None, None, 12)


def test_the_macro_average_ignores_how_large_a_class_is() -> None:
    assert macro_average({"mask-missing": (100, 100), "race": (0, 1)}) == 0.5
    assert macro_average({"a": (1, 4), "b": (3, 4), "empty": (0, 0)}) == 0.5


def test_tally_counts_per_group_in_order() -> None:
    groups = tally([("b", True), ("a", False), ("b", False)])
    assert list(groups.items()) == [("b", (1, 2)), ("a", (0, 1))]
