"""Whose launches are whose in one session of pytest."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatecert.gates.suite.deeds import Deed
from gatecert.lanes.records import Launch


@dataclass(frozen=True, slots=True)
class Share:
    """A test's part of the launches, and of what was done out of sight; see `RanTest`."""

    kernels: tuple[str, ...] = ()
    programs: int = 0
    launches: int = 0
    starts: bool = False
    sources: tuple[str, ...] = ()


class LaunchBook:
    """Reads a growing list of launches and deeds, and remembers what was going on at each.

    What a fixture of a wider scope than one test launches belongs to every test that uses it,
    whichever of them came first. What no test can be named for belongs to all: launches during
    collection, and in such a fixture where a test asks for it by name at run time. A deed that
    no test can be named for is nobody's.
    """

    def __init__(self, seen: Sequence[Launch | Deed]) -> None:
        self._seen = seen
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._uses: dict[str, frozenset[str]] = {}
        self._fixtures: dict[str, list[tuple[int, int]]] = {}
        self._of_all: list[tuple[int, int]] = []
        self._in_tests = 0
        """Where the last test ended."""

    @contextlib.contextmanager
    def test(self, nodeid: str, fixtures: Iterable[str]) -> Iterator[None]:
        """A test with all its phases runs inside; `fixtures` are those that it declares."""
        start = len(self._seen)
        self._of_all.append((self._in_tests, start))
        try:
            yield
        finally:
            self._in_tests = len(self._seen)
            self._uses[nodeid] = frozenset(fixtures)
            self._spans.setdefault(nodeid, []).append((start, self._in_tests))

    @contextlib.contextmanager
    def shared_fixture(self, name: str, *, declared: bool) -> Iterator[None]:
        """A fixture that several tests share is set up inside."""
        start = len(self._seen)
        try:
            yield
        finally:
            span = (start, len(self._seen))
            self._fixtures.setdefault(name, []).append(span)
            if not declared:
                self._of_all.append(span)

    def shares(self) -> dict[str, Share]:
        """Every test's part, by its node id; ask at the end of the session."""
        fixtures = {name: _within(spans) for name, spans in self._fixtures.items()}
        of_all = _within([*self._of_all, (self._in_tests, len(self._seen))])
        return {nodeid: self._share(nodeid, fixtures, of_all) for nodeid in self._spans}

    def _share(self, nodeid: str, fixtures: Mapping[str, set[int]], of_all: set[int]) -> Share:
        mine = _within(self._spans[nodeid])
        reached = mine.union(*(fixtures.get(name, set()) for name in self._uses[nodeid]))
        own = list(self._launches(mine.difference(*fixtures.values())))
        deeds = [one for one in self._at(reached) if isinstance(one, Deed)]
        return Share(
            kernels=tuple(sorted({one.kernel for one in self._launches(reached | of_all)})),
            programs=sum(math.prod(launch.grid) for launch in own),
            launches=len({(x.kernel, x.types, x.constexprs, x.integers, x.grid) for x in own}),
            starts=any(not deed.source for deed in deeds),
            sources=tuple(sorted({deed.source for deed in deeds if deed.source})),
        )

    def _launches(self, indices: Iterable[int]) -> Iterator[Launch]:
        return (one for one in self._at(indices) if isinstance(one, Launch))

    def _at(self, indices: Iterable[int]) -> Iterator[Launch | Deed]:
        return (self._seen[index] for index in sorted(indices))


def _within(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {index for start, end in spans for index in range(start, end)}
