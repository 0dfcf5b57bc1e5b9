"""Add up what was seen: equal things once, with how often they were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import msgspec

from gatecert.gates.evidence import (
    Compared,
    Evidence,
    LaunchInputs,
    UnequalZip,
    WatchedTest,
)
from gatecert.gates.watching.origins import Between, MadeOf, Piece

_MOST = 300
"""Distinct things kept of one sort; of those that follow, shapes are not told apart."""
_CHARACTERS = 200
_NUMBER = re.compile(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|\bnan\b|\binf\b)", re.IGNORECASE)

Sizes: TypeAlias = tuple[tuple[str, int], ...]
"""Integers that a launch was given, by name."""
_Extent: TypeAlias = tuple[int | None, Sizes]
_Alike: TypeAlias = tuple[str, object, object]
Counted = TypeVar("Counted", Compared, LaunchInputs, UnequalZip)


@dataclass(slots=True)
class TestCount:
    """A test while it runs; see `WatchedTest`. `reads` counts numbers read out of tensors, `noes`
    are comparisons that said no and may yet be settled: their sides, and whether they raised."""

    name: str
    passed: bool | None = None
    runs: int = 0
    calls: int = 0
    raised: int = 0
    launches: int = 0
    compared: int = 0
    said_no: int = 0
    objected: int = 0
    settled: int = 0
    settled_objected: int = 0
    ends_on_yes: bool = False
    asserts_failed: int = 0
    warned: int = 0
    reads: int = 0
    generated: bool = False
    idle_loop: bool = False
    always_true: str = ""
    any_of: str = ""
    none_beyond: str = ""
    sights: Sights = field(default_factory=lambda: Sights())
    """What was seen in it alone."""
    failed: bool = False
    """It was reported to have failed, whatever came out of it."""
    noes: list[tuple[frozenset[int], bool]] = field(default_factory=list)

    def answered(self, sides: frozenset[int], *, passed: bool, raises: bool) -> None:
        """A comparing function answered, by raising or not; one that passes settles those before
        that said no of one of its sides."""
        self.compared += 1
        self.ends_on_yes = passed
        if passed:
            settled = [raised for others, raised in self.noes if sides & others]
            self.settled += len(settled)
            self.settled_objected += sum(settled)
            self.noes = [no for no in self.noes if not sides & no[0]]
            return
        self.said_no += 1
        self.objected += raises
        self.noes.append((sides, raises))

    def record(self) -> WatchedTest:
        """It as it is kept."""
        fields = {
            name: getattr(self, name) for name in WatchedTest.__struct_fields__ if name != "test"
        }
        return WatchedTest(test=self.name, **fields)


@dataclass(slots=True)
class Sights:
    """What was seen so far, outside of tests, and of the entry wherever it was called; each of the
    tests has its own."""

    compared: dict[tuple[object, ...], Compared] = field(default_factory=dict)
    launches: dict[tuple[object, ...], LaunchInputs] = field(default_factory=dict)
    extents: dict[_Alike, _Extent] = field(default_factory=dict)
    resized: dict[str, None] = field(default_factory=dict)
    entry_inputs: dict[tuple[object, ...], LaunchInputs] = field(default_factory=dict)
    zips: dict[tuple[object, ...], UnequalZip] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)
    tests: dict[str, TestCount] = field(default_factory=dict)
    calls: int | None = None
    raised: int = 0
    in_place: int = 0
    captured: int = 0
    shown: int = 0
    between: Counter[Between] = field(default_factory=Counter)
    pieces: Counter[Piece] = field(default_factory=Counter)
    whole: int = 0

    def add_compared(self, one: Compared) -> None:
        """Of equal comparisons the narrowest tolerance and the largest error are kept."""
        key = (
            *(one.function, one.passed, one.atol, one.rtol, one.shapes, one.dtypes),
            *(one.ops, one.answer, one.nan, one.mended),
        )
        known = self.compared.get(key)
        if known is not None:
            one = msgspec.structs.replace(
                one,
                wrong_by=_of(min, known.wrong_by, one.wrong_by),
                of_default=_of(min, known.of_default, one.of_default),
                used=_of(max, known.used, one.used),
                elements_mended=known.elements_mended + one.elements_mended,
            )
        _count(self.compared, key, one)

    def add_sides(self, sides: MadeOf) -> None:
        """What the sides of a comparison are made of."""
        self.between[sides.between] += 1
        if sides.between is Between.MIXED:
            self.pieces.update(sides.pieces)
            self.whole += not sides.pieces

    def add_launch(self, one: LaunchInputs) -> None:
        """A launch."""
        _count(self.launches, _alike(one), one)

    def add_extent(self, one: LaunchInputs, extent: _Extent) -> None:
        """Programs and integers of a launch: buffers of one size may be filled to many extents."""
        self._compare_extent((one.kernel, one.shapes, one.blocks), extent)

    def add_entry_inputs(self, one: LaunchInputs) -> None:
        """A call of the entry."""
        _count(self.entry_inputs, _alike(one), one)

    def add_zip(self, one: UnequalZip) -> None:
        """Lists of unequal lengths."""
        _count(self.zips, (one.place, one.lengths), one)

    def add_warning(self, message: str) -> None:
        """Messages that differ in their numbers only are one."""
        if len(self.warnings) < _MOST:
            self.warnings.setdefault(without_numbers(message), message[:_CHARACTERS])

    def evidence(self, counts: Callable[[TestCount], bool]) -> Evidence:
        """All of it as a record, with what was seen in the tests that count."""
        tests = [test for test in self.tests.values() if counts(test)]
        seen = Sights()
        for part in (self, *(test.sights for test in tests)):
            seen._add(part)
        return Evidence(
            entry_calls=self.calls,
            entry_raised=None if self.calls is None else self.raised,
            entry_in_place=self.in_place,
            entry_inputs=tuple(self.entry_inputs.values()),
            compared=tuple(seen.compared.values()),
            launches=tuple(seen.launches.values()),
            resized=tuple(seen.resized),
            tests=tuple(test.record() for test in tests[:_MOST]),
            compared_nothing=tuple(
                test.name for test in tests if test.passed and not (test.compared or test.reads)
            ),
            zips=tuple(seen.zips.values()),
            warnings=tuple(seen.warnings.values()),
            captured=seen.captured,
            shown=seen.shown,
            between_outputs=seen.between[Between.OUTPUTS],
            between_others=seen.between[Between.OTHERS],
            with_outputs=seen.between[Between.MIXED],
            whole=seen.whole,
            elements_given=sum({one.output: one.size for one in seen.pieces}.values()),
            elements_compared=sum(one.elements * times for one, times in seen.pieces.items()),
        )

    def _add(self, other: Sights) -> None:
        for compared in other.compared.values():
            self.add_compared(compared)
        for launch in other.launches.values():
            self.add_launch(launch)
        for alike, extent in other.extents.items():
            self._compare_extent(alike, extent)
        self.resized |= other.resized
        for unequal in other.zips.values():
            self.add_zip(unequal)
        for message in other.warnings.values():
            self.add_warning(message)
        self.captured += other.captured
        self.shown += other.shown
        self.between.update(other.between)
        self.pieces.update(other.pieces)
        self.whole += other.whole

    def _compare_extent(self, alike: _Alike, extent: _Extent) -> None:
        if self.extents.setdefault(alike, extent) != extent:
            self.resized[alike[0]] = None


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
        key = ("more", *_alike(one))
    known = into.get(key)
    times = one.times if known is None else known.times + one.times
    into[key] = msgspec.structs.replace(one, times=times)


def _alike(one: Compared | LaunchInputs | UnequalZip) -> tuple[object, ...]:
    """Equal for records that differ in how often they were at most."""
    return msgspec.structs.astuple(msgspec.structs.replace(one, times=1))


def _of(choose: Callable[[list[float]], float], *values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return choose(known) if known else None
