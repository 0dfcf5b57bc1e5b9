"""Rates with the uncertainty that their evidence carries.

Mutants of one kernel live and die together, so they are a clustered census and not a sample:
their interval is a bootstrap that draws whole kernels. Controls get the exact binomial
interval with the kernel as unit. Wilson's interval is for independent draws alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from scipy import special  # scipy.stats takes a second to import

CONFIDENCE = 0.95
BOOTSTRAP_DRAWS = 10_000


class Rate(msgspec.Struct, frozen=True):
    """A share of `n` with its 95% interval; all None where `n` is 0 and nothing is known."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def cluster_bootstrap(
    clusters: Mapping[str, tuple[int, int]], *, seed: int, draws: int = BOOTSTRAP_DRAWS
) -> Rate:
    """Share of successes, with a percentile interval over resampled clusters.

    Args:
        clusters: per cluster (kernel) its successes and its trials; empty ones are left out.
        seed: of the resampling: the same seed gives the same interval.
        draws: how many resamples, each of as many clusters as there are.

    With one cluster, or where all clusters have one rate, resampling shows no spread: `low` and
    `high` are then None, since a point would claim a certainty that a few kernels cannot give.
    Percentiles
    are the 2.5th and 97.5th (Efron and Tibshirani 1993, section 13.3).
    """
    counts = np.array([pair for pair in clusters.values() if pair[1] > 0], dtype=np.float64)
    if len(counts) == 0:
        return Rate(None, None, None, 0)
    value = float(counts[:, 0].sum() / counts[:, 1].sum())
    n = int(counts[:, 1].sum())
    if np.ptp(counts[:, 0] / counts[:, 1]) == 0.0:
        return Rate(value, None, None, n)
    drawn = counts[np.random.default_rng(seed).integers(len(counts), size=(draws, len(counts)))]
    rates = drawn[:, :, 0].sum(axis=1) / drawn[:, :, 1].sum(axis=1)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(rates, [tail, 100 - tail])
    return Rate(value, float(low), float(high), n)


def macro_average(groups: Mapping[str, tuple[int, int]]) -> float | None:
    """Mean of the groups' own rates, so that no bug class outvotes the others.

    None where no group has a trial.
    """
    rates = [successes / trials for successes, trials in groups.values() if trials > 0]
    return sum(rates) / len(rates) if rates else None


def clopper_pearson(successes: int, trials: int) -> Rate:
    """Exact binomial 95% interval (Clopper and Pearson 1934), never too narrow.

    Zero of n gives the upper bound that n clean units prove: `1 - 0.025 ** (1 / n)`.
    """
    _check(successes, trials)
    if trials == 0:
        return Rate(None, None, None, 0)
    tail, failures = (1 - CONFIDENCE) / 2, trials - successes
    low = special.betaincinv(successes, failures + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, failures, 1 - tail) if failures else 1.0
    return Rate(successes / trials, float(low), float(high), trials)


def wilson(successes: int, trials: int) -> Rate:
    """Wilson's 95% score interval (1927), for mutants drawn at random (`--sample`)."""
    _check(successes, trials)
    if trials == 0:
        return Rate(None, None, None, 0)
    value = successes / trials
    z = float(special.ndtri((1 + CONFIDENCE) / 2))
    centre = value + z**2 / (2 * trials)
    half = z * math.sqrt(value * (1 - value) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    low = (centre - half) / scale if successes else 0.0
    high = (centre + half) / scale if successes < trials else 1.0
    return Rate(value, low, high, trials)


def tally(outcomes: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Successes and trials per group, in order of first appearance."""
    groups: dict[str, tuple[int, int]] = {}
    for group, success in outcomes:
        successes, trials = groups.get(group, (0, 0))
        groups[group] = (successes + success, trials + 1)
    return groups


def _check(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
