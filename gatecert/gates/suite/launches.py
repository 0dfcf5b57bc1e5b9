"""Whose launches are whose in one session of pytest."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gatecert.lanes.records import Launch


@dataclass(frozen=True, slots=True)
class Share:
    """A test's part of the launches; see `RanTest`."""

    kernels: tuple[str, ...] = ()
    programs: int = 0
    launches: int = 0


class LaunchBook:
    """Reads a growing list of launches, and remembers what was going on at each.

    What a fixture of a wider scope than one test launches belongs to every test that uses it,
    whichever of them came first. What no test can be named for belongs to all: launches during
    collection, and in such a fixture where a test asks for it by name at run time.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self._launches = launches
        self._spans: dict[str, list[tuple[int, int]]] = {}
        self._uses: dict[str, frozenset[str]] = {}
        self._fixtures: dict[str, list[tuple[int, int]]] = {}
        self._of_all: list[tuple[int, int]] = []
        self._in_tests = 0
        """Where the last test ended."""

    @contextlib.contextmanager
    def test(self, nodeid: str, fixtures: Iterable[str]) -> Iterator[None]:
        """A test with all its phases runs inside; `fixtures` are those that it declares."""
        start = len(self._launches)
        self._of_all.append((self._in_tests, start))
        try:
            yield
        finally:
            self._in_tests = len(self._launches)
            self._uses[nodeid] = frozenset(fixtures)
            self._spans.setdefault(nodeid, []).append((start, self._in_tests))

    @contextlib.contextmanager
    def shared_fixture(self, name: str, *, declared: bool) -> Iterator[None]:
        """A fixture that several tests share is set up inside."""
        start = len(self._launches)
        try:
            yield
        finally:
            span = (start, len(self._launches))
            self._fixtures.setdefault(name, []).append(span)
            if not declared:
                self._of_all.append(span)

    def shares(self) -> dict[str, Share]:
        """Every test's part, by its node id; ask at the end of the session."""
        kernels = {name: self._kernels(_within(spans)) for name, spans in self._fixtures.items()}
        shared = _within(span for spans in self._fixtures.values() for span in spans)
        of_all = self._kernels(_within([*self._of_all, (self._in_tests, len(self._launches))]))
        return {nodeid: self._share(nodeid, kernels, shared, of_all) for nodeid in self._spans}

    def _share(
        self, nodeid: str, of_fixtures: Mapping[str, set[str]], shared: set[int], of_all: set[str]
    ) -> Share:
        mine = _within(self._spans[nodeid])
        used = (of_fixtures.get(name, set()) for name in self._uses[nodeid])
        own = [self._launches[index] for index in sorted(mine - shared)]
        return Share(
            kernels=tuple(sorted(self._kernels(mine).union(of_all, *used))),
            programs=sum(math.prod(launch.grid) for launch in own),
            launches=len({(x.kernel, x.types, x.constexprs, x.integers, x.grid) for x in own}),
        )

    def _kernels(self, indices: Iterable[int]) -> set[str]:
        return {self._launches[index].kernel for index in indices}


def _within(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {index for start, end in spans for index in range(start, end)}
