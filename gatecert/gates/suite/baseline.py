"""Run a suite several times on the original: which of its tests can be relied on, and what they
launch.

The first run is in pytest's order and the others in the order of judging. After them the parts
that will judge mutants run by themselves. So a test that depends on another shows, whether it is
the order that matters or that the other runs at all. Every run is in a child of its own.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from gatecert.errors import EnvironmentFailure, GatecertError, NothingScored, UsageError
from gatecert.gates.suite.records import BAD, PASSING, Ending, KnownTest, PytestBaseline, RanTest
from gatecert.gates.suite.selection import Choice, in_order, parts_of
from gatecert.gates.suite.session import Session, run_session
from gatecert.gates.suite.warm import (
    any_mentions,
    importable_without,
    library_modules,
    packages_under_test,
    warm_up,
)
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.sandbox.private_tree import users_path
from gatecert.subjects import Subject

_BASELINE_S = 900.0
_IMPORTS_S = 300.0
_LOG_LINES = 15
_LOG_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Suite:
    """`pytest *args` in `rootdir`, as the gate of that name."""

    gate: str
    args: tuple[str, ...]
    rootdir: Path

    def __str__(self) -> str:
        return f"`{' '.join(('pytest', *self.args))}` in {users_path(str(self.rootdir))}"


class Ran(msgspec.Struct, frozen=True):
    """One run, with the files of the modules of launched kernels, and what it printed last.

    The libraries that it imported, what is under test, and whether any of the former might
    import the latter, are learned from the first run only.
    """

    session: Session
    files: dict[str, str]
    libraries: tuple[str, ...] = ()
    under_test: tuple[str, ...] = ()
    suspect: bool = False
    log: str = ""


def measure_baseline(suite: Suite, subject: Subject, runs: int) -> PytestBaseline:
    """Run the suite `runs` times, and import here what it imports from libraries.

    Raises:
        UsageError: the arguments are wrong, or select no test.
        EnvironmentFailure: a test fails in every run, none is reliable, or pytest itself fails.
        NothingScored: no test runs; all are skipped, for instance.
    """
    first = _run(suite, subject, None, learn=True)
    tests = known_tests([first.session])
    if not any(PASSING.intersection(test.endings) for test in tests):
        _refuse(suite, tests, first.log)
    found = PytestBaseline((), first.files, first.libraries, first.under_test, first.suspect)
    warm_up_for(found)
    order = Choice(in_order(tests), others=True)
    whole = [first, *(_run(suite, subject, order) for _ in range(runs - 1))]
    sessions = [ran.session for ran in whole]
    parts = [(part, _run(suite, subject, part)) for part in parts_of(known_tests(sessions))]
    tests = known_tests(sessions, [(part, ran.session) for part, ran in parts])
    _refuse(suite, tests, first.log)
    files = {name: path for _, ran in parts for name, path in ran.files.items()}
    files |= {name: path for ran in whole for name, path in ran.files.items()}
    return msgspec.structs.replace(found, tests=tuple(tests), files=files)


def warm_up_for(baseline: PytestBaseline) -> None:
    """Import the suite's libraries here, so that no child has to; never the code under test."""
    warm_up(_safe_modules(baseline))


def known_tests(
    whole: Sequence[Session], parts: Sequence[tuple[Choice, Session]] = ()
) -> list[KnownTest]:
    """Every test that any whole run saw, with what all runs of it showed."""
    ran = [{test.nodeid: test for test in session.tests} for session in whole]
    ran_in_parts = [
        (frozenset(part.nodeids), {test.nodeid: test for test in session.tests})
        for part, session in parts
    ]
    evidence = whole[0].evidence
    idle = frozenset(evidence.compared_nothing) if evidence is not None else frozenset()

    def known(nodeid: str) -> KnownTest:
        runs = [*ran, *(tests for chosen, tests in ran_in_parts if nodeid in chosen)]
        seen = [tests[nodeid] for tests in runs if nodeid in tests]
        endings = tuple(t[nodeid].ending if nodeid in t else Ending.ABSENT for t in runs)
        said = next((test for test in seen if test.ending in BAD), seen[0])
        return KnownTest(
            nodeid=nodeid,
            endings=endings,
            phase=said.phase,
            message=said.message,
            kernels=tuple(sorted({kernel for test in seen for kernel in test.kernels})),
            programs=seen[0].programs,
            launches=seen[0].launches,
            compares=nodeid not in idle,
            reason=_why_set_aside(endings),
        )

    return [known(nodeid) for nodeid in dict.fromkeys(_ids(whole))]


def _ids(sessions: Iterable[Session]) -> Iterator[str]:
    return (test.nodeid for session in sessions for test in session.tests)


def _why_set_aside(endings: Sequence[Ending]) -> str:
    """Why a test cannot be relied on; "" where it always ends alike, or never well."""
    if len(set(endings)) == 1 or BAD.issuperset(endings):
        return ""
    counts = Counter(endings)
    passed = counts.pop(Ending.PASSED, 0)
    others = ", ".join(f"{count} {ending.value}" for ending, count in counts.items())
    said = f"passed {passed} of {len(endings)} runs on the original ({others})"
    if len(endings) > 2 and endings[0] in PASSING and BAD.issuperset(endings[1:]):
        said += "; it depends on the tests that run before it"
    return said


def _run(suite: Suite, subject: Subject, choice: Choice | None, *, learn: bool = False) -> Ran:
    """One run in a child; the first is watched, since what a test compares decides its place."""

    def work() -> bytes:
        before = set(sys.modules)
        session = run_session(
            suite.args,
            suite.rootdir,
            stop_at_first=False,
            choice=choice,
            watched=learn,
            entry=subject.entry,
        )
        ran = Ran(session, _files_of(session.tests))
        if learn:
            under_test = packages_under_test(subject.entry_module)
            loaded = library_modules((n for n in sys.modules if n not in before), under_test)
            ran = msgspec.structs.replace(
                ran,
                libraries=tuple(loaded),
                under_test=tuple(sorted(under_test)),
                suspect=any_mentions(loaded, under_test),
            )
        return msgspec.json.encode(ran)

    result = run_in_child(work, timeout_s=_BASELINE_S)
    if result.end is not ChildEnd.ANSWERED:
        how = f"the tests took more than {_BASELINE_S:.0f} s"
        if result.end is ChildEnd.DIED:
            how = "the tests ended their process"
            how += f" by signal {result.signal}" if result.signal else ""
        raise _failed(suite, how, result.log)
    ran = msgspec.json.decode(result.answer, type=Ran)
    _check_session(suite, ran.session, result.log)
    return msgspec.structs.replace(ran, log=result.log)


def _files_of(tests: Iterable[RanTest]) -> dict[str, str]:
    modules = {kernel.partition(":")[0] for test in tests for kernel in test.kernels}
    files = ((name, getattr(sys.modules.get(name), "__file__", None)) for name in sorted(modules))
    return {name: users_path(path) for name, path in files if isinstance(path, str)}


def _check_session(suite: Suite, session: Session, log: str) -> None:
    """Raise for what is no single test's failure."""
    code = session.exit_code
    if code == pytest.ExitCode.NO_TESTS_COLLECTED and not session.tests:
        raise UsageError(
            f"gate {suite.gate!r}: {suite} selects no test; correct args or rootdir in "
            "gatecert.toml"
        )
    # A conftest.py that does not import has the same status as a bad command line.
    if code == pytest.ExitCode.USAGE_ERROR and "loading conftest" not in log:
        said = re.findall(r"(?im)\berror: (.+)$", log) or [log.strip()]
        raise UsageError(f"gate {suite.gate!r}: {suite}: {said[-1]}")
    if session.broken:
        error = session.broken[0]
        raise _failed(suite, f"{error.phase} of {error.test}: {error.message}", log)
    failed = any(test.ending in BAD for test in session.tests)
    usual = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if code not in usual and not (failed and code == pytest.ExitCode.TESTS_FAILED):
        raise _failed(suite, f"pytest ended with status {code}: {session.summary}", log)


def _refuse(suite: Suite, tests: Sequence[KnownTest], log: str) -> None:
    """Raise for tests that nothing can be judged by."""
    bad = [test for test in tests if BAD.issuperset(test.endings)]
    if bad:
        first = bad[0]
        runs = f"all {len(first.endings)} runs" if len(first.endings) > 1 else "the first run"
        more = f" ({len(bad) - 1} more tests fail as well)" if len(bad) > 1 else ""
        raise _failed(
            suite,
            f"{first.phase} of {first.nodeid} failed in {runs}: {first.message}; mend it, or add "
            f'"--deselect={first.nodeid}" to args in gatecert.toml{more}',
            log,
        )
    if not any(PASSING.intersection(test.endings) for test in tests):
        counts = Counter(ending.value for test in tests for ending in test.endings[:1])
        said = ", ".join(f"{count} {what}" for what, count in counts.items())
        reason = tests[0].message.removeprefix("Skipped: ")
        why = f", the first because {reason!r}" if reason else ""
        raise NothingScored(
            f"gate {suite.gate!r}: no test of {suite} passes on the original, so that none can "
            f"object to a mutant: {said}{why}"
        )
    launching = [test for test in tests if test.kernels] or tests
    if all(test.reason for test in launching):
        raise EnvironmentFailure(
            f"gate {suite.gate!r}: no test that launches a kernel can be relied on: "
            f"{launching[0].nodeid} {launching[0].reason}; make the tests repeatable"
        )


def _failed(suite: Suite, what: str, log: str) -> GatecertError:
    lines = [line.rstrip()[:_LOG_COLUMNS] for line in log.strip().splitlines()[-_LOG_LINES:]]
    return EnvironmentFailure(
        "\n".join([f"gate {suite.gate!r} does not pass on the original: {what}", *lines])
    )


def _safe_modules(baseline: PytestBaseline) -> tuple[str, ...]:
    """The library modules that the server may import without the code under test."""
    if not baseline.suspect:
        return baseline.libraries
    under_test = set(baseline.under_test)
    result = run_in_child(
        lambda: msgspec.json.encode(importable_without(baseline.libraries, under_test)),
        timeout_s=_IMPORTS_S,
    )
    # To be warm is to be fast, not to be right: without an answer each child imports.
    if result.end is not ChildEnd.ANSWERED:
        return ()
    return msgspec.json.decode(result.answer, type=tuple[str, ...])
