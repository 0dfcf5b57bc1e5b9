"""`gatecert runs`: what the store of a folder holds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.store.records import RunInfo


@click.group("runs")
def command() -> None:
    """List, show or remove stored runs."""


@command.command("list")
@options.out_option
@options.json_option
def list_command(out: Path, as_json: bool) -> int:
    """One line per run, oldest first."""
    from gatecert.reports.tables import Table
    from gatecert.reports.terminal import render_table
    from gatecert.store import open_runs

    with open_runs(out) as runs:
        infos = runs.all()
    if as_json:
        _write_json([_document(info) for info in infos])
    else:
        rows = tuple(
            (info.id, info.state.value, info.started, _progress(info), f"gatecert {info.scope}")
            for info in infos
        )
        columns = ("run", "state", "started (UTC)", "verdicts", "command")
        click.echo(render_table(Table("Runs", columns, rows)))
    return 0


@command.command("show", short_help="Show what a run was and what its gates said.")
@click.argument("run_id", metavar="RUN")
@options.out_option
@options.json_option
def show_command(run_id: str, out: Path, as_json: bool) -> int:
    """What a run was asked for, where it ran, and what its gates said, without judging it."""
    from gatecert.errors import NothingScored
    from gatecert.store import open_runs

    with open_runs(out) as runs:
        document = _document(runs.get(run_id))
        try:
            stored = runs.load(run_id)
        except NothingScored:
            stored = None
    if stored is not None:
        said = Counter((s.verdict.gate, s.verdict.outcome.value) for s in stored.verdicts)
        gates = stored.planned.run.gates
        document["environment"] = stored.planned.run.environment
        document["planned_subjects"] = [s.subject.name for s in stored.planned.run.subjects]
        document["outcomes"] = {
            gate: {outcome: n for (name, outcome), n in sorted(said.items()) if name == gate}
            for gate in gates
        }
        document["observed_bytes"] = stored.info.observed_bytes
        document["timings_s"] = stored.timings_s
    if as_json:
        _write_json(document)
    else:
        for line in _lines(document):
            click.echo(line)
    return 0


@command.command("rm", short_help="Remove runs and what no other run needs.")
@click.argument("run_ids", metavar="RUN...", nargs=-1, required=True)
@options.out_option
@options.json_option
def rm_command(run_ids: Sequence[str], out: Path, as_json: bool) -> int:
    """Remove runs with their certificates, and the verdicts that no other run has.

    certificate.json and report.md of the last whole run stay.
    """
    from gatecert.cli.results import paths_of
    from gatecert.cli.setup import say
    from gatecert.store import DATABASE, open_runs, owned

    with open_runs(out):
        pass  # A folder without a store is not made one.
    with owned(out, "runs rm"), open_runs(out / DATABASE) as runs:
        runs.remove(run_ids)
    for run_id in run_ids:
        for path in (*paths_of(out, run_id), out / f"controls-{run_id}.json"):
            path.unlink(missing_ok=True)
    if as_json:
        _write_json({"removed": list(run_ids)})
    else:
        say(f"removed {', '.join(run_ids)}")
    return 0


def _document(info: RunInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "state": info.state,
        "command": f"gatecert {info.scope}",
        "started": info.started,
        "finished": info.finished,
        "verdicts": info.verdicts,
        "tasks": info.tasks,
        "scope": info.scope,
        "fingerprint": info.fingerprint,
    }


def _progress(info: RunInfo) -> str:
    return f"{info.verdicts} of {info.tasks}" if info.tasks else "-"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    import msgspec

    from gatecert.reports.tables import timing_lines

    plain = msgspec.to_builtins(document)
    for name in ("id", "state", "command", "started", "finished", "fingerprint"):
        yield f"{name + ':':<13}{plain[name] or '-'}"
    yield f"{'verdicts:':<13}{plain['verdicts']} of {plain['tasks']}"
    if "outcomes" not in plain:
        yield "it stopped before anything was planted"
        return
    for gate, outcomes in plain["outcomes"].items():
        counts = ", ".join(f"{outcome} {n}" for outcome, n in outcomes.items())
        yield f"{gate + ':':<13}{counts or 'nothing yet'}"
    environment = plain["environment"]
    versions = ", ".join(f"{n} {environment[n]}" for n in ("gatecert", "torch", "triton"))
    yield f"{'environment:':<13}{versions}, {environment['platform']}"
    yield f"{'subjects:':<13}{', '.join(plain['planned_subjects'])}"
    if plain["observed_bytes"]:
        yield f"{'observed:':<13}{plain['observed_bytes']} bytes"
    for line in timing_lines(plain["timings_s"]) or ["-"]:
        yield f"{'time:':<13}{line}"


def _write_json(document: Any) -> None:
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
