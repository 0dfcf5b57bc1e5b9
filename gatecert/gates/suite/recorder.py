"""A pytest plugin that writes down what became of each test.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

import msgspec
import pytest

from gatecert.errors import described
from gatecert.gates.evidence import TestTally
from gatecert.gates.failing import is_no_verdict
from gatecert.gates.suite.launches import LaunchBook, Share
from gatecert.gates.suite.records import Ending, RanTest
from gatecert.gates.watching.watch import Watch
from gatecert.lanes import interpreter
from gatecert.lanes.cuda.failures import is_fault, pending_fault
from gatecert.sandbox.private_tree import users_path

_DETAIL_CHARACTERS = 300
_WORST_FIRST = (
    Ending.FAILED,
    Ending.ERROR,
    Ending.XFAILED,
    Ending.SKIPPED,
    Ending.XPASSED,
    Ending.PASSED,
)


class Failure(msgspec.Struct, frozen=True):
    """A test (or a file to be collected) and the last line of its error."""

    test: str
    phase: str
    message: str


class Recorder:
    """Records, and ends the session at the first positive verdict if asked.

    `-x` would also end it at an error of the lane, and hide a failure that comes later.
    """

    def __init__(
        self,
        log: interpreter.FindingLog,
        launches: LaunchBook,
        *,
        stop_at_first: bool,
        watch: Watch | None,
    ) -> None:
        self.failures: list[Failure] = []
        self.errors: list[Failure] = []
        self.broken: list[Failure] = []
        """Those errors that are no single test's."""
        self.fault: Failure | None = None
        """A kernel's on a GPU, with the test in which it showed."""
        self.collected = 0
        self.warnings = 0
        self._log = log
        self._launches = launches
        self._stop_at_first = stop_at_first
        self._watch = watch
        self._blamed = 0
        self._session: pytest.Session | None = None
        self._item: pytest.Item | None = None
        self._endings: dict[str, Ending] = {}
        self._said: dict[str, Failure] = {}
        self._calls: Counter[str] = Counter()
        self._deselected = 0

    def end(self) -> None:
        """The session is over: note launches that failed after the last test."""
        self._blame_lane("pytest", "end", self.broken)

    def tests(self) -> tuple[RanTest, ...]:
        """Every test that ran, in the order of running."""
        shares = self._launches.shares()
        return tuple(
            self._test(nodeid, ending, shares.get(nodeid, Share()))
            for nodeid, ending in self._endings.items()
        )

    def tally(self, counting: Callable[[str], bool] = lambda _: True) -> TestTally:
        """The tests that count by what became of them; of one that was retried, its last run
        counts."""
        counts = Counter(end for nodeid, end in self._endings.items() if counting(nodeid))
        return TestTally(
            passed=counts[Ending.PASSED],
            failed=counts[Ending.FAILED],
            errors=counts[Ending.ERROR],
            skipped=counts[Ending.SKIPPED],
            xfailed=counts[Ending.XFAILED],
            xpassed=counts[Ending.XPASSED],
            reruns=sum(n - 1 for nodeid, n in self._calls.items() if counting(nodeid)),
            deselected=self._deselected,
        )

    # -- what is seen

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, to be able to end it."""
        self._session = session

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count what was left out."""
        self._deselected += len(items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count what was selected."""
        self.collected = len(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that does not import is an error; one that skips itself is a skipped test."""
        if report.failed:
            failure = Failure(_id(report), "collection", _last_line(report))
            self.errors.append(failure)
            self.broken.append(failure)
        elif report.skipped:
            self._ended(_id(report), Ending.SKIPPED, "collection", _last_line(report))
        self._blame_lane(_id(report), "collection", self.broken)
        self._blame_device(_id(report), "collection", also=self.broken)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Launches inside are the test's."""
        self._item = item
        with self._launches.test(_id(item), _fixtures_of(item)):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        """Launches inside belong to all tests that use the fixture."""
        name = fixturedef.argname
        declared = self._item is not None and name in _fixtures_of(self._item)
        shared = self._launches.shared_fixture(name, declared=declared)
        with contextlib.nullcontext() if fixturedef.scope == "function" else shared:
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Tell the watch which test is running; count how often it does."""
        self._calls[_id(item)] += 1
        if self._watch is None:
            return (yield)
        function = item.function if isinstance(item, pytest.Function) else None
        self._watch.begin_test(_id(item), function)
        passed = False
        try:
            result = yield
            passed = True
            return result
        finally:
            self._watch.end_test(_id(item), passed)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Note on the report whether lane or device failed; a plugin may log it much later."""
        report = yield
        raised = call.excinfo.value if call.excinfo is not None else None
        failed = self._blame_lane(_id(report), report.when)
        report.lane_failed = self._blame_device(_id(report), report.when, raised) or failed
        report.no_verdict = is_no_verdict(raised)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sort the final report of one phase; `rerun` and the like are not final, nor is that of a
        part of a test, unless it failed."""
        phase = report.when
        if getattr(report, "lane_failed", False) or (_is_of_subtest(report) and not report.failed):
            return
        if report.skipped:
            ending = Ending.XFAILED if hasattr(report, "wasxfail") else Ending.SKIPPED
            self._ended(_id(report), ending, phase, _last_line(report))
        elif report.passed and phase == "call":
            ending = Ending.XPASSED if hasattr(report, "wasxfail") else Ending.PASSED
            self._ended(_id(report), ending, phase)
        elif report.failed:
            self._failed(report, phase)

    def pytest_warning_recorded(self) -> None:
        """Warnings never decide; they are counted."""
        self.warnings += 1

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Pytest or one of its plugins failed."""
        failure = Failure("pytest", "internal error", _shorten(str(excrepr)))
        self.errors.append(failure)
        self.broken.append(failure)

    # -- how it is kept

    def _test(self, nodeid: str, ending: Ending, share: Share) -> RanTest:
        said = self._said.get(nodeid, Failure(nodeid, "", ""))
        return RanTest(
            nodeid,
            ending,
            said.phase,
            said.message,
            share.kernels,
            share.programs,
            share.launches,
            share.starts,
            share.sources,
        )

    def _ended(self, nodeid: str, ending: Ending, phase: str, message: str = "") -> None:
        before = self._endings.get(nodeid, ending)
        worst = min(before, ending, key=_WORST_FIRST.index)
        self._endings[nodeid] = worst
        if message and (nodeid not in self._said or worst is not before):
            self._said[nodeid] = Failure(nodeid, phase, message)

    def _blame_lane(self, test: str, phase: str, also: list[Failure] | None = None) -> bool:
        """Note launches that failed inside the lane since the last call: were there any?"""
        failures = self._log.failures()[self._blamed :]
        self._blamed += len(failures)
        if failures:
            self._blame(Failure(test, phase, _shorten(failures[0], first=True)), also)
        return bool(failures)

    def _blame_device(
        self,
        test: str,
        phase: str,
        raised: BaseException | None = None,
        also: list[Failure] | None = None,
    ) -> bool:
        """Note a kernel's fault, by the exception that tells of it or by waiting for all kernels.
        Nothing that runs afterwards can use the GPU, so the first one ends the session."""
        said = described(raised) if raised is not None and is_fault(raised) else pending_fault()
        if said:
            failure = Failure(test, phase, _shorten(said, first=True))
            self._blame(failure, also)
            self.fault = self.fault or failure
            if self._session is not None:
                self._session.shouldfail = "a kernel has failed on the GPU"
        return bool(said)

    def _blame(self, failure: Failure, also: list[Failure] | None) -> None:
        self.errors.append(failure)
        if also is None:
            self._ended(failure.test, Ending.ERROR, failure.phase, failure.message)
        else:
            also.append(failure)

    def _failed(self, report: pytest.TestReport, phase: str) -> None:
        failure = Failure(_id(report), phase, _last_line(report))
        if self._watch is not None:
            self._watch.failed(_id(report))
        if phase != "call" or getattr(report, "no_verdict", False):
            self.errors.append(failure)
            self._ended(_id(report), Ending.ERROR, phase, failure.message)
            return
        self.failures.append(failure)
        self._ended(_id(report), Ending.FAILED, phase, failure.message)
        if self._stop_at_first and self._session is not None:
            self._session.shouldfail = "the gate has said no"


def _id(of: pytest.Item | pytest.CollectReport | pytest.TestReport) -> str:
    """The node id, the same in every copy of the project: a parameter may hold a path."""
    return users_path(of.nodeid)


def _is_of_subtest(report: pytest.TestReport) -> bool:
    """By the name of its class, which pytest and pytest-subtests spell in two ways."""
    return type(report).__name__.lower() == "subtestreport"


def _fixtures_of(item: pytest.Item) -> tuple[str, ...]:
    """Names of all fixtures that a test declares, directly or through others."""
    return tuple(item.fixturenames) if isinstance(item, pytest.Function) else ()


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The error in words: what pytest prints in its summary."""
    if isinstance(report.longrepr, tuple):  # file, line and reason of a skip
        return _shorten(report.longrepr[2], first=True)
    crash = getattr(report.longrepr, "reprcrash", None)
    return _shorten(crash.message if crash is not None else str(report.longrepr), first=bool(crash))


def _shorten(text: str, *, first: bool = False) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return (lines[0] if first else lines[-1])[:_DETAIL_CHARACTERS]
