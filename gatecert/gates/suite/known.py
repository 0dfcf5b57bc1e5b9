"""What all runs of a suite on the original show of each of its tests.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gatecert.gates.suite.records import BAD, PASSING, Ending, KnownTest, RanTest
from gatecert.gates.suite.selection import Choice
from gatecert.gates.suite.session import Session

Part = tuple[Choice, Session]


@dataclass(frozen=True, slots=True)
class Seen:
    """Sessions of the whole suite, the first of them watched; of the tests that launched nothing
    in these, by themselves; and of the parts that judge."""

    whole: Sequence[Session]
    idle: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    @property
    def launches(self) -> bool:
        """Did any test of the whole suite launch a kernel?"""
        return any(test.kernels for session in self.whole for test in session.tests)


def known_tests(seen: Seen) -> list[KnownTest]:
    """Every test that any whole run saw, with what all runs of it showed."""
    whole = [_by_id(session) for session in seen.whole]
    parts = [(frozenset(part.nodeids), _by_id(session)) for part, session in seen.parts]
    alone = [_by_id(session) for _, session in seen.idle]
    evidence = seen.whole[0].evidence
    silent = frozenset(evidence.compared_nothing) if evidence is not None else frozenset()
    leaning = {nodeid for part in seen.idle for nodeid in _leaning(part, whole[0])}

    def known(nodeid: str) -> KnownTest:
        runs = [*whole, *(tests for chosen, tests in parts if nodeid in chosen)]
        ran = [tests[nodeid] for tests in runs if nodeid in tests]
        endings = tuple(t[nodeid].ending if nodeid in t else Ending.ABSENT for t in runs)
        said = next((test for test in ran if test.ending in BAD), ran[0])
        launched = [*ran, *(tests[nodeid] for tests in alone if nodeid in tests)]
        share = next((test for test in launched if test.kernels), ran[0])
        return KnownTest(
            nodeid=nodeid,
            endings=endings,
            phase=said.phase,
            message=said.message,
            kernels=tuple(sorted({kernel for test in launched for kernel in test.kernels})),
            programs=share.programs,
            launches=share.launches,
            compares=nodeid not in silent,
            reason=_why_set_aside(endings),
            leans=nodeid in leaning,
            starts=any(test.starts for test in ran),
            sources=tuple(sorted({source for test in ran for source in test.sources})),
        )

    return [known(nodeid) for nodeid in dict.fromkeys(_ids(seen.whole))]


def _leaning(part: Part, usual: Mapping[str, RanTest]) -> Iterator[str]:
    """Tests that end otherwise without those that launch, or stand in one file with a test that
    launches as soon as it is without them: the two may share what it keeps."""
    choice, session = part
    tests = _by_id(session)
    sharing = {_file_of(nodeid) for nodeid, test in tests.items() if test.kernels}
    for nodeid in choice.nodeids:
        test = tests.get(nodeid)
        ended = Ending.ABSENT if test is None else test.ending
        shares = test is not None and not test.kernels and _file_of(nodeid) in sharing
        if ended is not usual[nodeid].ending or shares:
            yield nodeid


def _why_set_aside(endings: Sequence[Ending]) -> str:
    """Why a test cannot be relied on; "" where it always ends alike, or never well."""
    if len(set(endings)) == 1 or BAD.issuperset(endings):
        return ""
    counts = Counter(endings)
    passed = counts.pop(Ending.PASSED, 0)
    others = ", ".join(f"{count} {ending.value}" for ending, count in counts.items())
    said = f"passed {passed} of {len(endings)} runs on the original ({others})"
    if len(endings) > 2 and endings[0] in PASSING and BAD.issuperset(endings[1:]):
        said += "; it may depend on the tests that run before it, or on chance"
    return said


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _by_id(session: Session) -> dict[str, RanTest]:
    return {test.nodeid: test for test in session.tests}


def _ids(sessions: Iterable[Session]) -> Iterator[str]:
    return (test.nodeid for session in sessions for test in session.tests)
