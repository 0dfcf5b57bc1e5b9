"""Add up what was seen: equal things once, with how often they were."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from gatecert.gates.evidence import (
    Compared,
    Evidence,
    LaunchInputs,
    UnequalZip,
    WatchedTest,
)

_MOST = 300
"""Distinct things kept of one sort; of those that follow, shapes are not told apart."""
_CHARACTERS = 200
_NUMBER = re.compile(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)

Counted = TypeVar("Counted", Compared, LaunchInputs, UnequalZip)


@dataclass(slots=True)
class TestCount:
    """A test while it runs; see `WatchedTest`. `reads` counts numbers read out of tensors."""

    name: str
    passed: bool | None = None
    runs: int = 0
    calls: int = 0
    raised: int = 0
    launches: int = 0
    compared: int = 0
    said_no: int = 0
    objected: int = 0
    warned: int = 0
    reads: int = 0
    generated: bool = False
    idle_loop: bool = False

    def record(self) -> WatchedTest:
        """It as it is kept."""
        fields = {
            name: getattr(self, name) for name in WatchedTest.__struct_fields__ if name != "test"
        }
        return WatchedTest(test=self.name, **fields)


@dataclass(slots=True)
class Sights:
    """All that was seen so far."""

    compared: dict[tuple[object, ...], Compared] = field(default_factory=dict)
    launches: dict[tuple[object, ...], LaunchInputs] = field(default_factory=dict)
    entry_inputs: dict[tuple[object, ...], LaunchInputs] = field(default_factory=dict)
    zips: dict[tuple[object, ...], UnequalZip] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    tests: dict[str, TestCount] = field(default_factory=dict)
    calls: int | None = None
    raised: int = 0
    in_place: int = 0
    captured: int = 0
    shown: int = 0

    def add_compared(self, one: Compared) -> None:
        """Of equal comparisons the narrowest tolerance and the largest error are kept."""
        key = (one.function, one.passed, one.atol, one.rtol, one.shapes, one.dtypes, one.ops)
        known = self.compared.get(key)
        if known is not None:
            one = msgspec.structs.replace(
                one,
                wrong_by=_of(min, known.wrong_by, one.wrong_by),
                of_default=_of(min, known.of_default, one.of_default),
                used=_of(max, known.used, one.used),
            )
        _count(self.compared, key, one)

    def add_launch(self, one: LaunchInputs) -> None:
        """A launch."""
        _count(self.launches, msgspec.structs.astuple(one), one)

    def add_entry_inputs(self, one: LaunchInputs) -> None:
        """A call of the entry."""
        _count(self.entry_inputs, msgspec.structs.astuple(one), one)

    def add_zip(self, one: UnequalZip) -> None:
        """Lists of unequal lengths."""
        _count(self.zips, (one.place, one.lengths), one)

    def add_warning(self, message: str) -> None:
        """Messages that differ in their numbers only are one."""
        if len(self.warnings) < _MOST:
            self.warnings.setdefault(without_numbers(message), message[:_CHARACTERS])

    def evidence(self) -> Evidence:
        """All of it as a record."""
        tests = tuple(self.tests.values())
        return Evidence(
            entry_calls=self.calls,
            entry_raised=None if self.calls is None else self.raised,
            entry_in_place=self.in_place,
            entry_inputs=tuple(self.entry_inputs.values()),
            compared=tuple(self.compared.values()),
            launches=tuple(self.launches.values()),
            tests=tuple(test.record() for test in tests[:_MOST]),
            compared_nothing=tuple(
                test.name for test in tests if test.passed and not (test.compared or test.reads)
            ),
            zips=tuple(self.zips.values()),
            warnings=tuple(self.warnings.values()),
            captured=self.captured,
            shown=self.shown,
        )


def without_numbers(message: str) -> str:
    """The message with `#` for every number, cut to a length worth comparing."""
    return _NUMBER.sub("#", message)[:_CHARACTERS]


def new_warnings(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Messages of `after` that `before` has not, numbers aside."""
    known = {without_numbers(message) for message in before}
    return [message for message in after if without_numbers(message) not in known]


def _count(into: dict[tuple[object, ...], Counted], key: tuple[object, ...], one: Counted) -> None:
    if key not in into and len(into) >= _MOST and not isinstance(one, UnequalZip):
        one = msgspec.structs.replace(one, shapes=())
        key = ("more", *msgspec.structs.astuple(one))
    known = into.get(key)
    into[key] = one if known is None else msgspec.structs.replace(one, times=known.times + 1)


def _of(choose: Callable[[list[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
