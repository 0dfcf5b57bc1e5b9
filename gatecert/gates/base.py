"""What every gate is, seen from the sandbox.

A gate is prepared once, in a warm single-threaded server process that never imports the code
under test, and then judges each candidate in a forked child of that server, after the
candidate's overlay has been installed. Preparing may be dear; judging must not be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gatecert.gates.records import Verdict
from gatecert.gates.suite.records import PytestBaseline
from gatecert.mutants.records import Candidate
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.oracle.case import Case


class PreparedGate(Protocol):
    """A gate with its inputs and references in memory."""

    def judge(self, candidate: Candidate, *, stop_at_first: bool) -> Verdict:
        """Judge the candidate whose overlay is installed in this process.

        Runs in a forked child; imports the entry itself (`load_entry`). With `stop_at_first`
        the first failing case ends the run; controls run every case. Never raises for what
        the candidate does: that is what the verdict says.
        """
        ...


@runtime_checkable
class SelectingGate(Protocol):
    """A prepared gate that knows from the original which part of it can notice a candidate."""

    @property
    def baseline(self) -> PytestBaseline:
        """What it does on the original."""
        ...

    def settle(self, candidate: Candidate) -> None:
        """Make sure that the part which will judge the candidate holds on the original by itself;
        called in the server, before the candidate's process is forked."""
        ...

    def without_running(self, candidate: Candidate) -> Verdict | None:
        """The verdict that is certain before anything runs, if it is: no part can notice."""
        ...


class Gate(Protocol):
    """A configured gate, not yet bound to a subject."""

    @property
    def name(self) -> str:
        """How it is called on the command line and in reports."""
        ...

    def applies_to(self, subject: Subject) -> str | None:
        """None where it can judge the subject, else the reason why not."""
        ...

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedGate:
        """Build inputs and references; runs in the warm server."""
        ...


@runtime_checkable
class CaseGate(Protocol):
    """A gate whose inputs are cases, known before any of them is made."""

    def cases(self, subject: Subject, *, seed: int, quick: bool) -> tuple[Case, ...]:
        """The cases that it tries."""
        ...
