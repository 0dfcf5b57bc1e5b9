"""`gatecert mutants`: what would be planted, without running it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.campaign.plan import Plan
    from gatecert.campaign.records import SubjectRun


@click.group("mutants")
def command() -> None:
    """List or count the mutants that would be planted."""


@command.command("list")
@options.subject_option
@options.operator_option
@options.config_option
@options.json_option
@options.jobs_option
def list_command(
    subject_names: Sequence[str],
    operator_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
) -> int:
    """One line per mutant: its id and what is planted."""
    return list_mutants(_plan(subject_names, operator_names, config_path, jobs), as_json)


@command.command("stats")
@options.subject_option
@options.operator_option
@options.config_option
@options.json_option
@options.jobs_option
def stats_command(
    subject_names: Sequence[str],
    operator_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
) -> int:
    """Mutants by operator and subject, and what was not mutated and why."""
    import msgspec

    from gatecert.campaign.plan import labels_sha256
    from gatecert.campaign.records import LANE_SHOWS
    from gatecert.reports.tables import Table
    from gatecert.reports.terminal import render_table

    parts = planted(_plan(subject_names, operator_names, config_path, jobs))
    mutants = [mutant for part in parts for mutant in part.mutants]
    scored = [mutant for mutant in mutants if mutant.scored]
    shows = LANE_SHOWS["interpreter"]
    observable = sum(bool(shows & set(mutant.observable_by)) for mutant in scored)
    by_cell = Counter((mutant.operator, mutant.subject) for mutant in scored)
    operators = sorted({mutant.operator for mutant in scored})
    subjects = [part.subject.name for part in parts]
    if as_json:
        document = {
            "planted": len(mutants),
            "scored": len(scored),
            "observable": observable,
            "labels_sha256": labels_sha256(mutants),
            "by_operator": dict(Counter(mutant.operator for mutant in scored)),
            "by_subject": {name: sum(m.subject == name for m in scored) for name in subjects},
            "skipped": [msgspec.to_builtins(s) for part in parts for s in part.skipped],
            "failed": {part.subject.name: part.failed for part in parts if part.failed},
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
        return _exit_code(parts)
    rows = [
        (
            name,
            str(sum(by_cell[name, subject] for subject in subjects)),
            *(str(by_cell[name, subject] or "") for subject in subjects),
        )
        for name in operators
    ]
    totals = [sum(by_cell[name, subject] for name in operators) for subject in subjects]
    rows.append(("all", str(len(scored)), *map(str, totals)))
    table = Table("Mutants", ("operator", "all", *subjects), tuple(rows))
    click.echo(render_table(table))
    click.echo(
        f"\n{len(scored)} scored and {len(mutants) - len(scored)} on the detection ladder; "
        f"{observable} of the scored are observable on the interpreter\n"
        f"labels {labels_sha256(mutants)}"
    )
    for part in parts:
        for skip in part.skipped:
            click.echo(f"not mutated: {skip.name}: {skip.reason}")
        if part.failed:
            click.echo(f"failed: {part.subject.name}: {part.failed}")
    return _exit_code(parts)


def list_mutants(plan: Plan, as_json: bool) -> int:
    """Print every mutant of the plan: ids with what is planted, or whole records as JSON."""
    import msgspec

    parts = planted(plan)
    mutants = [mutant for part in parts for mutant in part.mutants]
    ignored = {one.mutant: one.reason for part in parts for one in part.ignored}
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(mutants)).decode() + "\n")
    else:
        for mutant in mutants:
            ladder = "" if mutant.scored else "  [ladder]"
            reason = f"  [ignored: {ignored[mutant.id]}]" if mutant.id in ignored else ""
            click.echo(f"{mutant.id}  {mutant.detail}{ladder}{reason}")
    if plan.since and not any(part.failed for part in parts):
        return 0  # A diff without a mutant is no failure.
    return _exit_code(parts)


def planted(plan: Plan) -> tuple[SubjectRun, ...]:
    """Every subject of the plan with its mutants, planted and not run."""
    from gatecert.campaign.run import plan_campaign
    from gatecert.campaign.selection import select
    from gatecert.campaign.supervise import server_pool
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import say

    jobs = min(plan.jobs, len(plan.subjects))
    with server_pool(jobs) as pool, shown_progress() as progress:
        found = plan_campaign(plan, pool, progress)
    if plan.since or plan.only:
        found, selection = select(plan, found)
        if selection.note:
            say(selection.note)
    return tuple(part.run for part in found)


def _plan(
    subject_names: Sequence[str],
    operator_names: Sequence[str],
    config_path: Path | None,
    jobs: int,
) -> Plan:
    from gatecert.cli.setup import make_plan, read_config

    return make_plan(
        read_config(config_path),
        subject_names=subject_names,
        operator_names=operator_names,
        jobs=jobs,
    )


def _exit_code(parts: Sequence[SubjectRun]) -> int:
    from gatecert.cli.setup import say
    from gatecert.errors import ExitCode

    for part in parts:
        if part.failed:
            say(f"{part.subject.name}: {part.failed}")
    if any(part.failed for part in parts):
        return int(ExitCode.ENVIRONMENT_FAILED)
    if not any(part.mutants for part in parts):
        say("nothing was planted: no launched kernel matches an operator")
        return int(ExitCode.NOTHING_SCORED)
    return int(ExitCode.MET)
