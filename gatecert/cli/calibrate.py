"""`gatecert calibrate`: fit tolerances on correct kernels, and try them on what was held out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.calibration.records import Row, Tolerances
    from gatecert.reports.tables import Table


@click.command("calibrate", short_help="Fit a tolerance per operation and dtype.")
@click.option(
    "--model",
    "model_name",
    default="interval",
    show_default=True,
    help="What is fitted: interval, allclose, absolute, ratio, rms or cosine.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Seeds to fit on."
)
@click.option(
    "--held-out-seeds",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Further seeds, to try the fit on.",
)
@click.option(
    "--envelope",
    type=click.FloatRange(min=1.0, max=3.0),
    default=1.5,
    show_default=True,
    help="Times the largest need that was seen.",
)
@click.option(
    "--strategy", default="certify", show_default=True, help="Shapes and values to fit on."
)
@options.subject_option
@options.config_option
@options.json_option
@options.jobs_option
@options.seed_option
@options.out_option
@options.fresh_option
def command(
    model_name: str,
    seeds: int,
    held_out_seeds: int,
    envelope: float,
    strategy: str,
    subject_names: Sequence[str],
    config_path: Path | None,
    as_json: bool,
    jobs: int,
    seed: int,
    out: Path,
    fresh: bool,
) -> int:
    """Fit a tolerance per operation and dtype on originals, their benign rewrites, kernels of the
    built-in corpus and torch's own result.

    Writes tolerances.toml to --out, or with --subject tolerances-r2.toml after the run's id, to
    be reviewed and then named in an [oracle.NAME] table. An interrupted run goes on where it
    stopped.
    """
    import msgspec

    from gatecert.calibration.models import get_model
    from gatecert.calibration.run import Wanted, calibrate, calibration_plan
    from gatecert.calibration.write import render_tolerances
    from gatecert.cli.progress import shown_progress
    from gatecert.cli.setup import make_plan, read_config, say, write_file
    from gatecert.oracle.strategies import get_strategy
    from gatecert.reports.terminal import render_table
    from gatecert.store import Scope, recording

    wanted = Wanted(
        get_model(model_name), get_strategy(strategy).name, seeds, held_out_seeds, envelope
    )
    config = read_config(config_path)
    plan = make_plan(
        config, subject_names=subject_names, gate_names=("oracle",), seed=seed, jobs=jobs
    )
    plan = calibration_plan(plan, wanted, config)
    scope = Scope(
        "calibrate",
        config=str(Path(config.path).resolve()),
        gates=(plan.gates[0].name,),
        subjects=tuple(dict.fromkeys(subject_names)),
        seed=seed,
        seeds=seeds + held_out_seeds,
        fresh=fresh,
    )
    with recording(out, scope) as stored:
        with shown_progress() as progress:
            found = calibrate(plan, wanted, stored, progress)
        path = out / ("tolerances.toml" if scope.whole else f"tolerances-{stored.id}.toml")
        if found.row:
            write_file(path, render_tolerances(found))
        stored.finish()
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
        sys.stdout.write(text + "\n")
    else:
        click.echo(render_table(tolerances_table(found)))
        for line in _remarks(found):
            click.echo(line)
    if found.row:
        say(f"tolerances: {path}; read it, and fill in `reviewed`")
    else:
        say("nothing was fitted, and no file written")
    return exit_code(found)


def tolerances_table(found: Tolerances) -> Table:
    """One row per operation and dtype: what was fitted, on how much, and how it held."""
    from gatecert.reports.tables import Table

    def row(one: Row) -> tuple[str, ...]:
        kernels = sum(left.rejected for left in one.left_out)
        return (
            one.operation,
            one.dtype,
            f"{one.constant:g}",
            f"{one.largest:g}",
            str(len(one.kernels)),
            str(one.runs),
            *(f"{tried.rejected} of {tried.runs}" for tried in one.held_out.values()),
            f"{kernels} of {sum(left.runs for left in one.left_out)}",
        )

    held_out = ("new seeds", "new shape", "new values", "kernel left out")
    columns = ("operation", "dtype", "constant", "largest need", "kernels", "runs", *held_out)
    return Table(
        f"Fitted: {found.model}; rejected of held out", columns, tuple(map(row, found.row))
    )


def exit_code(found: Tolerances) -> int:
    """A fit that rejects correct code it did not see is not met."""
    from gatecert.errors import ExitCode

    if not found.row:
        return int(ExitCode.NOTHING_SCORED)
    rejects = any(row.rejected for row in found.row)
    return int(ExitCode.CONTROL_REJECTED if rejects else ExitCode.MET)


def _remarks(found: Tolerances) -> Iterator[str]:
    for one in found.refused:
        yield f"refused: {one.operation} in {one.dtype}: {one.reason}"
    for line in found.torch_left_out:
        yield f"torch's own result is no control for {line}"
    for row in found.row:
        for left in row.left_out:
            if left.rejected:
                yield (
                    f"{row.operation} in {row.dtype}: fitted without {left.kernel} the constant is "
                    f"{left.constant:g}, and rejects {left.rejected} of its {left.runs} runs"
                )
