"""A team's own tests as a gate."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.warm import (
    any_mentions,
    importable_without,
    library_modules,
    packages_under_test,
    warm_up,
)
from gatecert.mutants.records import Candidate
from gatecert.sandbox.child import ChildEnd, ChildResult, run_in_child
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.gates.pytest_session import Session

_BASELINE_S = 900.0
_IMPORTS_S = 300.0
_NOTHING_COLLECTED = 5
_BAD_COMMAND_LINE = 4


class Learned(msgspec.Struct, frozen=True):
    """From one run of the original: the library modules it loaded, what is under test, and
    whether any of the former might import the latter."""

    modules: tuple[str, ...]
    under_test: tuple[str, ...]
    suspect: bool


@dataclass(frozen=True, slots=True)
class PytestGate:
    """`pytest *args`, run in `rootdir`."""

    name: str
    args: tuple[str, ...]
    rootdir: Path

    def applies_to(self, subject: Subject) -> str | None:
        """Whether tests reach a subject is seen from what they launch, not from here."""
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedPytest:
        """Run the tests on the original in a throw-away child, and import here what they
        import from libraries. Seed and `quick` are the tests' own affair.

        Raises:
            UsageError: there is no such folder, or the arguments select no test.
            EnvironmentFailure: pytest is missing, or the tests do not pass on the original.
        """
        if importlib.util.find_spec("pytest") is None:
            raise EnvironmentFailure(f"gate {self.name!r} needs pytest: pip install pytest")
        if not self.rootdir.is_dir():
            raise UsageError(f"gate {self.name!r}: rootdir {self.rootdir} is not a folder")
        import gatecert.gates.pytest_session  # noqa: F401  (once here, not in every child)

        warm_up(_safe_modules(self._baseline(subject)))
        return PreparedPytest(self.name, self.args, self.rootdir)

    def _baseline(self, subject: Subject) -> Learned:
        def work() -> bytes:
            from gatecert.gates.pytest_session import run_session

            before = set(sys.modules)
            session = run_session(self.args, self.rootdir, stop_at_first=False)
            under_test = packages_under_test(subject.entry_module)
            loaded = library_modules((n for n in sys.modules if n not in before), under_test)
            suspect = any_mentions(loaded, under_test)
            learned = Learned(tuple(loaded), tuple(sorted(under_test)), suspect)
            return msgspec.json.encode((session, learned))

        result = run_in_child(work, timeout_s=_BASELINE_S)
        if result.end is not ChildEnd.ANSWERED:
            raise EnvironmentFailure(self._said("the tests ended their process", result))
        from gatecert.gates.pytest_session import Session, verdict_of

        session, learned = msgspec.json.decode(result.answer, type=tuple[Session, Learned])
        verdict = verdict_of(session, "original", self.name)
        if verdict.outcome is not GateOutcome.ACCEPTED:
            raise self._refusal(session, verdict, result)
        return learned

    def _refusal(
        self, session: Session, verdict: Verdict, result: ChildResult
    ) -> UsageError | EnvironmentFailure:
        command = f"pytest {' '.join(self.args)}".strip()
        if session.exit_code == _NOTHING_COLLECTED:
            return UsageError(
                f"gate {self.name!r}: `{command}` in {self.rootdir} selects no test; "
                "correct args or rootdir in gatecert.toml"
            )
        # A conftest.py that does not import has the same status as a bad command line.
        if session.exit_code == _BAD_COMMAND_LINE and "loading conftest" not in result.log:
            said = re.findall(r"(?im)\berror: (.+)$", result.log) or [result.log.strip()]
            return UsageError(f"gate {self.name!r}: `{command}` in {self.rootdir}: {said[-1]}")
        return EnvironmentFailure(self._said(f"{verdict.detail} {verdict.case}".strip(), result))

    def _said(self, what: str, result: ChildResult) -> str:
        return (
            f"gate {self.name!r} does not pass on the original: {what}; mend the tests, or "
            f"select those that pass by args in gatecert.toml\n{result.log.strip()}"
        )


@dataclass(frozen=True, slots=True)
class PreparedPytest:
    """The tests, with their libraries in memory."""

    gate: str
    args: tuple[str, ...]
    rootdir: Path

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Run the tests; the verdict is in their reports, not in the exit status."""
        from gatecert.gates.pytest_session import run_session, verdict_of

        session = run_session(self.args, self.rootdir, stop_at_first=stop_at_first)
        return verdict_of(session, candidate.id, self.gate)


def _safe_modules(learned: Learned) -> tuple[str, ...]:
    """The library modules that the server may import without the code under test."""
    if not learned.suspect:
        return learned.modules
    result = run_in_child(
        lambda: msgspec.json.encode(importable_without(learned.modules, set(learned.under_test))),
        timeout_s=_IMPORTS_S,
    )
    # To be warm is to be fast, not to be right: without an answer each child imports.
    if result.end is not ChildEnd.ANSWERED:
        return ()
    return msgspec.json.decode(result.answer, type=tuple[str, ...])
