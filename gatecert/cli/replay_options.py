"""What `gatecert replay` may be asked beside a case: other code, a snapshot, proof, minimising."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gatecert.errors import EnvironmentFailure, RequirementNotMet, UsageError

if TYPE_CHECKING:
    from gatecert.cli.minimising import Minimised
    from gatecert.cli.replay import ReplayAnswer
    from gatecert.mutants.records import Candidate
    from gatecert.oracle.case import Case
    from gatecert.subjects import Subject

_DEFAULT_RUNS = 500


@dataclass(frozen=True, slots=True)
class How:
    """The options, checked one by one; empty where not given."""

    file: Path | None = None
    snapshot: str = ""
    save: str = ""
    minimise: bool = False
    budget_runs: int | None = None
    budget_s: float | None = None
    expect_inputs: str = ""
    expect_bits: str = ""

    def case(self, text: str) -> Case:
        """The case that is meant: by its id or by a snapshot.

        Raises:
            UsageError: neither or both are given, or what is given cannot be read.
        """
        from gatecert.oracle.case import parse_case
        from gatecert.oracle.snapshot import load_snapshot

        if bool(text) == bool(self.snapshot):
            raise UsageError("give either a CASE or --snapshot FILE")
        return load_snapshot(Path(self.snapshot))[0] if self.snapshot else parse_case(text)

    def candidate(self, subject: Subject, chosen: Candidate) -> Candidate:
        """The candidate, or the text of --file in place of the entry's module.

        Raises:
            UsageError: the file cannot be read, or the module has no source file.
        """
        from gatecert.locating import find_source
        from gatecert.mutants.records import Candidate, CandidateKind

        if self.file is None:
            return chosen
        home = find_source(subject.entry_module, subject.import_paths)
        if home is None:
            raise UsageError(f"--file: {subject.entry_module} has no source file to stand in for")
        try:
            text = self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--file: {self.file}: {error}") from None
        name = f"{subject.name}/{self.file.name}"
        return Candidate(name, CandidateKind.MUTANT, subject.name, {str(home): text})

    def check(self, answers: Sequence[ReplayAnswer]) -> None:
        """Hold what was seen against --expect-inputs and --expect-bits.

        Raises:
            EnvironmentFailure: the inputs are others: the verdict says nothing of that case.
            RequirementNotMet: the outputs have other bits.
        """
        for answer in answers:
            _compare(EnvironmentFailure, "inputs", answer.inputs_sha256, self.expect_inputs)
            _compare(RequirementNotMet, "outputs", answer.verdict.bits, self.expect_bits)

    def minimised(
        self, pairs: Sequence[tuple[Subject, Candidate]], case: Case, as_json: bool
    ) -> int:
        """Shrink the case, say what was found, and give the exit code.

        Raises:
            UsageError: it is not one candidate.
        """
        from gatecert.cli.minimising import MinimiseRequest, minimise, watch_on_stderr
        from gatecert.cli.replay import exit_code

        if len(pairs) != 1:
            names = ", ".join(subject.name for subject, _ in pairs)
            raise UsageError(f"--minimise takes one candidate, not {names}: choose by --subject")
        ((subject, candidate),) = pairs
        found = minimise(
            MinimiseRequest(
                subject=subject,
                candidate=candidate,
                case=case.id,
                snapshot=self.snapshot,
                save=self.save,
                budget_runs=self.budget_runs,
                budget_s=self.budget_s,
            ),
            watch_on_stderr,
        )
        if as_json:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(found)).decode() + "\n")
        else:
            _print(found, self._chosen(candidate))
        return exit_code([found.answer.verdict])

    def _chosen(self, candidate: Candidate) -> str:
        """The option that chooses this candidate again."""
        if self.file is not None:
            return f" --file {shlex.quote(str(self.file))}"
        whole = candidate.id.endswith("/original")
        return "" if whole else f" --mutant {shlex.quote(candidate.id)}"


def replay_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `How`, handed over as `how`."""

    @functools.wraps(command)
    def grouped(
        *arguments: Any,
        file: Path | None,
        snapshot: Path | None,
        save: Path | None,
        minimise: bool,
        budget: tuple[int | None, float | None],
        expect_inputs: str,
        expect_bits: str,
        **others: Any,
    ) -> Any:
        how = How(
            file,
            str(snapshot or ""),
            str(save or ""),
            minimise,
            *budget,
            expect_inputs=expect_inputs,
            expect_bits=expect_bits,
        )
        return command(*arguments, how=how, **others)

    path = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option("--expect-bits", default="", metavar="SHA256", help="Outputs must be these."),
        click.option("--expect-inputs", default="", metavar="SHA256", help="Inputs must be these."),
        click.option(
            "--budget",
            default=str(_DEFAULT_RUNS),
            show_default=True,
            callback=_read_budget,
            metavar="N|TIME",
            help="Of --minimise: runs of the kernel (200), or time (90s, 15m).",
        ),
        click.option("--minimise", is_flag=True, help="Find the simplest case that fails alike."),
        click.option("--save", type=path, metavar="FILE", help="Write a snapshot of the inputs."),
        click.option("--snapshot", type=path, metavar="FILE", help="Take case and inputs of FILE."),
        click.option(
            "--file", type=path, metavar="FILE", help="Run this text of the entry's module."
        ),
    ):
        grouped = option(grouped)
    return grouped


def _read_budget(
    ctx: click.Context, param: click.Parameter, text: str
) -> tuple[int | None, float | None]:
    from gatecert.cli.options import read_duration

    if re.fullmatch(r"[1-9]\d*", text):
        return int(text), None
    return None, read_duration(ctx, param, text)


def _compare(
    kind: type[EnvironmentFailure] | type[RequirementNotMet], what: str, seen: str, wanted: str
) -> None:
    if wanted and seen != wanted:
        raise kind(f"the {what} are not those expected: sha256 {seen}, not {wanted}")


def _print(found: Minimised, on: str) -> None:
    from gatecert.cli.replay import print_answer

    print_answer(found.answer)
    click.echo(f"  kept: {found.kept}")
    click.echo(f"  {found.runs} runs in {found.seconds:.0f} s; {_how_far(found)}")
    snapshot = f"--snapshot {shlex.quote(found.snapshot)}"
    given = snapshot if found.snapshot else shlex.quote(found.case)
    click.echo(f"  gatecert replay {given}{on}")


def _how_far(found: Minimised) -> str:
    if not found.complete:
        return "stopped by its budget, so a simpler case may exist"
    if not found.untried:
        return "no simpler case that one step leads to fails for this reason"
    dims = ", ".join(f"{count} smaller sizes of {dim}" for dim, count in found.untried.items())
    return f"no step is left but {dims}, which the budget did not reach"
