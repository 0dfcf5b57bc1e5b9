"""Judging a record agrees with judging the output, for every comparator that there is.

Comparators are drawn from the fields of their records, and outputs next to the limit are found by
bisection over the numbers of the format: a new comparator is covered by being in `COMPARATORS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import msgspec
import numpy as np
import pytest
import torch

from gatecert.errors import UsageError
from gatecert.oracle.comparators import (
    COMPARATORS,
    Comparator,
    NotJudgeable,
    RoundingInterval,
    judge,
    judge_observation,
)
from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import FORMATS, round_to, to_float64, torch_dtype
from gatecert.oracle.observation import CLASSES, Observation, observe
from tests.oracle.expectations import expected

PAIRS = -(-10_000 // len(COMPARATORS))
"""Of each comparator."""
LIMITS = (0.0, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 4.0, 16.0)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


@dataclass(frozen=True, slots=True)
class Pair:
    """An output for a comparator; `near`: an element is within 2 ULP of where the verdict turns."""

    comparator: Comparator
    expected: ExpectedOutput
    output: torch.Tensor
    near: bool


@pytest.mark.parametrize("kind", COMPARATORS, ids=lambda kind: kind.__name__)
def test_a_record_is_judged_as_the_output_itself_was(kind: type[Comparator]) -> None:
    generator = np.random.default_rng(len(kind.__name__))
    judged = near = rejected = 0
    dtypes, special = set(), set()
    for pair in pairs(kind, generator):
        comparator = pair.comparator
        seen = seen_by(comparator, pair.expected, pair.output)
        again = msgspec.json.decode(msgspec.json.encode(seen), type=Observation)
        from_record = judge_observation(comparator, again)
        direct = judge(comparator, pair.expected, pair.output)
        assert (from_record.passed, from_record.reason) == (direct.passed, direct.reason), pair
        judged, near, rejected = judged + 1, near + pair.near, rejected + (not direct.passed)
        dtypes.add(seen.dtype)
        special |= {name for name, row in zip(CLASSES, seen.table, strict=True) if any(row)}
        if judged >= PAIRS and near >= PAIRS / 2:
            break
    assert judged >= PAIRS and near >= PAIRS / 2
    assert judged / 10 < rejected < judged
    assert dtypes == set(FORMATS)
    assert special == set(CLASSES)


def seen_by(comparator: Comparator, made: ExpectedOutput, output: torch.Tensor) -> Observation:
    """The record that a gate with this comparator keeps."""
    return observe(
        made,
        output,
        rounded_reference=getattr(comparator, "round_reference", False),
        interval=comparator if isinstance(comparator, RoundingInterval) else None,
    )


def judgeable(comparator: Comparator) -> bool:
    """Does it say so? One that never does would leave this test without pairs, and failing."""
    made = expected([1.0], mid_unit=2.0**-11)
    try:
        judge_observation(comparator, seen_by(comparator, made, torch.ones(1)))
    except NotJudgeable:
        return False
    return True


def pairs(kind: type[Comparator], generator: np.random.Generator) -> Iterator[Pair]:
    """Outputs by the handful, half of the handfuls on both sides of a limit."""
    for turn in range(20 * PAIRS):
        dtype = sorted(FORMATS)[turn % len(FORMATS)]
        comparator = drawn(kind, generator)
        if not judgeable(comparator):
            continue
        reference = numbers(generator, int(generator.integers(1, 7)))
        made = expected(
            reference,
            dtype,
            length=int(generator.choice([1, 128, 1000])),
            contraction=bool(generator.random() < 0.5),
            mid_unit=float(generator.choice([0.0, 2.0**-11])),
            baseline=around(reference, dtype, generator, 2),
        )
        plain = tensor_of(around(reference, dtype, generator, int(generator.integers(0, 2))), dtype)
        finite = np.flatnonzero(np.isfinite(to_float64(plain)))
        place = int(generator.choice(finite)) if finite.size else -1
        limit = None if place < 0 else turning_point(comparator, made, plain, place)
        if limit is not None:
            for steps in range(-2, 3):
                yield Pair(comparator, made, moved(plain, place, limit + steps), near=True)
        odd = plain.clone()
        odd[int(generator.integers(len(odd)))] = float(generator.choice(SPECIAL))
        yield Pair(comparator, made, odd, near=False)
        far = tensor_of(round_to(numbers(generator, len(odd)), FORMATS[dtype]), dtype)
        yield Pair(comparator, made, far, near=False)


def drawn(kind: type[Comparator], generator: np.random.Generator) -> Comparator:
    """One with fields drawn by their types; what it refuses is drawn again."""
    while True:
        fields = {
            field.name: value_of(field.type, generator) for field in msgspec.structs.fields(kind)
        }
        try:
            return kind(**fields)
        except UsageError:
            continue


def value_of(annotation: Any, generator: np.random.Generator) -> Any:
    """A value of that type."""
    if annotation is bool:
        return bool(generator.random() < 0.5)
    if annotation is float:
        return float(generator.choice(LIMITS))
    if annotation is int:
        return int(generator.integers(100))
    assert get_origin(annotation) is Literal, annotation
    return str(generator.choice(get_args(annotation)))


def numbers(generator: np.random.Generator, count: int) -> np.ndarray:
    """Reference values: ordinary ones over many magnitudes, and corners of the formats."""
    corners = np.array([*SPECIAL, 1.0, 6e-8, 1e-40, 65519.0, -65520.0, 3.4e38, 3.5e38])
    spread = generator.normal(size=count) * 10.0 ** generator.integers(-8, 4, count)
    return np.where(generator.random(count) < 0.2, generator.choice(corners, count), spread)


def around(
    reference: np.ndarray, dtype: str, generator: np.random.Generator, ulps: int
) -> np.ndarray:
    """The rounded reference, its finite elements a few steps off."""
    rounded = tensor_of(round_to(reference, FORMATS[dtype]), dtype)
    for place in np.flatnonzero(np.isfinite(to_float64(rounded))):
        steps = int(generator.integers(-ulps, ulps + 1))
        rounded = moved(rounded, int(place), ordinal(rounded, int(place)) + steps)
    return to_float64(rounded)


def tensor_of(values: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.from_numpy(values).to(torch_dtype(dtype))


def ordinal(values: torch.Tensor, place: int) -> int:
    """The position of an element among all numbers of its format; 0 is zero."""
    bits = int(values.view(_BITS[values.dtype])[place])
    return bits if bits >= 0 else -(bits & largest_bits(values))


def largest_bits(values: torch.Tensor) -> int:
    return int(torch.iinfo(_BITS[values.dtype]).max)


def moved(values: torch.Tensor, place: int, position: int) -> torch.Tensor:
    """A copy with the number of that position in that place, within the finite ones."""
    last = ordinal(torch.tensor([torch.finfo(values.dtype).max], dtype=values.dtype), 0)
    position = max(-last, min(last, position))
    copy = values.clone()
    bits = copy.view(_BITS[values.dtype])
    bits[place] = position if position >= 0 else -position - largest_bits(values) - 1
    return copy


def turning_point(
    comparator: Comparator, made: ExpectedOutput, plain: torch.Tensor, place: int
) -> int | None:
    """The last position, away from zero, at which an output that passes still passes, if any."""
    low = ordinal(plain, place)
    last = largest_bits(plain) if low >= 0 else -largest_bits(plain)

    def passes(position: int) -> bool:
        return judge(comparator, made, moved(plain, place, position)).passed

    if not passes(low) or passes(last):
        return None
    high = last
    while abs(high - low) > 1:
        middle = (low + high) // 2 if high > low else -((-low - high) // 2)
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
