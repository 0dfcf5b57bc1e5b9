"""A gate that is a Python function: `gate(candidate_entry) -> bool | Verdict`."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from gatecert.errors import EnvironmentFailure, GatecertError, UsageError, described
from gatecert.gates.failing import is_no_verdict
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes.records import GuardPolicy
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.child import ChildEnd, run_in_child
from gatecert.sandbox.imports import is_users
from gatecert.subjects import Subject, load_attribute, load_entry

if TYPE_CHECKING:
    from gatecert.gates.watching.watch import Watch

_LOAD_S = 300.0
_ACCEPTED = GateOutcome.ACCEPTED
_WATCHED = frozenset((CandidateKind.ORIGINAL, CandidateKind.ADVERSARY))


@dataclass(frozen=True, slots=True)
class CallableGate:
    """The function `spec` (`package.module:function`), imported from `root` or `sys.path`."""

    name: str
    spec: str
    root: Path

    def applies_to(self, subject: Subject) -> str | None:
        """It may judge anything."""
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedCallable:
        """Check, in a throw-away child, that the function can be imported.

        Raises:
            UsageError: there is no such function.
            EnvironmentFailure: its module is missing or fails on import.
        """
        prepared = PreparedCallable(self.name, self.spec, self.root, subject)
        result = run_in_child(lambda: msgspec.json.encode(_why_not(prepared)), timeout_s=_LOAD_S)
        if result.end is not ChildEnd.ANSWERED:
            raise EnvironmentFailure(
                f"gate {self.name!r}: importing {self.spec} ended the process\n{result.log}"
            )
        usage, message = msgspec.json.decode(result.answer, type=tuple[bool, str])
        if message:
            raise UsageError(message) if usage else EnvironmentFailure(message)
        return prepared


@dataclass(frozen=True, slots=True)
class PreparedCallable:
    """The function bound to a subject; it is imported in the child, since it may import the
    code under test."""

    gate: str
    spec: str
    root: Path
    subject: Subject

    def load(self) -> Callable[[Any], Any]:
        """The function; errors as `load_attribute`."""
        if str(self.root) not in sys.path:
            sys.path.insert(0, str(self.root))
        function = load_attribute(self.spec, f"gate {self.gate!r}:")
        if not callable(function):
            raise UsageError(f"gate {self.gate!r}: {self.spec} is not callable")
        return function  # type: ignore[no-any-return]

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Call the function with the candidate's entry point; the original and adversaries are
        watched while it runs."""
        if candidate.kind not in _WATCHED:
            return self._judge(candidate, None)
        from gatecert.gates.watching.watch import watch

        with watch(entry=self.subject.entry) as seen:
            verdict = self._judge(candidate, seen)
        return msgspec.structs.replace(verdict, evidence=seen.evidence())

    def _judge(self, candidate: Candidate, seen: Watch | None) -> Verdict:
        from gatecert.lanes import interpreter

        verdict = Verdict(candidate.id, self.gate, GateOutcome.ERROR)
        try:
            function = self.load()
            watched = Watched(load_entry(self.subject))
        except Exception as error:
            return msgspec.structs.replace(verdict, detail=described(error))
        answer: Any = None
        failure: BaseException | None = None
        if seen is not None:
            seen.begin_test(self.spec, function)
        # An adversary may look for what was freed.
        free = candidate.kind is CandidateKind.ADVERSARY
        memory = contextlib.nullcontext() if free else interpreter.repeatable_memory()
        with interpreter.guarded(GuardPolicy.LENIENT) as log, memory:
            try:
                answer = function(watched)
            except Exception as error:
                failure = error
        if seen is not None:
            seen.end_test(self.spec, passed=_after_answer(verdict, answer).outcome is _ACCEPTED)
        verdict = msgspec.structs.replace(verdict, findings=log.findings(), cases=1)
        if log.failures():
            # Caught by the launcher or by the gate, it would pass for an answer.
            return msgspec.structs.replace(verdict, detail=log.failures()[0])
        if failure is not None:
            return _after_exception(verdict, candidate, watched, failure, self.root)
        return _after_answer(verdict, answer)


class Watched:
    """The candidate's entry point, remembering the exceptions that came out of it."""

    def __init__(self, entry: Callable[..., Any]) -> None:
        self._entry = entry
        self.raised: list[BaseException] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._entry(*args, **kwargs)
        except Exception as error:
            self.raised.append(error)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._entry, name)


def _after_answer(verdict: Verdict, answer: Any) -> Verdict:
    replace = msgspec.structs.replace
    if isinstance(answer, Verdict):
        findings = verdict.findings + answer.findings
        return replace(answer, candidate=verdict.candidate, gate=verdict.gate, findings=findings)
    if not isinstance(answer, (bool, np.bool_)):
        said = f"the gate returned {type(answer).__name__}, neither a bool nor a Verdict"
        return replace(verdict, detail=said)
    if answer:
        return replace(verdict, outcome=GateOutcome.ACCEPTED)
    return replace(verdict, outcome=GateOutcome.REJECTED, reason=Reason.SAID_NO)


def _after_exception(
    verdict: Verdict,
    candidate: Candidate,
    watched: Watched,
    failure: BaseException,
    root: Path,
) -> Verdict:
    """An assertion of the gate, or what a candidate raised where the original does not, is a
    rejection; anything else that comes out of the gate is the gate's own failure."""
    said = described(failure)
    reason = _reason_of(failure, candidate, watched)
    if reason is Reason.NONE:
        return msgspec.structs.replace(verdict, detail=said + _where(failure, root))
    return msgspec.structs.replace(
        verdict, outcome=GateOutcome.REJECTED, reason=reason, detail=said
    )


def _reason_of(failure: BaseException, candidate: Candidate, watched: Watched) -> Reason:
    """Why what came out of the gate rejects the candidate; none where it does not."""
    if is_no_verdict(failure):
        return Reason.NONE
    if failure in watched.raised:
        is_original = candidate.kind is CandidateKind.ORIGINAL
        return Reason.NONE if is_original else Reason.RAISED
    return Reason.TEST_FAILED if isinstance(failure, AssertionError) else Reason.NONE


def _where(failure: BaseException, root: Path) -> str:
    """` at file:line`: the innermost place in the user's own files, from the gate's folder."""
    frames = traceback.extract_tb(failure.__traceback__)
    found = next((frame for frame in reversed(frames) if is_users(frame.filename)), None)
    if found is None:
        return ""
    return f" at {os.path.relpath(found.filename, root)}:{found.lineno}"


def _why_not(prepared: PreparedCallable) -> tuple[bool, str]:
    """(is it the user's mistake, message); an empty message where the function loads."""
    try:
        prepared.load()
    except GatecertError as error:
        return isinstance(error, UsageError), str(error)
    return False, ""
