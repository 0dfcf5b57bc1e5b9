"""What can be fitted: by how much a record needs a tolerance widened, and the comparator of it.

Every model has one constant. A record's *need* is the smallest constant under which it passes,
so that the constant of many records is the largest of their needs, times an envelope.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from gatecert.errors import UsageError, did_you_mean
from gatecert.oracle.comparators import (
    AllClose,
    BaselineRatio,
    Comparator,
    Cosine,
    Envelope,
    RootMeanSquare,
    RoundingInterval,
)
from gatecert.oracle.formats import FORMATS
from gatecert.oracle.observation import Interval, Observation

_USUAL = RoundingInterval()
_FLOOR, _FLOOR_OF_STEP = 8.0, 2.0
"""A fitted constant is at least that many units of fp32, or of a declared step's roundoff: an
exponential that is off by 2 ULP needs 4 on short rows and hides on long ones."""
FEW_RUNS, MANY_RUNS = 12, 100
"""Runs of each kernel that a fit needs. With growth and a floor 12 leave 0.03% of fresh correct
runs rejected; without them even 59 leave 0.3 to 0.8%, and some 300 are needed for 0.1%."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a group's comparator depends on beside its constant."""

    dtype: str
    law: Interval | None = None
    """Of the record with the heaviest declared step: its contraction and weight."""
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A comparator with one constant to be fitted.

    `collecting` is the comparator under which records are made: it decides what they hold.
    """

    name: str
    summary: str
    need: Callable[[Observation, str], float]
    make: Callable[[float, float, Facts], Comparator]
    """From the constant, the envelope in it, and the facts."""
    floor: Callable[[Facts], float] = lambda facts: 0.0
    runs_needed: int = MANY_RUNS
    collecting: Comparator = _USUAL


def get_model(name: str) -> Model:
    """The model of that name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in MODELS:
        return MODELS[name]
    raise UsageError(f"unknown model {name!r}; {did_you_mean(name, MODELS)}")


def _interval_need(seen: Observation, dtype: str) -> float:
    assert seen.interval is not None
    return math.inf if seen.interval.broken else seen.interval.score


def _interval(constant: float, envelope: float, facts: Facts) -> Comparator:
    weight = facts.law.middle_weight if facts.law else 0.0
    return RoundingInterval(
        constant, constant, weight * constant or _USUAL.lower_precision_constant
    )


def _interval_floor(facts: Facts) -> float:
    weight = facts.law.middle_weight if facts.law else 0.0
    return max(_FLOOR, _FLOOR_OF_STEP / weight) if weight else _FLOOR


def _all_close_need(seen: Observation, dtype: str) -> float:
    unit = FORMATS[dtype].unit
    return max(
        (max(0.0, error - unit * scale) for scale, error in seen.hulls["reference"]), default=0.0
    )


def _ratio_need(seen: Observation, dtype: str) -> float:
    assert seen.baseline is not None
    return _over(seen.moments.largest_error, seen.baseline.largest_error)


def _rms_need(seen: Observation, dtype: str) -> float:
    return _over(*RootMeanSquare(1.0, relative=True).measure(seen.moments))


def _over(error: float, scale: float) -> float:
    if error == 0.0:
        return 0.0
    return error / scale if scale else math.inf


MODELS = {
    model.name: model
    for model in (
        Model(
            "interval",
            "the rounding-interval test, in units of the operation's own rounding (the default)",
            _interval_need,
            _interval,
            _interval_floor,
            FEW_RUNS,
        ),
        Model(
            "allclose",
            "rtol of one roundoff of the dtype, atol fitted: for these shapes and values alone",
            _all_close_need,
            lambda constant, envelope, facts: AllClose(constant, FORMATS[facts.dtype].unit),
        ),
        Model(
            "absolute",
            "one absolute limit: the largest error and an envelope",
            lambda seen, dtype: seen.moments.largest_error,
            lambda constant, envelope, facts: Envelope(
                constant / envelope, "max", envelope, facts.runs
            ),
        ),
        Model(
            "ratio",
            "times the largest error of torch's own result on the same case",
            _ratio_need,
            lambda constant, envelope, facts: BaselineRatio(constant),
            collecting=BaselineRatio(),
        ),
        Model(
            "rms",
            "RMS error relative to the RMS of the reference: blind to single elements",
            _rms_need,
            lambda constant, envelope, facts: RootMeanSquare(constant, relative=True),
        ),
        Model(
            "cosine",
            "cosine distance: blind to single elements and to a common scale",
            lambda seen, dtype: Cosine(1.0).measure(seen.moments)[0],
            lambda constant, envelope, facts: Cosine(constant),
        ),
    )
}


def as_table(comparator: Comparator) -> dict[str, object]:
    """A comparator as it stands in TOML."""
    table: dict[str, object] = msgspec.to_builtins(comparator)
    return table
