"""Run pytest inside this process and write down what each phase of each test said.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes import interpreter
from gatecert.lanes.records import Finding, GuardPolicy

_OUR_ARGS = (
    # The user's tree stays as it is.
    *("-p", "no:cacheprovider"),
    # A traceback of a few lines is all that is kept.
    "--tb=short",
    # Plugins that the server imported already keep plain asserts; that is no news to the user.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
_DETAIL_CHARACTERS = 300


class Failure(msgspec.Struct, frozen=True):
    """A test (or a file to be collected) and the last line of its error."""

    test: str
    phase: str
    message: str


class Session(msgspec.Struct, frozen=True):
    """One run of pytest.

    `failures` are positive verdicts: a test failed in its call phase for a reason that is not
    the lane's. `errors` are all other failures: collection, set-up, tear-down, imports,
    compilation and the interpreter's own, also where the test or the launcher caught it.
    """

    exit_code: int
    collected: int = 0
    passed: int = 0
    skipped: int = 0
    xfailed: int = 0
    warnings: int = 0
    failures: tuple[Failure, ...] = ()
    errors: tuple[Failure, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def summary(self) -> str:
        """`3 passed, 1 skipped, 2 warnings`."""
        counts = {
            "passed": self.passed,
            "failed": len(self.failures),
            "errors": len(self.errors),
            "skipped": self.skipped,
            "xfailed": self.xfailed,
            "warnings": self.warnings,
        }
        said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return said or "no test ran"


def run_session(args: Sequence[str], rootdir: Path, *, stop_at_first: bool) -> Session:
    """Run pytest in `rootdir`; changes this process for good, so call it in a child."""
    sys.dont_write_bytecode = True
    os.chdir(rootdir)
    with tempfile.TemporaryDirectory() as scratch, interpreter.guarded(GuardPolicy.LENIENT) as log:
        recorder = _Recorder(stop_at_first, log)
        # Else Hypothesis would also pass one mutant's failing examples on to the next.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        os.environ["COVERAGE_FILE"] = str(Path(scratch) / "coverage")
        exit_code = int(pytest.main([*args, *_OUR_ARGS], plugins=[recorder]))
    return recorder.session(exit_code)


def verdict_of(session: Session, candidate: str, gate: str) -> Verdict:
    """What a run of pytest says of the candidate.

    A failed call is a rejection whatever else went wrong; only a clean run in which a test
    passed is an acceptance; all else is an error, which never counts as a kill.
    """
    verdict = Verdict(
        candidate=candidate,
        gate=gate,
        outcome=GateOutcome.ACCEPTED,
        detail=session.summary,
        findings=session.findings,
        cases=session.passed + len(session.failures),
    )
    replace = msgspec.structs.replace
    if session.failures:
        first = session.failures[0]
        return replace(
            verdict,
            outcome=GateOutcome.REJECTED,
            reason=Reason.TEST_FAILED,
            detail=first.message,
            case=first.test,
        )
    if session.errors:
        error = session.errors[0]
        said = f"{error.phase} of {error.test}: {error.message}"
        return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
    if session.exit_code != pytest.ExitCode.OK or not session.passed:
        said = f"pytest ended with status {session.exit_code}: {session.summary}"
        return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
    return verdict


class _Recorder:
    """A pytest plugin that counts, and ends the session at the first positive verdict.

    `-x` would also end it at an error of the lane, and hide a failure that comes later.
    """

    def __init__(self, stop_at_first: bool, log: interpreter.FindingLog) -> None:
        self._stop_at_first = stop_at_first
        self._log = log
        self._reported = 0
        self._session: pytest.Session | None = None
        self._collected = 0
        self._counts = {"passed": 0, "skipped": 0, "xfailed": 0, "warnings": 0}
        self._failures: list[Failure] = []
        self._errors: list[Failure] = []

    def session(self, exit_code: int) -> Session:
        """What was seen."""
        self._blame_lane("pytest", "end")
        return Session(
            exit_code=exit_code,
            collected=self._collected,
            failures=tuple(self._failures),
            errors=tuple(self._errors),
            findings=self._log.findings(),
            **self._counts,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Keep tests in this process: workers of pytest-xdist would not see the overlay."""
        if config.pluginmanager.hasplugin("xdist"):
            config.option.dist = "no"
            config.option.tx = []

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remember the session, to be able to end it."""
        self._session = session

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count what was selected."""
        self._collected = len(session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that does not import is an error."""
        if report.failed:
            self._errors.append(Failure(report.nodeid, "collection", _last_line(report)))
        self._blame_lane(report.nodeid, "collection")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Note on the report whether the lane failed; a plugin may log it much later."""
        report = yield
        raised = call.excinfo.value if call.excinfo is not None else None
        report.lane_failed = self._blame_lane(report.nodeid, report.when)
        report.no_verdict = _is_no_verdict(raised)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Sort the final report of one phase; `rerun` and the like are not final."""
        if getattr(report, "lane_failed", False):
            return
        if report.skipped:
            self._counts["xfailed" if hasattr(report, "wasxfail") else "skipped"] += 1
        elif report.passed:
            self._counts["passed"] += report.when == "call"
        elif report.failed:
            self._failed(report)

    def pytest_warning_recorded(self) -> None:
        """Warnings never decide; they are counted."""
        self._counts["warnings"] += 1

    def pytest_internalerror(self, excrepr: Any) -> None:
        """Pytest or one of its plugins failed."""
        self._errors.append(Failure("pytest", "internal error", _shorten(str(excrepr))))

    def _blame_lane(self, test: str, phase: str) -> bool:
        """Note launches that failed inside the lane since the last call: were there any?"""
        failures = self._log.failures()[self._reported :]
        self._reported += len(failures)
        if failures:
            self._errors.append(Failure(test, phase, _shorten(failures[0], first=True)))
        return bool(failures)

    def _failed(self, report: pytest.TestReport) -> None:
        phase = report.when
        failure = Failure(report.nodeid, phase, _last_line(report))
        if phase != "call" or getattr(report, "no_verdict", False):
            self._errors.append(failure)
            return
        self._failures.append(failure)
        if self._stop_at_first and self._session is not None:
            self._session.shouldfail = "the gate has said no"


def _is_no_verdict(error: BaseException | None) -> bool:
    """Is it a failure to run the code, rather than the gate's opinion of it?"""
    if error is None:
        return False
    compiler = sys.modules.get("triton.compiler.errors")
    compilation = getattr(compiler, "CompilationError", MemoryError)
    kinds = (ImportError, SyntaxError, MemoryError, compilation)
    return isinstance(error, kinds) or interpreter.is_interpreter_failure(error)


def _last_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The error in words: what pytest prints in its summary."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return _shorten(crash.message if crash is not None else str(report.longrepr), first=bool(crash))


def _shorten(text: str, *, first: bool = False) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return (lines[0] if first else lines[-1])[:_DETAIL_CHARACTERS]
