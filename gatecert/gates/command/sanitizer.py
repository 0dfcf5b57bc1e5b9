"""Compute Sanitizer around another gate's command, on a GPU: it sees what values do not show.

It says no only where a tool printed a finding of its own kind. What the command itself thinks of
the candidate is that gate's business.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatecert.errors import EnvironmentFailure
from gatecert.gates.command.elsewhere import Elsewhere, GateElsewhere
from gatecert.gates.command.gate import check_executable, last_words
from gatecert.gates.command.run import Command, Ran, python_of
from gatecert.gates.command.sanitizer_report import read_report
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.lanes.cuda.gpu import check_gpu, lift_memory_limit
from gatecert.mutants.records import Candidate
from gatecert.sandbox.private_tree import placing_in_force
from gatecert.subjects import Subject

EXECUTABLE = "compute-sanitizer"
_USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
_FOUND_STATUS = 97
"""What the tool is told to exit with where it has findings."""
_ENVIRONMENT = {
    # Else every tensor lies in one large block, and reading past its end is allowed.
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
}
_OPTIONS = (
    *("--error-exitcode", str(_FOUND_STATUS)),
    *("--target-processes", "all"),
    *("--print-limit", "20"),
)


@dataclass(frozen=True, slots=True)
class SanitizerGate:
    """Tools of Compute Sanitizer around the gate of the table `around`, run in `rootdir`."""

    name: str
    config: GateConfig
    around: GateConfig
    rootdir: Path

    def __post_init__(self) -> None:
        check_executable(self.name, command_of(self.around)[0], self.rootdir)

    def applies_to(self, subject: Subject) -> str | None:
        """What the other gate runs is not known before it runs."""
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedSanitizer:
        """Look for the tool and for a GPU; candidates get processes of their own.

        Raises:
            EnvironmentFailure: one of them is missing.
        """
        tool = find_tool()
        if tool is None:
            raise EnvironmentFailure(
                f"gate {self.name!r}: no {EXECUTABLE} on PATH or in {', '.join(_USUAL_PLACES)}; "
                "it comes with the CUDA toolkit"
            )
        check_gpu(self.name, "run it on a machine that has one")
        return PreparedSanitizer(self.name, self.config, self.around, self.rootdir, subject, tool)


@dataclass(frozen=True, slots=True)
class PreparedSanitizer(GateElsewhere):
    """The tools and the command, for one subject."""

    gate: str
    config: GateConfig
    around: GateConfig
    rootdir: Path
    subject: Subject
    executable: str

    def run_elsewhere(
        self, candidate: Candidate, files: Mapping[str, str], *, stop_at_first: bool
    ) -> tuple[Verdict, Elsewhere]:
        """Run the command under one tool after the other, up to the first that says no or gives
        no verdict."""
        lift_memory_limit()
        verdict = Verdict(candidate.id, self.gate, GateOutcome.ERROR, cases=1)
        seen = Elsewhere()
        for number, tool in enumerate(self.config.tools, start=1):
            try:
                ran = self._command(tool).run(
                    files, timeout_s=self.config.timeout_s, interpret=False
                )
            except OSError as error:
                said = f"{self.executable} cannot be started: {error.strerror}"
                return msgspec.structs.replace(verdict, detail=said), seen
            missed = tuple(dict.fromkeys((*seen.missed, *ran.seen.missed)))
            seen = Elsewhere((*seen.reports, *ran.seen.reports), missed)
            verdict = msgspec.structs.replace(verdict, cases=number)
            said_by_tool = verdict_of(ran, tool, self.around, verdict)
            if said_by_tool.outcome is not GateOutcome.ACCEPTED:
                return said_by_tool, seen
        tools = ", ".join(self.config.tools)
        accepted = msgspec.structs.replace(
            verdict, outcome=GateOutcome.ACCEPTED, detail=f"nothing found by {tools}"
        )
        return accepted, seen

    def _command(self, tool: str) -> Command:
        # Calls of the CUDA API that fail are the program's to handle, not findings in a kernel.
        quiet = ("--report-api-errors", "no") if tool == "memcheck" else ()
        return Command(
            argv=(
                *(self.executable, "--tool", tool, *_OPTIONS, *quiet),
                *command_of(self.around),
            ),
            folder=self.rootdir,
            environment=_ENVIRONMENT,
            import_paths=self.subject.import_paths,
            placing=placing_in_force(),
        )


def command_of(table: GateConfig) -> tuple[str, ...]:
    """The command line behind a gate of kind command or pytest."""
    if table.kind == "command":
        return python_of(table.command)
    return (sys.executable, "-m", "pytest", *table.args, "-p", "no:cacheprovider")


def find_tool() -> str | None:
    """Where Compute Sanitizer is, on PATH or where CUDA is usually installed."""
    home = os.environ.get("CUDA_HOME")
    places = [os.environ.get("PATH", ""), *([f"{home}/bin"] if home else []), *_USUAL_PLACES]
    return shutil.which(EXECUTABLE, path=os.pathsep.join(places))


def verdict_of(ran: Ran, tool: str, around: GateConfig, verdict: Verdict) -> Verdict:
    """What a run under one tool says, put into `verdict`."""
    replace = msgspec.structs.replace
    if ran.status is None:
        return replace(verdict, outcome=GateOutcome.TIMEOUT, detail=f"{tool} was stopped")
    report = read_report(f"{ran.stdout}\n{ran.stderr}", tool)
    if report.records:
        more = f" and {len(report.records) - 1} more" if len(report.records) > 1 else ""
        said = f"{tool}: {report.records[0]}{more}"
        return replace(verdict, outcome=GateOutcome.REJECTED, reason=Reason.SAID_NO, detail=said)
    if report.refusal:
        return replace(verdict, detail=f"{tool} refuses to work here: {report.refusal}")
    if ran.status < 0:
        said = f"{tool} died of signal {-ran.status}"
        return replace(verdict, outcome=GateOutcome.CRASHED, detail=said, signal=-ran.status)
    if not report.finished:
        return replace(verdict, detail=f"{tool} printed no summary: {last_words(ran)}")
    if report.errors:
        said = f"{tool} counts {report.errors} errors that are no finding in a kernel"
        return replace(verdict, detail=said)
    ends = (*around.accept, *around.reject)
    if around.verdict == "exit" and ran.status not in ends:
        said = f"under {tool} the command ended with status {ran.status}: {last_words(ran)}"
        return replace(verdict, detail=said)
    if not any(not one.blind for one in ran.seen.reports):
        said = f"{tool} ended well, but no Python process ran under it"
        return replace(verdict, detail=said)
    return replace(verdict, outcome=GateOutcome.ACCEPTED)
