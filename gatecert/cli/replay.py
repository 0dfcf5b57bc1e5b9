"""`gatecert replay`: one case again, from its description alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from gatecert.cli import options
from gatecert.cli.replay_options import How, replay_options
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.mutants.records import Candidate
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.config import Config
    from gatecert.oracle.case import Case

LIMIT_S = 600.0
CHILD_ENV = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TRITON_INTERPRET": "1"}


class ReplayRequest(msgspec.Struct, frozen=True):
    """What the child is to run."""

    subject: Subject
    candidate: Candidate
    case: str
    snapshot: str = ""
    """A file that holds the tensors."""
    save: str = ""
    """A file to write them to."""


class ReplayAnswer(msgspec.Struct, frozen=True):
    """What it saw: the oracle's verdict, and the hash that proves the inputs the same."""

    verdict: Verdict
    inputs_sha256: str


@click.command("replay")
@click.argument("case_id", metavar="CASE", default="")
@click.option("--mutant", "--only", "only", metavar="ID", help="Run this mutant, not the original.")
@replay_options
@options.subject_option
@options.config_option
@options.json_option
def command(
    case_id: str,
    only: str | None,
    subject_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    how: How,
) -> int:
    """Run the oracle on one CASE, written as a report prints it.

    CASE is operation/dtype/DIM=n,.../layout/recipe/seed=n. It runs on the original of every
    subject of that operation that declares its dtype and layout, on one mutant with --only, or on
    another text of its module with --file. --minimise then looks for the simplest case that fails
    for the same reason.
    """
    from gatecert.cli.setup import check_selection, read_config

    config = read_config(config_path)
    check_selection(config, subject_names, only=() if only is None else (only,))
    case = how.case(case_id)
    pairs = [
        (subject, how.candidate(subject, candidate))
        for subject, candidate in _candidates(config, case, subject_names, only)
    ]
    if how.minimise:
        return how.minimised(pairs, case, as_json)
    answers = [
        replay(ReplayRequest(subject, candidate, case.id, how.snapshot, how.save))
        for subject, candidate in pairs
    ]
    how.check(answers)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(answers)).decode() + "\n")
    else:
        for answer in answers:
            print_answer(answer)
    return exit_code([answer.verdict for answer in answers])


def replay(request: ReplayRequest) -> ReplayAnswer:
    """Run the request in a process of its own, which a mutant may take down.

    Raises:
        UsageError, EnvironmentFailure, InternalError: as the child says.
    """
    from gatecert.errors import EnvironmentFailure, GatecertError, InternalError, UsageError

    try:
        done = subprocess.run(
            [sys.executable, "-m", "gatecert.cli.replay_child"],
            input=msgspec.json.encode(request),
            capture_output=True,
            env={**os.environ, **CHILD_ENV},
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentFailure(f"no answer within {LIMIT_S:.0f} s") from None
    if done.returncode == 0:
        return msgspec.json.decode(done.stdout.splitlines()[-1], type=ReplayAnswer)
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    message = said[-1] if said else f"the process ended with status {done.returncode}"
    kinds: dict[int, type[GatecertError]] = {
        kind.exit_code: kind for kind in (UsageError, InternalError)
    }
    raise kinds.get(done.returncode, EnvironmentFailure)(message)


def _candidates(
    config: Config, case: Case, subject_names: Sequence[str], only: str | None
) -> list[tuple[Subject, Candidate]]:
    from gatecert.cli.setup import choose_subjects
    from gatecert.mutants.records import original

    wanted = () if only is None else (only,)
    subjects = _declaring(case, choose_subjects(config, subject_names, wanted))
    if only is not None:
        return [(subject, _mutant_candidate(config, only)) for subject in subjects]
    return [(subject, original(subject.name)) for subject in subjects]


def _declaring(case: Case, subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects of the case's operation whose contract holds it; says whose does not.

    Raises:
        UsageError: there is none. What a kernel never promised cannot be held against it.
    """
    from gatecert.cli.setup import say
    from gatecert.errors import UsageError, did_you_mean

    same = [
        subject
        for subject in subjects
        if subject.operation is not None and subject.operation.split(":")[-1] == case.operation
    ]
    if not same:
        specs = (subject.operation for subject in subjects if subject.operation is not None)
        known = dict.fromkeys(spec.split(":")[-1] for spec in specs)
        hint = did_you_mean(case.operation, known) if known else "none has an operation"
        raise UsageError(
            f"no subject here has the operation {case.operation!r} of this case; {hint}"
        )
    found = {subject.name: _undeclared(case, subject) for subject in same}
    declaring = [subject for subject in same if not found[subject.name]]
    if not declaring:
        raise UsageError(f"case {case.id!r}: {next(iter(found.values()))}")
    for line in filter(None, found.values()):
        say(f"left out: {line}")
    return declaring


def _undeclared(case: Case, subject: Subject) -> str:
    """What of the case the subject does not declare, and what it does; "" where it is all there."""
    asked = (
        ("dtype", case.dtype, subject.dtypes),
        ("layout", case.layout.partition(":")[0], subject.layouts),
    )
    missing = [
        f"no {what} {name} ({what}s = {', '.join(declared)})"
        for what, name, declared in asked
        # Presets use contiguous inputs whatever is declared.
        if name not in (*declared, "contiguous")
    ]
    return f"subject {subject.name!r} declares {' and '.join(missing)}" if missing else ""


def _mutant_candidate(config: Config, mutant_id: str) -> Candidate:
    from gatecert.campaign.shards import candidate_of
    from gatecert.cli.show import find_mutant

    mutant = find_mutant(config, mutant_id)
    texts = {mutant.path: Path(mutant.path).read_text(encoding="utf-8")}
    return candidate_of(mutant, texts)


def print_answer(answer: ReplayAnswer) -> None:
    """What a person wants to know of one run."""
    from gatecert.reports.cards import worst_element

    verdict = answer.verdict
    click.echo(f"{verdict.candidate}: {verdict.outcome.value} {verdict.reason.value}".rstrip())
    if verdict.detail:
        click.echo(f"  {verdict.detail}")
    if verdict.worst is not None:
        click.echo(f"  worst: {worst_element(verdict.worst)}")
    elif verdict.outcome is GateOutcome.ACCEPTED:
        click.echo(f"  largest error is {verdict.margin:.3g} of its allowance")
    if verdict.exactly:
        click.echo(f"  {verdict.exactly} of {verdict.compared} elements had to be equal")
    click.echo(f"  inputs: sha256 {answer.inputs_sha256}")
    click.echo(f"  outputs: sha256 {verdict.bits}")


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """A rejected original is a rejected control; a mutant may be judged either way."""
    from gatecert.errors import ExitCode

    if any(verdict.outcome is GateOutcome.ERROR for verdict in verdicts):
        return int(ExitCode.ENVIRONMENT_FAILED)
    rejected = any(
        verdict.outcome is GateOutcome.REJECTED and verdict.candidate.endswith("/original")
        for verdict in verdicts
    )
    return int(ExitCode.CONTROL_REJECTED if rejected else ExitCode.MET)
