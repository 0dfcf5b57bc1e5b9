"""`gatecert certify`: the main job."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options
from gatecert.errors import INTERRUPTED

if TYPE_CHECKING:
    from gatecert.campaign.plan import Plan
    from gatecert.campaign.records import Run
    from gatecert.certificate import Certificate


@click.command("certify")
@options.gate_option
@options.subject_option
@options.operator_option
@options.config_option
@options.json_option
@options.jobs_option
@options.seed_option
@options.quick_option
@options.out_option
@click.option("--only", multiple=True, metavar="ID", help="Only this mutant (repeatable).")
@click.option("--list", "list_only", is_flag=True, help="Name the mutants; run nothing.")
def command(
    gate_names: Sequence[str],
    subject_names: Sequence[str],
    operator_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    seed: int,
    quick: bool,
    out: Path,
    only: Sequence[str],
    list_only: bool,
) -> int:
    """Run gates on correct code, on adversaries and on every mutant; write a certificate.

    Results go to the folder --out: certificate.json, report.md and run.sqlite, from which an
    interrupted run goes on. With --only they are named only.*, so that a look at one mutant
    leaves the certificate of a whole run alone.
    """
    from gatecert.certificate import certify, exit_code, unmet
    from gatecert.cli.setup import make_plan, read_config, say, write_file
    from gatecert.config import Require
    from gatecert.reports.json import render_json
    from gatecert.reports.markdown import render_markdown

    config = read_config(config_path)
    plan = make_plan(
        config,
        subject_names=subject_names,
        gate_names=gate_names,
        operator_names=operator_names,
        seed=seed,
        quick=quick,
        jobs=jobs,
        only=only,
    )
    if list_only:
        from gatecert.cli.mutants import list_mutants

        return list_mutants(plan, as_json)
    run = _run(plan, out / ("only.sqlite" if only else "run.sqlite"))
    certificate = certify(run)
    names = ("only.json", "only.md") if only else ("certificate.json", "report.md")
    write_file(out / names[0], render_json(certificate))
    write_file(out / names[1], render_markdown(certificate))
    _print(certificate, as_json)
    # A bound on a rate says nothing of one mutant, nor of half a run.
    require = Require() if only or run.interrupted else config.require
    for line in unmet(certificate, require):
        say(f"requirement not met: {line}")
    say(f"certificate: {out / names[0]}; report: {out / names[1]}")
    if run.interrupted:
        say("interrupted: the figures are partial; the same command goes on where it stopped")
        return INTERRUPTED
    return int(exit_code(certificate, require))


def _run(plan: Plan, database: Path) -> Run:
    import msgspec

    from gatecert.campaign.run import run_campaign
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import say
    from gatecert.store import open_for_run

    started = time.monotonic()
    with open_for_run(database) as store:
        if len(store):
            say(f"going on with an interrupted run: {len(store)} verdicts in {database}")
        with shown_progress() as progress:
            run = run_campaign(plan, store, progress)
        if not run.interrupted:
            store.finish()
    timings = {**run.timings_s, "total": round(time.monotonic() - started, 3)}
    return msgspec.structs.replace(run, timings_s=timings)


def _print(certificate: Certificate, as_json: bool) -> None:
    from rich.console import Console

    from gatecert.reports.json import render_json
    from gatecert.reports.terminal import print_report

    if as_json:
        sys.stdout.write(render_json(certificate))
    else:
        print_report(certificate, Console(highlight=False))
