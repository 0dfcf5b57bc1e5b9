"""Any executable as a gate: it says yes or no by its exit status or by a line of JSON.

Each candidate costs a fresh process. The overlay reaches every Python process that the command
starts (`command_site`); what a program in another language does with the kernels is not seen.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from gatecert.errors import UsageError
from gatecert.gates.command.elsewhere import Elsewhere, GateElsewhere, ProcessReport
from gatecert.gates.command.run import Command, Ran, python_of
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Reason, Verdict
from gatecert.gates.suite.device import WITHOUT_GPU
from gatecert.lanes.cuda.gpu import check_gpu, lift_memory_limit
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.private_tree import placing_in_force, users_path
from gatecert.subjects import Subject

_DETAIL_CHARACTERS = 300
_TIMES = re.compile(r" in \d+(\.\d+)? ?s(econds)?\b")
_WATCHED = frozenset({CandidateKind.ORIGINAL, CandidateKind.ADVERSARY})


class SaidVerdict(msgspec.Struct, frozen=True):
    """A line of JSON that a command ends with."""

    verdict: Literal["accept", "reject"]
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class CommandGate:
    """The command of a table, run in `rootdir`.

    Raises:
        UsageError: there is no such folder, or no such executable.
    """

    name: str
    config: GateConfig
    rootdir: Path

    def __post_init__(self) -> None:
        check_executable(self.name, self.config.command[0], self.rootdir)

    def applies_to(self, subject: Subject) -> str | None:
        """What it runs is not known before it runs."""
        return None

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedCommand:
        """Nothing can be kept warm: every candidate gets a process of its own.

        Raises:
            EnvironmentFailure: it needs a GPU, and there is none.
        """
        if self.config.runs_compiled:
            check_gpu(self.name, WITHOUT_GPU)
        return PreparedCommand(self.name, self.config, self.rootdir, subject)


@dataclass(frozen=True, slots=True)
class PreparedCommand(GateElsewhere):
    """The command, for one subject."""

    gate: str
    config: GateConfig
    rootdir: Path
    subject: Subject

    def run_elsewhere(
        self, candidate: Candidate, files: Mapping[str, str], *, stop_at_first: bool
    ) -> tuple[Verdict, Elsewhere]:
        """Run the command once; it decides itself how far it goes."""
        if self.config.runs_compiled:
            lift_memory_limit()
        verdict = Verdict(candidate.id, self.gate, GateOutcome.ERROR, cases=1)
        command = Command(
            argv=python_of(self.config.command),
            folder=self.rootdir,
            environment={},
            import_paths=self.subject.import_paths,
            placing=placing_in_force(),
        )
        try:
            ran = command.run(
                files,
                timeout_s=self.config.timeout_s,
                interpret=not self.config.runs_compiled,
                watch=candidate.kind in _WATCHED,
                entry=self.subject.entry,
            )
        except OSError as error:
            said = f"{self.config.command[0]} cannot be started: {error.strerror}"
            return msgspec.structs.replace(verdict, detail=said), Elsewhere()
        verdict = verdict_of(ran, self.config, verdict)
        return msgspec.structs.replace(verdict, evidence=ran.seen.evidence), ran.seen


def check_executable(gate: str, executable: str, rootdir: Path) -> None:
    """Refuse what cannot be run.

    Raises:
        UsageError: there is no such folder, or no such executable.
    """
    if not rootdir.is_dir():
        raise UsageError(f"gate {gate!r}: rootdir {users_path(str(rootdir))} is not a folder")
    if executable == "python" or ("/" not in executable and shutil.which(executable)):
        return
    path = rootdir / executable
    where = users_path(str(path))
    if "/" not in executable:
        hint = f"; write './{executable}' for the file in rootdir" if path.is_file() else ""
        raise UsageError(f"gate {gate!r}: no command {executable!r} on PATH{hint}")
    if not path.is_file():
        raise UsageError(f"gate {gate!r}: there is no file {where} to run")
    if not os.access(path, os.X_OK):
        raise UsageError(f"gate {gate!r}: {where} is not executable; run `chmod +x {where}`")


def verdict_of(ran: Ran, config: GateConfig, verdict: Verdict) -> Verdict:
    """What a run of the command says, put into `verdict`.

    Only a declared yes or no counts. A no that came of a failure to run the code at all (a
    missing import, no memory, something that the lane cannot do) is no verdict either, and one that
    came of a kernel's fault on a GPU is as if the process had died.
    """
    replace = msgspec.structs.replace
    if ran.status is None:
        said = f"stopped after timeout_s = {config.timeout_s:g}"
        return replace(verdict, outcome=GateOutcome.TIMEOUT, detail=said)
    if ran.status < 0:
        said = f"died of signal {-ran.status}"
        return replace(verdict, outcome=GateOutcome.CRASHED, detail=said, signal=-ran.status)
    if ran.seen.failures:
        # Caught by the launcher or by the gate, it would pass for an answer.
        return replace(verdict, detail=ran.seen.failures[0])
    outcome, said = _spoken(ran, config)
    if outcome is not GateOutcome.REJECTED:
        return replace(verdict, outcome=outcome, detail=said)
    broken = next((one for one in _deciding(ran) if one.no_verdict), None)
    if broken is not None:
        return replace(verdict, detail=f"{said}: {_shorten(broken.uncaught)}")
    fault = next((one for one in _deciding(ran) if one.faulted), None)
    if fault is not None:
        how = f"exit status {ran.status}: {fault.uncaught.splitlines()[0]}"
        return replace(verdict, outcome=GateOutcome.CRASHED, detail=how)
    return replace(verdict, outcome=outcome, reason=Reason.SAID_NO, detail=said)


def last_words(ran: Ran) -> str:
    """The last line that it printed, on stderr if there is one; what clocks say is cut out."""
    lines = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
    lines = lines or [line.strip() for line in ran.stdout.splitlines() if line.strip()]
    return _shorten(_TIMES.sub("", lines[-1])) if lines else "it printed nothing"


def _spoken(ran: Ran, config: GateConfig) -> tuple[GateOutcome, str]:
    if config.verdict == "json":
        said = last_json(ran.stdout)
        if said is None:
            what = f"no line of JSON with a verdict on stdout (exit status {ran.status})"
            return GateOutcome.ERROR, f"{what}: {last_words(ran)}"
        yes = said.verdict == "accept"
        return GateOutcome.ACCEPTED if yes else GateOutcome.REJECTED, _shorten(said.detail or "")
    what = f"exit status {ran.status}"
    if ran.status in config.accept:
        return GateOutcome.ACCEPTED, what
    if ran.status in config.reject:
        return GateOutcome.REJECTED, f"{what}: {last_words(ran)}"
    return GateOutcome.ERROR, f"{what} is in neither accept nor reject: {last_words(ran)}"


def last_json(stdout: str) -> SaidVerdict | None:
    """The last line that is a JSON object with a verdict."""
    for line in reversed(stdout.splitlines()):
        if line.lstrip().startswith("{"):
            try:
                return msgspec.json.decode(line, type=SaidVerdict)
            except msgspec.DecodeError:
                continue
    return None


def _deciding(ran: Ran) -> list[ProcessReport]:
    """The process whose status is the command's: its own, or any where that is no Python."""
    own = [one for one in ran.seen.reports if one.pid == ran.pid]
    return own or list(ran.seen.reports)


def _shorten(text: str) -> str:
    return " ".join(text.split())[:_DETAIL_CHARACTERS]
