"""Whether the labels that leave mutants out of the kill rate are true, over the corpus.

Every mutant that the interpreter lane cannot show by its label alone (its code is not proven to be
the original's, and it is not unviable) is run under all cases of the oracle, guards included. One
that is killed has a wrong label. Rows are written to OUTPUT as they come, and the same command goes
on where it stopped.

    python benchmarks/labels.py OUTPUT.json [--subject NAME ...] [--jobs 16]

Exits 2 where a label is wrong, 4 where the oracle gave no verdict.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from gatecert.campaign.code import compare_at_depth
from gatecert.campaign.environment import describe_environment
from gatecert.campaign.plan import Plan, PlannedSubject, labels_sha256
from gatecert.campaign.progress import Silent
from gatecert.campaign.records import LANE_SHOWS, Environment, Status
from gatecert.campaign.run import plan_campaign
from gatecert.campaign.shards import candidate_of, make_shards, request_of
from gatecert.campaign.supervise import ServerPool, error_of, server_pool, spread
from gatecert.certificate.status import status_of
from gatecert.cli.setup import make_plan
from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.errors import EnvironmentFailure, ExitCode, GatecertError
from gatecert.gates.records import ORACLE, GateOutcome, Reason, Verdict
from gatecert.mutants.compile_pool import compile_pool
from gatecert.mutants.records import CodeDepth, Mutant, original
from gatecert.operators.records import ObservableBy
from gatecert.sandbox.protocol import Failed, Judged, ShardRequest, Task
from gatecert.store.keys import fingerprint


class Checked(msgspec.Struct, frozen=True):
    """A mutant that is out of the rate by its labels alone, and what the oracle said of it over
    all cases: `reason` and `case` are those of the first that failed, and `same_bits` says that
    every output of every case was the original's."""

    mutant: str
    labels: tuple[ObservableBy, ...]
    outcome: GateOutcome
    same_bits: bool
    reason: Reason = Reason.NONE
    case: str = ""
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """All rows so far; `fingerprint` is of the code that made them."""

    fingerprint: str
    environment: Environment
    counts: dict[str, int] = {}
    rows: tuple[Checked, ...] = ()


def main() -> None:
    """Check what is not in OUTPUT yet, write, print, and say by the exit status what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    config = load_config(CORPUS_CONFIG)
    subjects = {"subject_names": options.subject, "gate_names": [ORACLE]}
    plan = make_plan(config, **subjects, jobs=options.jobs)
    try:
        with server_pool(plan.jobs) as pool:
            planned = plan_campaign(plan, pool, Silent())
            labelled = out_by_label(plan, planned)
            mutants = [mutant for subject in planned for mutant in subject.run.mutants]
            environment = describe_environment(labels_sha256(mutants))
            mark = fingerprint([CORPUS_CONFIG.parent])
            report = Report(mark, environment)
            rows = {row.mutant: row for row in _known(options.output, mark)}
            missing = {
                name: [mutant for mutant in some if mutant.id not in rows]
                for name, some in labelled.items()
            }
            _write(options.output, report, rows.values())
            for row in checked(plan, planned, missing, pool):
                rows[row.mutant] = row
                _write(options.output, report, rows.values())
    except GatecertError as error:
        print(error, file=sys.stderr)
        sys.exit(int(error.exit_code))
    asked = [rows[mutant.id] for some in labelled.values() for mutant in some]
    print(msgspec.json.format(msgspec.json.encode(counts(asked))).decode())
    for row in asked:
        if row.outcome is not GateOutcome.ACCEPTED:
            print(f"{row.outcome.value}: {row.mutant}: {row.reason.value} {row.detail}")
    sys.exit(int(exit_code_of(asked)))


def out_by_label(plan: Plan, planned: Sequence[PlannedSubject]) -> dict[str, Sequence[Mutant]]:
    """By subject the mutants whose status follows from nothing but their labels.

    Raises:
        EnvironmentFailure: a subject cannot be run.
    """
    for subject in planned:
        if subject.run.failed:
            raise EnvironmentFailure(f"{subject.run.subject.name}: {subject.run.failed}")
    shows = LANE_SHOWS[plan.lane]
    unseen = {
        subject.run.subject.name: [
            mutant
            for mutant in subject.run.mutants
            if status_of(mutant, None, None, shows) is Status.NOT_OBSERVABLE
        ]
        for subject in planned
    }
    with tempfile.TemporaryDirectory() as codes, compile_pool(plan.jobs, Path(codes)) as pool:
        said = compare_at_depth(planned, unseen, pool, CodeDepth.OPTIMISED_IR, Silent())
    return {
        name: [
            mutant
            for mutant in some
            if status_of(mutant, said[name][mutant.id], None, shows) is Status.NOT_OBSERVABLE
        ]
        for name, some in unseen.items()
    }


def checked(
    plan: Plan,
    planned: Iterable[PlannedSubject],
    mutants: Mapping[str, Sequence[Mutant]],
    pool: ServerPool,
) -> Iterator[Checked]:
    """A row for each of the mutants, as they come.

    Raises:
        EnvironmentFailure: the oracle does not accept an original.
    """
    asked = [subject for subject in planned if mutants[subject.run.subject.name]]
    originals = _originals(plan, asked, pool)
    work = [
        (
            replace(subject, originals={ORACLE: originals[name]}),
            [Task(candidate_of(one, subject.texts), ORACLE, False) for one in mutants[name]],
        )
        for subject in asked
        for name in (subject.run.subject.name,)
    ]
    by_id = {mutant.id: mutant for some in mutants.values() for mutant in some}

    def one(request: ShardRequest) -> list[Verdict]:
        return _judged(pool, request)

    for verdicts in spread(pool, one, make_shards(plan, work)):
        for said in verdicts:
            mutant = by_id[said.candidate]
            yield _row(mutant, said, originals[mutant.subject])


def counts(rows: Iterable[Checked]) -> dict[str, int]:
    """How many of the rows there are of each kind."""
    found = Counter(_kind(row) for row in rows)
    return {"mutants": found.total(), **dict(sorted(found.items()))}


def exit_code_of(rows: Sequence[Checked]) -> ExitCode:
    """A wrong label weighs more than a missing verdict."""
    outcomes = {row.outcome for row in rows}
    if not outcomes.isdisjoint((GateOutcome.REJECTED, GateOutcome.CRASHED)):
        return ExitCode.REQUIREMENT_NOT_MET
    if outcomes <= {GateOutcome.ACCEPTED}:
        return ExitCode.MET
    return ExitCode.ENVIRONMENT_FAILED


def _originals(
    plan: Plan, planned: Sequence[PlannedSubject], pool: ServerPool
) -> dict[str, Verdict]:
    """By subject what the oracle says of the original, whose bits the mutants' are held against."""

    def one(subject: PlannedSubject) -> tuple[str, Verdict]:
        name = subject.run.subject.name
        (said,) = _judged(pool, request_of(plan, subject, [Task(original(name), ORACLE, False)]))
        if said.outcome is not GateOutcome.ACCEPTED:
            raise EnvironmentFailure(f"{name}: the oracle {said.outcome.value} it: {said.detail}")
        return name, said

    return dict(spread(pool, one, planned))


def _judged(pool: ServerPool, request: ShardRequest) -> list[Verdict]:
    with pool.lent() as server:
        events = list(server.ask(request))
    for event in events:
        if isinstance(event, Failed):
            raise error_of(event)
    return [event.verdict for event in events if isinstance(event, Judged)]


def _row(mutant: Mutant, said: Verdict, first: Verdict) -> Checked:
    if not said.loaded:
        said = msgspec.structs.replace(said, outcome=GateOutcome.ERROR)
    failed = said.outcome is not GateOutcome.ACCEPTED
    return Checked(
        mutant.id,
        mutant.observable_by,
        said.outcome,
        bool(said.bits) and said.bits == first.bits,
        said.reason,
        said.case if failed else "",
        said.detail if failed else "",
    )


def _kind(row: Checked) -> str:
    label = "+".join(label.value for label in row.labels) or "no label"
    if row.outcome is GateOutcome.ACCEPTED:
        return f"{label}: {'the same bits' if row.same_bits else 'other bits within tolerance'}"
    return f"{label}: {row.outcome.value}"


def _known(output: Path, mark: str) -> tuple[Checked, ...]:
    """Rows that the same code has made; those without a verdict are made anew."""
    with contextlib.suppress(FileNotFoundError):
        report = msgspec.json.decode(output.read_bytes(), type=Report)
        if report.fingerprint == mark:
            return tuple(row for row in report.rows if _says_something(row))
    return ()


def _says_something(row: Checked) -> bool:
    return exit_code_of([row]) is not ExitCode.ENVIRONMENT_FAILED


def _write(output: Path, report: Report, rows: Collection[Checked]) -> None:
    report = msgspec.structs.replace(report, counts=counts(rows), rows=tuple(rows))
    partial = output.with_name(f"{output.name}.partial")
    partial.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    partial.replace(output)


if __name__ == "__main__":
    main()
