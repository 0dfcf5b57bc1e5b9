"""`gatecert limits`: how small an error of results a gate sees."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.campaign.limits import LimitRow, LimitsRecord
    from gatecert.reports.tables import Table


@click.command("limits", short_help="Find the smallest error that a gate rejects.")
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
    """Find the smallest relative error that a gate rejects, per subject and dtype.

    All that kernels store is made too large, one store at a time, by 1e-5 to 1e-1. Writes
    limits.json to --out, or with --subject limits-r2.json after the run's id.
    """
    import msgspec

    from gatecert.campaign.limits import run_limits
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
        "limits",
        config=str(Path(config.path).resolve()),
        gates=(plan.gates[0].name,),
        subjects=tuple(dict.fromkeys(subject_names)),
        seed=seed,
        quick=quick,
        fresh=fresh,
    )
    with recording(out, scope) as stored:
        with shown_progress() as progress:
            record = run_limits(plan, stored, progress)
        path = out / ("limits.json" if scope.whole else f"limits-{stored.id}.json")
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
        write_file(path, text)
        stored.finish()
    if as_json:
        sys.stdout.write(text)
    else:
        click.echo(render_table(limits_table(record)))
        for row in record.rows:
            if row.why:
                click.echo(f"{row.subject}{f' in {row.dtype}' if row.dtype else ''}: {row.why}")
        click.echo(f"\n{medians_line(record)}")
    say(f"limits: {path}")
    return exit_code(record)


def limits_table(record: LimitsRecord) -> Table:
    """One row per subject, one column per dtype."""
    from gatecert.reports.tables import Table

    dtypes = _dtypes(record)
    rows: dict[str, dict[str, LimitRow]] = {}
    for row in record.rows:
        if not row.why:
            rows.setdefault(row.subject, {})[row.dtype] = row
    body = [
        (name, *(_cell(by_dtype.get(dtype), record) for dtype in dtypes))
        for name, by_dtype in rows.items()
    ]
    columns = ("subject", *(dtype or "limit" for dtype in dtypes))
    return Table(f"Smallest relative error seen by {record.gate}", columns, tuple(body))


def medians_line(record: LimitsRecord) -> str:
    """`median: float32 1e-05, float16 1e-05`."""
    said = [f"{dtype} {_number(record.median(dtype), record)}".strip() for dtype in _dtypes(record)]
    return f"median: {', '.join(said)}" if said else "no subject has a limit"


def exit_code(record: LimitsRecord) -> int:
    """5 where there is nothing to say."""
    from gatecert.errors import ExitCode

    scored = any(not row.why for row in record.rows)
    return int(ExitCode.MET if scored else ExitCode.NOTHING_SCORED)


def _dtypes(record: LimitsRecord) -> list[str]:
    return list(dict.fromkeys(row.dtype for row in record.rows if not row.why))


def _cell(row: LimitRow | None, record: LimitsRecord) -> str:
    if row is None:
        return "-"
    limit = _number(row.limit, record)
    smallest = row.limit == min(record.errors)
    return limit if smallest else f"{limit} at {row.store}"


def _number(limit: float | None, record: LimitsRecord) -> str:
    """A limit in words: none that was planted may be seen."""
    largest = max(record.errors)
    return f"> {largest:g}" if limit is None or limit > largest else f"{limit:g}"
