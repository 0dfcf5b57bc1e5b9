"""The order in which a hunt tries cases: coarse to fine, and the same for the same seed.

Rounds mix four kinds of cases, so that a hunt that is cut short has tried some of each: those that
the reveal tags call for, one axis varied at a time from the gate's own cases, two axes, and random
draws of everything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gatecert.operators.records import Reveal
from gatecert.oracle.case import Case
from gatecert.oracle.streams import Stream
from gatecert.witness.called import called_for
from gatecert.witness.records import RUNS, Stage
from gatecert.witness.space import Assignment, Space, Value, changed, differences

SHARES = ((Stage.CALLED, 3), (Stage.ONE_AXIS, 3), (Stage.TWO_AXES, 2), (Stage.RANDOM, 2))
"""How many of each kind a round has, in order."""
_LAPS = 6
"""So often each value is tried, from another of the gate's cases each time."""
_DRAWS = 20_000
"""Draws of two axes, or of all, after which nothing new is expected."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A case to try, why, and which axes were chosen."""

    case: Case
    stage: Stage
    axes: tuple[str, ...]


@dataclass(slots=True)
class Search:
    """The attempts of one hunt; none comes twice, and none is one of the gate's `own`, but for
    those in which it only takes turns of configurations and orders (`runs`)."""

    space: Space
    own: Sequence[Case]
    reveal: Collection[Reveal] = ()
    seed: int = 0
    runs: bool = False
    _seen: set[Case] = field(default_factory=set)

    def attempts(self) -> Iterator[Attempt]:
        """All attempts, in order; they end where the space does."""
        self._seen = set(self.own)
        if self.runs:
            yield from (Attempt(case, Stage.RUNS, (RUNS,)) for case in self.own)
        streams = {
            Stage.CALLED: self._called(),
            Stage.ONE_AXIS: self._one_axis(),
            Stage.TWO_AXES: self._two_axes(),
            Stage.RANDOM: self._random(),
        }
        while True:
            before = len(self._seen)
            for stage, share in SHARES:
                yield from itertools.islice(streams[stage], share)
            if len(self._seen) == before:
                return

    def _called(self) -> Iterator[Attempt]:
        """What the tags call for: each value by itself, then values of several axes together."""
        called = called_for(self.reveal, self.space)
        yield from self._composed(Stage.CALLED, called)
        pairs = [
            {**one, **other}
            for one, other in itertools.combinations(called, 2)
            if one.keys().isdisjoint(other)
        ]
        order = Stream(f"called/{self.seed}").uniform((len(pairs),)).argsort(kind="stable")
        yield from self._composed(Stage.CALLED, [pairs[at] for at in order])
        for lap in range(1, _LAPS):
            yield from self._composed(Stage.CALLED, called, lap)

    def _one_axis(self) -> Iterator[Attempt]:
        """Every value of every axis; the first values of all axes come before the second ones."""
        rows = itertools.zip_longest(
            *([(axis, value) for value in values] for axis, values in self.space.axes.items())
        )
        singles = [{pair[0]: pair[1]} for row in rows for pair in row if pair is not None]
        for lap in range(_LAPS):
            yield from self._composed(Stage.ONE_AXIS, singles, lap)

    def _two_axes(self) -> Iterator[Attempt]:
        pairs = list(itertools.combinations(self.space.axes, 2))
        for turn in range(_DRAWS if pairs else 0):
            stream = Stream(f"two axes/{turn}/{self.seed}")
            axes = pairs[turn % len(pairs)]
            drawn = {axis: _one_of(self.space.axes[axis], stream) for axis in axes}
            yield from self._composed(Stage.TWO_AXES, [drawn], turn)

    def _random(self) -> Iterator[Attempt]:
        """Dims near multiples of a block or of any size, everything else from its axis."""
        for turn in range(_DRAWS):
            stream = Stream(f"random/{turn}/{self.seed}")
            drawn = {axis: _one_of(values, stream) for axis, values in self.space.axes.items()}
            for axis in drawn:
                kind, _, dim = axis.partition(" ")
                if kind == "dim" and dim in self.space.open_dims:
                    drawn[axis] = _size(self.space.blocks[dim], stream)
            drawn["seed"] = self.seed + turn
            base = self.own[turn % len(self.own)]
            case = changed(self.space.operation, base, drawn)
            if self._is_new(case):
                yield Attempt(case, Stage.RANDOM, tuple(differences(base, case)))

    def _composed(
        self, stage: Stage, assignments: Iterable[Assignment], lap: int = 0
    ) -> Iterator[Attempt]:
        """Each assignment on the next of the gate's cases that it fits; where it fits none, on
        one whose other dims are small."""
        count = len(self.own)
        for place, assignment in enumerate(assignments):
            first = _spread(place + lap * 5, count)
            bases = [self.own[(first + step) % count] for step in range(count)]
            cases = [changed(self.space.operation, base, assignment) for base in bases]
            if not any(self.space.fits(case) for case in cases):
                small = (self.space.smallest(base, assignment) for base in bases)
                cases = [changed(self.space.operation, base, assignment) for base in small]
            new = next((case for case in cases if self._is_new(case)), None)
            if new is not None:
                yield Attempt(new, stage, tuple(assignment))

    def _is_new(self, case: Case) -> bool:
        if case in self._seen or not self.space.fits(case):
            return False
        self._seen.add(case)
        return True


def nearest(case: Case, own: Sequence[Case]) -> tuple[Case, dict[str, tuple[Value, Value]]]:
    """The gate's own case that differs on fewest axes, the first of several, and on which."""
    distances = [(len(differences(one, case)), place) for place, one in enumerate(own)]
    _, place = min(distances)
    return own[place], differences(own[place], case)


def _spread(turn: int, count: int) -> int:
    """Places that lie far apart in turn, so that neighbours in the gate's order do not."""
    step = max(1, round(count * 0.382))
    while math.gcd(step, count) > 1:
        step += 1
    return turn * step % count


def _one_of(values: Sequence[Value], stream: Stream) -> Value:
    return values[int(stream.integers(0, len(values), ()))]


def _size(block: int, stream: Stream) -> int:
    """Near a multiple of the block half of the time, else anything up to four of them."""
    unit = block if block > 1 else 4
    if stream.uniform(()) < 0.5:
        near = unit * int(stream.integers(1, 5, ())) + int(stream.integers(-1, 2, ()))
        return max(1, near)
    return int(stream.integers(1, 4 * unit + 1, ()))
