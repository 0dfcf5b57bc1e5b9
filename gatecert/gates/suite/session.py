"""Run pytest inside this process and say what it means for the candidate.

Imports pytest, which gatecert itself does not need: import this module late.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatecert.gates.evidence import Evidence, TestTally
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.gates.suite.chooser import Chooser
from gatecert.gates.suite.deeds import deeds_noted
from gatecert.gates.suite.launches import LaunchBook
from gatecert.gates.suite.recorder import Failure, Recorder
from gatecert.gates.suite.records import RanTest
from gatecert.gates.suite.request import SessionRequest
from gatecert.gates.suite.seeds import seed_generators
from gatecert.gates.watching.watch import watch
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


class Session(msgspec.Struct, frozen=True):
    """One run of pytest.

    `failures` are positive verdicts: a test failed in its call phase for a reason that is not
    the lane's. `errors` are all other failures: collection, set-up, tear-down, imports,
    compilation and the interpreter's own, also where the test or the launcher caught it;
    `broken` are those of them that are no single test's. `fault` is a kernel's on a GPU, with the
    test in which it showed: it ends the session. `tests` are in the order of running.
    """

    exit_code: int
    collected: int = 0
    tally: TestTally = TestTally()
    warnings: int = 0
    failures: tuple[Failure, ...] = ()
    errors: tuple[Failure, ...] = ()
    broken: tuple[Failure, ...] = ()
    tests: tuple[RanTest, ...] = ()
    fault: Failure | None = None
    findings: tuple[Finding, ...] = ()
    evidence: Evidence | None = None

    @property
    def summary(self) -> str:
        """`3 passed, 1 skipped, 2 warnings`."""
        tally = self.tally
        counts = {
            "passed": tally.passed,
            "failed": tally.failed,
            "errors": tally.errors,
            "skipped": tally.skipped,
            "xfailed": tally.xfailed,
            "xpassed": tally.xpassed,
            "reruns": tally.reruns,
            "warnings": self.warnings,
        }
        said = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return said or "no test ran"


def run_session(asked: SessionRequest) -> Session:
    """Run pytest; changes this process for good, so call it in one of its own."""
    sys.dont_write_bytecode = True
    os.chdir(asked.rootdir)
    happened: list[Any] = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        interpreter.guarded(GuardPolicy.LENIENT) as log,
        interpreter.recording(happened),
        deeds_noted(happened.append) if asked.watched else contextlib.nullcontext(),
        watch(entry=asked.entry, tests=asked.tests)
        if asked.watched
        else contextlib.nullcontext() as seen,
        interpreter.repeatable_memory() if asked.repeatable else contextlib.nullcontext(),
    ):
        recorder = Recorder(
            log,
            LaunchBook(happened),
            stop_at_first=asked.stop_at_first,
            watch=seen,
        )
        # Else Hypothesis would also pass one mutant's failing examples on to the next.
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = scratch
        os.environ["COVERAGE_FILE"] = str(Path(scratch) / "coverage")
        seed_generators(asked.seed)
        plugins = [Chooser(asked.choice, asked.seed), recorder]
        exit_code = int(pytest.main([*asked.args, *_OUR_ARGS], plugins=plugins))
    recorder.end()
    tally = recorder.tally()
    evidence = None
    if seen is not None:
        evidence = msgspec.structs.replace(seen.evidence(), tally=recorder.tally(seen.counts))
    return Session(
        exit_code=exit_code,
        collected=recorder.collected,
        tally=tally,
        warnings=recorder.warnings,
        failures=tuple(recorder.failures),
        errors=tuple(recorder.errors),
        broken=tuple(recorder.broken),
        tests=recorder.tests(),
        fault=recorder.fault,
        findings=log.findings(),
        evidence=evidence,
    )


def verdict_of(session: Session, candidate: str, gate: str) -> Verdict:
    """What a run of pytest says of the candidate.

    A failed call is a rejection whatever else went wrong. A fault on a GPU counts as a death of the
    process: whether a bad address makes one depends on what else lies in memory. Only a clean run
    in which a test passed is an acceptance; all else is an error, which never counts as a kill. So
    a test that is skipped, fails as its `xfail` mark expects, or only warns, rejects nothing; of
    one that a plugin retries the last run counts.
    """
    passed = session.tally.passed + session.tally.xpassed
    verdict = Verdict(
        candidate=candidate,
        gate=gate,
        outcome=GateOutcome.ACCEPTED,
        detail=session.summary,
        findings=session.findings,
        cases=passed + session.tally.failed,
        evidence=session.evidence,
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
    if session.fault is not None:
        fault = session.fault
        return replace(verdict, outcome=GateOutcome.CRASHED, detail=fault.message, case=fault.test)
    if session.errors:
        error = session.errors[0]
        said = f"{error.phase} of {error.test}: {error.message}"
        return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
    if session.exit_code != pytest.ExitCode.OK or not passed:
        said = f"pytest ended with status {session.exit_code}: {session.summary}"
        return replace(verdict, outcome=GateOutcome.ERROR, detail=said)
    return verdict
