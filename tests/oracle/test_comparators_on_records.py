"""Judging a record agrees with judging the output, for every comparator that there is.

Comparators are drawn from the fields of their records, and outputs next to the limit are found by
bisection over the numbers of the format: a new comparator is covered by being in `COMPARATORS`, a
new dtype by being in `TORCH_DTYPES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from gatecert.oracle.formats import (
    FORMATS,
    STORAGE_FORMATS,
    TORCH_DTYPES,
    format_of,
    round_to_dtype,
    to_float64,
    torch_dtype,
)
from gatecert.oracle.observation import CLASSES, Observation, observe
from tests.oracle.expectations import expected

ALL_PAIRS = 10_000
PAIRS = -(-ALL_PAIRS // len(COMPARATORS))
"""Of each comparator."""
NEAR_ULP = 2
ROUNDED = ("int8", "uint8", "int16")
"""Integers that a kernel rounds to: their references are no integers."""
COUNTED = ("int32", "int64", "bool")
"""Indices and counts."""
DTYPES = (*FORMATS, *STORAGE_FORMATS, *ROUNDED, *FORMATS, *STORAGE_FORMATS, *COUNTED)
"""Every dtype that an output may have, in turn; floats come twice."""
LIMITS = (0.0, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 4.0, 16.0)
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32}


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
    judged = near = 0
    verdicts = {(is_near, passed): 0 for is_near in (True, False) for passed in (True, False)}
    of_reference: dict[str, set[str]] = {}
    of_output: dict[str, set[str]] = {}
    for pair in pairs(kind, generator):
        if not pair.near and judged - near >= PAIRS // 2:
            continue
        seen = seen_by(pair.comparator, pair.expected, pair.output)
        again = msgspec.json.decode(msgspec.json.encode(seen), type=Observation)
        from_record = judge_observation(pair.comparator, again)
        direct = judge(pair.comparator, pair.expected, pair.output)
        assert (from_record.passed, from_record.reason) == (direct.passed, direct.reason), pair
        judged, near = judged + 1, near + pair.near
        verdicts[pair.near, direct.passed] += 1
        table = np.asarray(seen.table)
        for found, axis in ((of_reference, 1), (of_output, 0)):
            there = np.flatnonzero(table.any(axis=axis))
            found.setdefault(seen.dtype, set()).update(CLASSES[at] for at in there)
        if judged >= PAIRS:
            break
    assert judged == PAIRS and PAIRS * len(COMPARATORS) >= ALL_PAIRS
    assert near >= judged / 2
    assert min(verdicts.values()) > judged / 50, verdicts
    possible = {dtype: classes_of(dtype) for dtype in TORCH_DTYPES if dtype != "float64"}
    assert of_reference == of_output == possible


def classes_of(dtype: str) -> set[str]:
    """What an element of that dtype can be."""
    fmt = format_of(dtype)
    if fmt is None:
        return {"zero", "finite"}
    return set(CLASSES) - ({"+inf", "-inf"} if fmt.saturates else set())


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
    """Outputs by the handful, most of the handfuls on both sides of a limit."""
    for turn in range(20 * PAIRS):
        dtype = DTYPES[turn % len(DTYPES)]
        comparator = drawn(kind, generator)
        if not judgeable(comparator):
            continue
        made = made_of(dtype, generator)
        plain = around(made, generator, int(generator.integers(0, 2)))
        finite = np.flatnonzero(np.isfinite(to_float64(plain)))
        place = int(generator.choice(finite)) if finite.size else -1
        limit = None if place < 0 else turning_point(comparator, made, plain, place)
        if limit is not None:
            for steps in range(-NEAR_ULP, NEAR_ULP + 1):
                yield Pair(comparator, made, moved(plain, place, limit + steps), near=True)
        odd = plain.clone()
        odd[int(generator.integers(len(odd)))] = odd_value(dtype, generator)
        yield Pair(comparator, made, odd, near=False)
        far = tensor_of(round_to_dtype(numbers(dtype, generator, len(odd)), dtype), dtype)
        yield Pair(comparator, made, far, near=False)


def made_of(dtype: str, generator: np.random.Generator) -> ExpectedOutput:
    """An expectation of one to six elements."""
    reference = numbers(dtype, generator, int(generator.integers(1, 7)))
    made = expected(
        reference,
        "float32" if format_of(dtype) is None else dtype,
        length=int(generator.choice([1, 128, 1000])),
        contraction=bool(generator.random() < 0.5),
        mid_unit=float(generator.choice([0.0, 2.0**-11])),
    )
    if dtype in COUNTED:
        made = replace(made, reference=reference.astype(bool if dtype == "bool" else np.int64))
    made = replace(made, dtype=dtype)
    return replace(made, baseline=to_float64(around(made, generator, 2)))


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


def numbers(dtype: str, generator: np.random.Generator, count: int) -> np.ndarray:
    """Reference values: ordinary ones over many magnitudes, and corners of the formats."""
    fmt = format_of(dtype)
    if fmt is None:
        high = 2 if dtype == "bool" else 100
        whole = generator.integers(0, high, count) * generator.integers(0, 2, count)
        return whole + (generator.uniform(-0.4, 0.4, count) if dtype in ROUNDED else 0.0)
    corners = np.array([*SPECIAL, *SPECIAL, 1.0, 6e-8, 1e-40, 65519.0, -65520.0, 3.4e38, 3.5e38])
    spread = generator.normal(size=count) * 10.0 ** generator.integers(-8, 4, count)
    values = np.where(generator.random(count) < 0.4, generator.choice(corners, count), spread)
    # As expectations have it.
    return np.clip(values, -fmt.largest, fmt.largest) if fmt.saturates else values


def odd_value(dtype: str, generator: np.random.Generator) -> float:
    """A special value that the dtype has."""
    return float(generator.choice([0.0, 1.0] if format_of(dtype) is None else SPECIAL))


def around(made: ExpectedOutput, generator: np.random.Generator, ulps: int) -> torch.Tensor:
    """The rounded reference, its finite elements a few steps off."""
    rounded = tensor_of(round_to_dtype(made.reference, made.dtype), made.dtype)
    for place in np.flatnonzero(np.isfinite(to_float64(rounded))):
        steps = int(generator.integers(-ulps, ulps + 1))
        rounded = moved(rounded, int(place), ordinal(rounded, int(place)) + steps)
    return rounded


def tensor_of(values: np.ndarray, dtype: str) -> torch.Tensor:
    return torch.from_numpy(values).to(torch_dtype(dtype))


def ordinal(values: torch.Tensor, place: int) -> int:
    """The position of an element among all numbers of its format; 0 is zero."""
    if not values.is_floating_point():
        return int(values[place])
    bits = int(values.view(_BITS[values.itemsize])[place])
    return bits if bits >= 0 else -(bits & last_ordinal(values, bits=True))


def last_ordinal(values: torch.Tensor, *, bits: bool = False) -> int:
    """The position of the largest finite number, or the largest pattern of bits."""
    if values.dtype is torch.bool:
        return 1
    if not values.is_floating_point():
        return int(torch.iinfo(values.dtype).max)
    if bits:
        return int(torch.iinfo(_BITS[values.itemsize]).max)
    return ordinal(torch.tensor([torch.finfo(values.dtype).max], dtype=values.dtype), 0)


def moved(values: torch.Tensor, place: int, position: int) -> torch.Tensor:
    """A copy with the number of that position in that place, within the finite ones."""
    last = last_ordinal(values)
    signed = values.dtype not in (torch.bool, torch.uint8)
    position = max(-last if signed else 0, min(last, position))
    copy = values.clone()
    if not values.is_floating_point():
        copy[place] = position
        return copy
    pattern = copy.view(_BITS[values.itemsize])
    pattern[place] = position if position >= 0 else -position - last_ordinal(values, bits=True) - 1
    return copy


def turning_point(
    comparator: Comparator, made: ExpectedOutput, plain: torch.Tensor, place: int
) -> int | None:
    """The last position, away from zero, at which an output that passes still passes, if any."""
    low = ordinal(plain, place)
    high = last_ordinal(plain) if low >= 0 else -last_ordinal(plain)

    def passes(position: int) -> bool:
        return judge(comparator, made, moved(plain, place, position)).passed

    if not passes(low) or passes(high):
        return None
    while abs(high - low) > 1:
        middle = (low + high) // 2 if high > low else -((-low - high) // 2)
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low
