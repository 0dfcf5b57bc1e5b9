"""`gatecert controls`: how often a gate rejects correct code, over many seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.campaign.controls import ControlRow, ControlsRecord
    from gatecert.reports.tables import Table


@click.command("controls", short_help="Judge every control under many seeds.")
@click.option("--seeds", type=click.IntRange(min=1), default=10, show_default=True)
@click.option(
    "--rewrite-seeds",
    type=click.IntRange(min=0),
    help="Judge benign rewrites under so many of the seeds only.  [default: under all]",
)
@options.one_gate_option
@options.subject_option
@options.config_option
@options.json_option
@options.jobs_option
@options.seed_option
@options.quick_option
@options.out_option
@options.fresh_option
def command(
    seeds: int,
    rewrite_seeds: int | None,
    gate_names: Sequence[str],
    subject_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    seed: int,
    quick: bool,
    out: Path,
    fresh: bool,
) -> int:
    """Judge every original and benign rewrite under many seeds, all dtypes.

    None may be rejected. Writes controls.json to --out, or with --subject controls-r2.json after
    the run's id; an interrupted run goes on where it stopped.
    """
    import msgspec

    from gatecert.campaign.controls import run_controls
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import check_out, make_plan, read_config, say, write_file
    from gatecert.reports.terminal import render_table
    from gatecert.store import Scope, recording

    check_out(out)
    config = read_config(config_path)
    plan = make_plan(
        config,
        subject_names=subject_names,
        gate_names=gate_names,
        seed=seed,
        quick=quick,
        jobs=jobs,
    )
    scope = Scope(
        "controls",
        config=str(Path(config.path).resolve()),
        gates=(plan.gates[0].name,),
        subjects=tuple(dict.fromkeys(subject_names)),
        seed=seed,
        seeds=seeds,
        rewrite_seeds=rewrite_seeds,
        quick=quick,
        fresh=fresh,
    )
    with recording(out, scope) as stored:
        with shown_progress() as progress:
            record = run_controls(
                plan,
                range(seed, seed + seeds),
                stored,
                progress,
                rewrite_seeds=rewrite_seeds,
            )
        path = out / ("controls.json" if scope.whole else f"controls-{stored.id}.json")
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
        write_file(path, text)
        stored.finish()
    if as_json:
        sys.stdout.write(text)
    else:
        click.echo(render_table(controls_table(record)))
        click.echo(f"\n{verdict_line(record)}")
        for row in _not_accepted(record):
            click.echo(
                f"{row.outcome.value}: {row.control} seed={row.seed} {row.case} {row.detail}"
            )
    say(f"controls: {path}")
    return exit_code(record)


def controls_table(record: ControlsRecord) -> Table:
    """One row per subject: runs, distinct runs, cases, rejections, the closest call, and the share
    of elements that had to be equal."""
    from gatecert.gates.records import GateOutcome
    from gatecert.reports.tables import Table

    def row(name: str, rows: Sequence[ControlRow]) -> tuple[str, ...]:
        return (
            name,
            str(len(rows)),
            str(sum(r.distinct for r in rows)),
            str(sum(r.cases for r in rows)),
            str(sum(r.outcome is GateOutcome.REJECTED for r in rows)),
            f"{max(r.margin for r in rows):.3f}",
            _share(sum(r.exactly for r in rows), sum(r.compared for r in rows)),
        )

    subjects = dict.fromkeys(r.subject for r in record.rows)
    rows = [row(name, [r for r in record.rows if r.subject == name]) for name in subjects]
    if record.rows:
        rows.append(row("all", record.rows))
    columns = (
        "subject",
        "runs",
        "distinct",
        "cases",
        "rejected",
        "worst error / allowance",
        "exact",
    )
    return Table(f"Controls under {record.gate}", columns, tuple(rows))


def _share(exactly: int, compared: int) -> str:
    """Which part of all elements had to be equal; "-" where the gate does not count them."""
    return f"{100 * exactly / compared:.1f}%" if compared else "-"


def verdict_line(record: ControlsRecord) -> str:
    """What the run proves, with the subject as unit: its rewrites are no independent trials."""
    from gatecert.gates.records import GateOutcome
    from gatecert.statistics import clopper_pearson

    subjects = {row.subject for row in record.rows}
    rejected = {r.subject for r in record.rows if r.outcome is GateOutcome.REJECTED}
    rate = clopper_pearson(len(rejected), len(subjects))
    bound = "unknown" if rate.high is None else f"{100 * rate.high:.1f}%"
    return (
        f"{len(rejected)} of {len(subjects)} subjects had a control rejected under "
        f"{_seeds(record)}; at 95% confidence the share of such kernels is below {bound}"
    )


def _seeds(record: ControlsRecord) -> str:
    """How many seeds there were, and how many of them benign rewrites were judged under."""
    from gatecert.mutants.records import original

    of_rewrites = {row.seed for row in record.rows if row.control != original(row.subject).id}
    every = f"{len(record.seeds)} seeds"
    if len(of_rewrites) == len(record.seeds):
        return every
    return f"{every} (benign rewrites: {len(of_rewrites) or 'none'})"


def exit_code(record: ControlsRecord) -> int:
    """Environment failures before rejections: they leave the question open."""
    from gatecert.errors import ExitCode
    from gatecert.gates.records import GateOutcome

    outcomes = {row.outcome for row in _not_accepted(record)}
    if outcomes - {GateOutcome.REJECTED}:
        return int(ExitCode.ENVIRONMENT_FAILED)
    if outcomes:
        return int(ExitCode.CONTROL_REJECTED)
    return int(ExitCode.MET if record.rows else ExitCode.NOTHING_SCORED)


def _not_accepted(record: ControlsRecord) -> list[ControlRow]:
    from gatecert.gates.records import GateOutcome

    return [row for row in record.rows if row.outcome is not GateOutcome.ACCEPTED]
