"""Run a suite several times on the original: which of its tests can be relied on, and what they
launch.

The first run is in pytest's order and the others in the order of judging, each with another seed.
After them run by themselves the tests that launch nothing, and the parts that will judge mutants.
So a test that depends on another shows, whether it is the order that matters or that the other
runs at all. Every run is in a child of its own.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from gatecert.encoding import decode, encode
from gatecert.errors import EnvironmentFailure, GatecertError, NothingScored, UsageError
from gatecert.gates.reads import GateReads
from gatecert.gates.suite.device import ADVICE, fails_without_gpu, waits_for_gpu
from gatecert.gates.suite.fresh import run_fresh
from gatecert.gates.suite.known import Seen, known_tests
from gatecert.gates.suite.log import log_end
from gatecert.gates.suite.records import BAD, PASSING, KnownTest, PytestBaseline, RanTest
from gatecert.gates.suite.request import SessionRequest
from gatecert.gates.suite.seeds import JUDGING_SEED, seed_of_run
from gatecert.gates.suite.selection import Choice, idle_part, in_order, parts_of
from gatecert.gates.suite.session import Session, run_session
from gatecert.gates.suite.warm import (
    any_mentions,
    importable_without,
    library_modules,
    packages_under_test,
    warm_up,
)
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.sandbox.imports import is_users
from gatecert.sandbox.private_tree import users_path
from gatecert.sandbox.reads import watch_reads
from gatecert.subjects import Subject

_BASELINE_S = 900.0
_IMPORTS_S = 300.0


@dataclass(frozen=True, slots=True)
class Suite:
    """`pytest *args` in `rootdir`, as the gate of that name: in forks of this process, or each
    time in a `fresh` one, which does `interpret` kernels or compiles them for a GPU."""

    gate: str
    args: tuple[str, ...]
    rootdir: Path
    fresh: bool = False
    interpret: bool = True

    def __str__(self) -> str:
        return f"`{' '.join(('pytest', *self.args))}` in {users_path(str(self.rootdir))}"


class Ran(msgspec.Struct, frozen=True):
    """One run, with the files of the modules of launched kernels, and what it printed last.

    The libraries that it imported, what is under test, and whether any of the former might import
    the latter, are learned from the first run only.
    """

    session: Session
    files: dict[str, str]
    libraries: tuple[str, ...] = ()
    under_test: tuple[str, ...] = ()
    suspect: bool = False
    reads: GateReads = GateReads()
    log: str = ""
    died: str = ""
    """How a fresh process ended without an answer."""


def measure_baseline(suite: Suite, subject: Subject, runs: int) -> PytestBaseline:
    """Run the suite `runs` times, and import here what it imports from libraries.

    Raises:
        UsageError: the arguments are wrong, or select no test.
        EnvironmentFailure: a test fails in every run, none is reliable, or pytest itself fails.
        NothingScored: no test runs; all are skipped, for instance.
    """
    first = _run(suite, subject, None, learn=True, seed=seed_of_run(0, runs))
    tests = known_tests(Seen([first.session]))
    if not any(PASSING.intersection(test.endings) for test in tests):
        _refuse(suite, tests, first.log)
    found = PytestBaseline((), first.files, first.libraries, first.under_test, first.suspect)
    warm_up_for(found)
    order = Choice(in_order(tests), others=True)
    seeds = [seed_of_run(number, runs) for number in range(1, runs)]
    whole = [first, *(_run(suite, subject, order, seed=seed) for seed in seeds)]
    seen = Seen([ran.session for ran in whole])
    ran = [*whole, *_run_idle(suite, subject, seen), *_run_parts(suite, subject, seen, order)]
    tests = known_tests(seen)
    _refuse(suite, tests, first.log)
    files = {name: path for one in reversed(ran) for name, path in one.files.items()}
    reliable = {test.nodeid for test in tests if not test.reason}
    parts = [order, *(part for part, _ in seen.parts)]
    proven = tuple(part.key for part in parts if reliable.issuperset(part.nodeids))
    reads = functools.reduce(operator.or_, (one.reads for one in ran))
    return msgspec.structs.replace(
        found, tests=tuple(tests), files=files, reads=reads, proven=proven
    )


def _run_idle(suite: Suite, subject: Subject, seen: Seen) -> Iterator[Ran]:
    """Run what launches nothing by itself, until no run of it shows anything new."""
    idle = idle_part(known_tests(seen))
    before: tuple[str, ...] = ()
    while seen.launches and idle.nodeids and idle.nodeids != before:
        ran = _run(suite, subject, idle)
        seen.idle.append((idle, ran.session))
        yield ran
        before, idle = idle.nodeids, idle_part(known_tests(seen))


def _run_parts(suite: Suite, subject: Subject, seen: Seen, order: Choice) -> Iterator[Ran]:
    """Run every part that judges, by itself, as often as it takes: where a test is set aside or
    turns out to launch another kernel, the parts are others."""
    done = {order.key}
    while new := [part for part in parts_of(known_tests(seen)) if part.key not in done]:
        for part in new:
            ran = _run(suite, subject, part)
            seen.parts.append((part, ran.session))
            done.add(part.key)
            yield ran


def warm_up_for(baseline: PytestBaseline) -> None:
    """Import the suite's libraries here, so that no child has to; never the code under test."""
    warm_up(_safe_modules(baseline))


def holds_on_original(
    suite: Suite, subject: Subject, choice: Choice, baseline: PytestBaseline
) -> bool:
    """Do these tests, run without the others, end on the original as they always do?"""
    try:
        session = _run(suite, subject, choice).session
    except GatecertError:
        return False
    usual = {test.nodeid: test.endings[0] for test in baseline.tests}
    ended = {test.nodeid: test.ending for test in session.tests}
    return all(ended.get(nodeid) is usual[nodeid] for nodeid in choice.nodeids)


def _run(
    suite: Suite,
    subject: Subject,
    choice: Choice | None,
    *,
    learn: bool = False,
    seed: int = JUDGING_SEED,
) -> Ran:
    """One run in a child; the first is watched, since what a test compares decides its place."""
    asked = SessionRequest(
        suite.args,
        str(suite.rootdir),
        choice=choice,
        watched=learn,
        entry=subject.entry,
        seed=seed,
    )

    def work() -> bytes:
        if suite.fresh:
            return encode(_ran_fresh(suite, subject, asked))
        return encode(_ran_here(subject, asked, learn))

    result = run_in_child(work, timeout_s=_BASELINE_S)
    if result.end is not ChildEnd.ANSWERED:
        how = f"the tests took more than {_BASELINE_S:.0f} s"
        if result.end is ChildEnd.DIED:
            how = "the tests ended their process"
            how += f" by signal {result.signal}" if result.signal else ""
        raise _failed(suite, how, result.log)
    ran: Ran = decode(result.answer, Ran)
    ran = msgspec.structs.replace(ran, log=ran.log or result.log)
    if ran.died:
        raise _failed(suite, f"the tests ended their process: it {ran.died}", ran.log)
    _check_session(suite, ran.session, ran.log)
    return ran


def _ran_here(subject: Subject, asked: SessionRequest, learn: bool) -> Ran:
    before = set(sys.modules)
    reads = watch_reads(is_users)
    session = run_session(asked)
    ran = Ran(session, _files_of(session.tests), reads=reads.names(modules=learn))
    if not learn:
        return ran
    under_test = packages_under_test(subject.entry_module)
    loaded = library_modules((n for n in sys.modules if n not in before), under_test)
    return msgspec.structs.replace(
        ran,
        libraries=tuple(loaded),
        under_test=tuple(sorted(under_test)),
        suspect=any_mentions(loaded, under_test),
    )


def _ran_fresh(suite: Suite, subject: Subject, asked: SessionRequest) -> Ran:
    """Nothing is learned of libraries: there is no server to import them in."""
    run = run_fresh(asked, {}, subject.import_paths, interpret=suite.interpret)
    files = {name: users_path(path) for name, path in run.seen.modules.items()}
    if run.session is None:
        return Ran(Session(1), files, log=run.log, died=run.how_it_ended)
    return Ran(run.session, files, reads=run.seen.reads, log=run.log)


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
        advice = f"; {ADVICE}" if suite.interpret and fails_without_gpu(error.message) else ""
        raise _failed(suite, f"{error.phase} of {error.test}: {error.message}{advice}", log)
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
            f"{first.phase} of {first.nodeid} failed in {runs}: {first.message}; "
            f"{_advice(suite, first)}{more}",
            "" if fails_without_gpu(first.message) else log,
        )
    if not any(PASSING.intersection(test.endings) for test in tests):
        counts = Counter(ending.value for test in tests for ending in test.endings[:1])
        said = ", ".join(f"{count} {what}" for what, count in counts.items())
        reason = tests[0].message.removeprefix("Skipped: ")
        why = f", the first because {reason!r}" if reason else ""
        if suite.interpret and waits_for_gpu(reason):
            why += f"; {ADVICE}, and skip nothing there"
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


def _advice(suite: Suite, test: KnownTest) -> str:
    """What to do about a test that fails in every run."""
    if suite.interpret and fails_without_gpu(test.message):
        return ADVICE
    return f'mend it, or add "--deselect={test.nodeid}" to args in gatecert.toml'


def _failed(suite: Suite, what: str, log: str) -> GatecertError:
    return EnvironmentFailure(
        "\n".join([f"gate {suite.gate!r} does not pass on the original: {what}", *log_end(log)])
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
