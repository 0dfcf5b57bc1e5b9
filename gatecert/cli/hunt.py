"""`gatecert hunt`: look for an input on which a mutant that a gate missed shows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from gatecert.cli import options

_SECONDS, _CASES = 60.0, 500


@click.command("hunt", short_help="Look for inputs that show a mutant which a gate missed.")
@click.argument("mutants", metavar="[MUTANT]...", nargs=-1)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=_SECONDS,
    show_default=True,
    help="Time for each mutant.",
)
@click.option(
    "--cases",
    type=click.IntRange(min=1),
    default=_CASES,
    show_default=True,
    help="Cases for each mutant.",
)
@click.option(
    "--gate", "gate_name", default="oracle", show_default=True, help="Outside whose cases."
)
@options.config_option
@options.json_option
@options.jobs_option
@options.seed_option
@options.quick_option
@options.out_option
def command(
    mutants: Sequence[str],
    seconds: float,
    cases: int,
    gate_name: str,
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    seed: int,
    quick: bool,
    out: Path,
) -> int:
    """Hunt for a witness of each MUTANT (ids or globs): a case outside those that the gate tries on
    which mutant and original differ beyond noise, or a guard sees something.

    Without a MUTANT: of each survivor in the certificate in --out. Writes hunts.json there. Cases
    and their order follow from the seed; --seconds only cuts them short.
    """
    import msgspec

    from gatecert.campaign.hunting import run_hunts, survivors_of
    from gatecert.cli.certificates import read_certificate
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import check_out, make_plan, read_config, say, write_file
    from gatecert.errors import ExitCode
    from gatecert.reports.hunts import hunt_lines
    from gatecert.witness.records import HuntBudget

    check_out(out)
    wanted = tuple(mutants) or survivors_of(read_certificate(out).certificate, gate_name)
    if not wanted:
        say(f"no mutant survived in {out}: there is nothing to hunt")
        return int(ExitCode.NOTHING_SCORED)
    plan = make_plan(
        read_config(config_path),
        gate_names=(gate_name,),
        only=wanted,
        seed=seed,
        quick=quick,
        jobs=jobs,
        with_oracle=gate_name == "oracle",
    )
    with shown_progress() as progress:
        budget = HuntBudget(seconds, cases)
        hunts = sorted(
            (hunt for _, hunt in run_hunts(plan, budget, progress)), key=lambda h: h.mutant
        )
    path = out / "hunts.json"
    text = msgspec.json.format(msgspec.json.encode(hunts), indent=2).decode() + "\n"
    write_file(path, text)
    if as_json:
        sys.stdout.write(text)
    else:
        click.echo("\n\n".join("\n".join(hunt_lines(hunt)) for hunt in hunts))
    say(f"hunts: {path}")
    return int(ExitCode.MET)
