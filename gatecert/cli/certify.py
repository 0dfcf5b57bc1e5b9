"""`gatecert certify`: the main job."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.cli.publishing import Publishing


@click.command("certify", short_help="Judge controls, adversaries and mutants; certify a gate.")
@options.gate_option
@options.no_oracle_option
@options.subject_option
@options.operator_option
@options.config_option
@options.json_option
@options.jobs_option
@options.seed_option
@options.quick_option
@options.out_option
@options.fresh_option
@options.profile_option
@options.against_option
@click.option("--only", multiple=True, metavar="ID", help="Only this mutant, or glob (repeatable).")
@click.option("--matrix", is_flag=True, help="Run every case of every mutant; keep what it showed.")
@click.option("--shard", "shard_text", metavar="K/N", help="Only the K-th of N parts; see merge.")
@options.part_options
@options.publishing_options
@click.option("--explain", is_flag=True, help="Measure why each survivor of the gate survived.")
@click.option(
    "--explain-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Time to search for an input that shows a survivor.",
)
@click.option("--list", "list_only", is_flag=True, help="Name the mutants; run nothing.")
def command(
    gate_names: Sequence[str],
    no_oracle: bool,
    subject_names: Sequence[str],
    operator_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    seed: int,
    quick: bool,
    out: Path,
    fresh: bool,
    profile: str | None,
    against_path: Path | None,
    only: Sequence[str],
    matrix: bool,
    shard_text: str | None,
    explain: bool,
    explain_seconds: float,
    list_only: bool,
    part: options.Part,
    publishing: Publishing,
) -> int:
    """Run gates on correct code, on adversaries and on every mutant; write a certificate.

    Results go to the folder --out: certificate.json, report.md and gatecert.sqlite, from which
    an interrupted run goes on and a later one takes what has not changed. A run of a part
    (--subject, --operator, --only, --shard, --in-diff, --sample, --time-budget, --profile) is
    named after its id, certificate-r2.json, so that it leaves the certificate of a whole run alone.
    """
    from dataclasses import replace

    from gatecert.cli.profiling import apply_profile
    from gatecert.cli.setup import check_out, make_plan, read_config
    from gatecert.errors import UsageError
    from gatecert.store.records import parse_shard
    from gatecert.witness.records import HuntBudget

    shard = None if shard_text is None else parse_shard(shard_text)
    part.check(shard=shard is not None, list_only=list_only)
    if explain and shard is not None:
        raise UsageError(
            "--explain with --shard: merge the shards first; `gatecert certify --explain` on the "
            "merged folder takes their verdicts"
        )
    ratchet = publishing.check(shard=shard is not None)
    if not list_only:
        check_out(out)
    config, seed, quick, earlier = apply_profile(
        read_config(config_path),
        profile,
        against_path,
        seed,
        quick,
        subject_names,
        some_controls=bool(only or shard),
    )
    plan = make_plan(
        config,
        subject_names=subject_names,
        gate_names=gate_names,
        operator_names=operator_names,
        seed=seed,
        quick=quick,
        jobs=jobs,
        only=only,
        matrix=matrix,
        shard=shard,
        part=part,
        with_oracle=not no_oracle,
    )
    if explain:
        plan = replace(plan, explain=HuntBudget(explain_seconds))
    if list_only:
        from gatecert.cli.mutants import list_mutants

        return list_mutants(plan, as_json)
    # The options are known to be right: now what takes a second to import.
    from gatecert.campaign.run import run_campaign
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.results import conclude
    from gatecert.cli.setup import say
    from gatecert.config import Require
    from gatecert.store import Scope, recording

    scope = Scope(
        "certify",
        config=str(Path(config.path).resolve()),
        gates=tuple(ref.name for ref in plan.gates),
        subjects=tuple(dict.fromkeys(subject_names)),
        operators=tuple(dict.fromkeys(operator_names)),
        only=plan.only,
        seed=seed,
        quick=quick,
        matrix=matrix,
        fresh=fresh,
        profile=profile or "",
        against=earlier.sha256 if earlier else "",
        shard=shard,
        in_diff=part.in_diff,
        sample=part.sample,
        time_budget_s=part.time_budget_s,
        no_oracle=no_oracle,
    )
    with recording(out, scope) as record:
        if record.resumed:
            say(f"going on with an interrupted run: {record.resumed} verdicts of {record.id}")
        with shown_progress() as progress:
            run = run_campaign(plan, record, progress)
        if record.taken:
            say(f"{record.taken} verdicts were in the store already; --fresh judges them again")
        # A bound on a rate says nothing of one mutant, nor of a part that nobody drew at random.
        require = Require() if only or shard or run.interrupted else config.require
        if part.in_diff:
            require = Require(adversaries=require.adversaries)
        return conclude(
            run, record, scope, require, as_json, earlier, publishing=publishing, ratchet=ratchet
        )
