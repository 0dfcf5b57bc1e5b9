"""Which tests of a suite judge a candidate, and in which order.

Only tests that launch a kernel which can show the change are run. What they launch is learned
from the original: a mutant that sends the code down another path could also be seen by a test
that launches its kernel on that path alone, and such a test is not run. Nor is one that calls a
launcher and sees no launch, on an empty input for instance. A test that launches nothing but
leans on what others launched, in a cache for instance, runs with those of its file.

The order puts first what costs little and looks at much: tests that launch and compare, by the
programs that they launch per distinct launch. Programs are counted, not timed, and no kill is
learned from, so that the order depends neither on the machine nor on the number of jobs nor on
where a run was interrupted. Tests of one folder, file and class stay together, so that their
fixtures are set up once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gatecert.gates.suite.records import PASSING, KnownTest, PytestBaseline
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.private_tree import users_path
from gatecert.wording import listed

_MOST_NAMES = 2


@dataclass(frozen=True, slots=True)
class Choice:
    """The tests to run, in this order; those not named run last if `others`, else not at all.

    `idle_files` hold none of the tests to run: there is no need to import them.
    """

    nodeids: tuple[str, ...]
    idle_files: frozenset[str] = frozenset()
    others: bool = False

    @property
    def key(self) -> str:
        """A hash of its tests and their order."""
        return hashlib.sha256("\0".join(self.nodeids).encode()).hexdigest()[:16]


def chosen_for(candidate: Candidate, baseline: PytestBaseline) -> Choice:
    """The tests for a candidate: those that launch one of its kernels, or any kernel if it
    names none; every test for an adversary, and where no test launches anything.

    A test may call the entry and launch nothing, and still tell an adversary.
    """
    reliable = _reliable(baseline.tests)
    if candidate.kind is CandidateKind.ADVERSARY or not launches_any(baseline):
        return choice(reliable, baseline.tests)
    if not candidate.kernels:
        return choice(_launching(reliable), baseline.tests)
    return choice(_reaching(reliable, candidate.kernels), baseline.tests)


def all_reliable(baseline: PytestBaseline) -> Choice:
    """Every test that can be relied on."""
    return choice(_reliable(baseline.tests), baseline.tests)


def why_unreached(candidate: Candidate, baseline: PytestBaseline) -> str:
    """Why no test of the suite could notice a change of the candidate's kernels, else ""."""
    if not candidate.kernels or not launches_any(baseline):
        return ""
    if not _reaching(baseline.tests, candidate.kernels):
        return f"no test launches {', '.join(candidate.kernels)}"
    if not _reaching(_reliable(baseline.tests), candidate.kernels):
        return f"only tests that are set aside launch {', '.join(candidate.kernels)}"
    return ""


def why_unknown(candidate: Candidate, baseline: PytestBaseline) -> str:
    """Why tests that launch none of the candidate's kernels in sight may still test them, else
    "": they start processes, or read the source and launch kernels that no mutant is in."""
    reliable = _reliable(baseline.tests)
    paths = set(map(users_path, candidate.files))
    readers = [test for test in reliable if baseline.runs_a_copy(test, paths)]
    if readers:
        return (
            f"{_named(readers)} {_verb(readers, 'read')} its source text and "
            f"{_verb(readers, 'launch')} kernels that are not in that file, so that "
            "they may test a copy without the mutant"
        )
    starters = [test for test in reliable if test.is_out_of_sight]
    if starters:
        return (
            f"{_named(starters)} {_verb(starters, 'start')} processes, whose launches are not seen"
        )
    return ""


def owned_tests(kernels: Collection[str], baseline: PytestBaseline) -> frozenset[str] | None:
    """Tests that launch one of a subject's kernels, or may depend on a launch of one; None, which
    is all of them, where no kernel is known or no test launches any."""
    if not kernels or not launches_any(baseline):
        return None
    found = [test for test in baseline.tests if not set(kernels).isdisjoint(test.kernels)]
    files = {test.file for test in found}
    found += [test for test in baseline.tests if test.leans and test.file in files]
    return frozenset(test.nodeid for test in found)


def launches_any(baseline: PytestBaseline) -> bool:
    """Does any test launch a kernel in its own process?"""
    return any(test.kernels for test in baseline.tests)


def parts_of(tests: Sequence[KnownTest]) -> list[Choice]:
    """The parts of a suite that judge by themselves: all reliable tests, those of them that launch,
    and for each kernel those that can show it. Equal parts are named once."""
    reliable = _reliable(tests)
    kernels = sorted({kernel for test in reliable for kernel in test.kernels})
    parts = [reliable, _launching(reliable), *(_reaching(reliable, (one,)) for one in kernels)]
    found = {part.key: part for part in (choice(members, tests) for members in parts if members)}
    return list(found.values())


def idle_part(tests: Sequence[KnownTest]) -> Choice:
    """The reliable tests of which nothing shows that they depend on a launch."""
    idle = [
        test
        for test in _reliable(tests)
        if not test.kernels and not test.leans and PASSING.intersection(test.endings)
    ]
    return choice(idle, tests)


def choice(wanted: Sequence[KnownTest], known: Iterable[KnownTest]) -> Choice:
    """Run these tests of the suite and no others."""
    files = {test.file for test in wanted}
    return Choice(in_order(wanted), frozenset(test.file for test in known) - files)


def in_order(tests: Iterable[KnownTest]) -> tuple[str, ...]:
    """Node ids in the order of judging; equals stay as they are given."""
    placed = [_placed(test, position) for position, test in enumerate(tests)]
    return tuple(_flattened(placed, 0))


def under_known_names(baseline: PytestBaseline, modules: Mapping[str, str]) -> PytestBaseline:
    """The baseline with kernels named as in `modules`, which maps modules to files: pytest may
    import a file under another name than the subject's entry does."""
    known = {os.path.realpath(path): name for name, path in sorted(modules.items(), reverse=True)}
    names = {
        name: known.get(os.path.realpath(path), name)
        for name, path in baseline.files.items()
        if name not in modules
    }

    def renamed(kernel: str) -> str:
        module, colon, qualname = kernel.partition(":")
        return names.get(module, module) + colon + qualname

    tests = (
        msgspec.structs.replace(test, kernels=tuple(sorted(set(map(renamed, test.kernels)))))
        for test in baseline.tests
    )
    return msgspec.structs.replace(baseline, tests=tuple(tests))


def _named(tests: Sequence[KnownTest]) -> str:
    return listed([test.nodeid for test in tests], _MOST_NAMES)


def _verb(tests: Sequence[KnownTest], verb: str) -> str:
    if len(tests) > 1:
        return verb
    return f"{verb}es" if verb.endswith("ch") else f"{verb}s"


def _reliable(tests: Iterable[KnownTest]) -> list[KnownTest]:
    return [test for test in tests if not test.reason]


def _launching(tests: Sequence[KnownTest]) -> list[KnownTest]:
    return _with_leaning([test for test in tests if test.kernels], tests)


def _reaching(tests: Sequence[KnownTest], kernels: Collection[str]) -> list[KnownTest]:
    found = [test for test in tests if not set(kernels).isdisjoint(test.kernels)]
    return _with_leaning(found, tests)


def _with_leaning(wanted: Sequence[KnownTest], tests: Sequence[KnownTest]) -> list[KnownTest]:
    """These, and of files in which a test leans on others all tests that lean or launch: which
    of the others it leans on is not known."""
    ids = {test.nodeid for test in wanted}
    files = {test.file for test in tests if test.leans}.intersection(test.file for test in wanted)
    return [
        test
        for test in tests
        if test.nodeid in ids or (test.file in files and (test.leans or test.kernels))
    ]


@dataclass(frozen=True, slots=True)
class _Placed:
    nodeid: str
    groups: tuple[str, ...]
    """Folders, file and classes around it."""
    key: tuple[bool, bool, float, int]


def _placed(test: KnownTest, position: int) -> _Placed:
    file, _, names = test.nodeid.partition("::")
    classes = names.partition("[")[0].split("::")[:-1]
    cost = test.programs / max(1, test.launches)
    key = (not test.kernels, not test.compares, cost, position)
    return _Placed(test.nodeid, (*file.split("/"), *classes), key)


def _flattened(placed: Sequence[_Placed], depth: int) -> Iterator[str]:
    members: dict[object, list[_Placed]] = {}
    for one in placed:
        name = one.groups[depth] if len(one.groups) > depth else one.key
        members.setdefault(name, []).append(one)
    for group in sorted(members.values(), key=lambda group: min(one.key for one in group)):
        if len(group[0].groups) > depth:
            yield from _flattened(group, depth + 1)
        else:
            yield group[0].nodeid
