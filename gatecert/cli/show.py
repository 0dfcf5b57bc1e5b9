"""`gatecert show`: all that is known of one mutant."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.certificate.records import Result, Survivor
    from gatecert.config import Config
    from gatecert.mutants.records import Mutant


@click.command("show")
@click.argument("mutant_id", metavar="ID")
@options.config_option
@options.json_option
@options.out_option
def command(mutant_id: str, config_path: Path | None, as_json: bool, out: Path) -> int:
    """Show a mutant: its diff, its labels, and what the last run in --out said of it."""
    import msgspec
    from rich.console import Console

    from gatecert.cli.setup import read_config
    from gatecert.reports.terminal import print_diff

    mutant = find_mutant(read_config(config_path), mutant_id)
    results, survivor = _last_run(out, mutant_id)
    if as_json:
        document = {"mutant": mutant, "results": results, "survivor": survivor}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
        return 0
    for line in _lines(mutant, results, survivor):
        click.echo(line)
    click.echo("")
    print_diff(mutant.diff, Console(highlight=False))
    return 0


def find_mutant(config: Config, mutant_id: str) -> Mutant:
    """Plant the subject that the id names, and pick the mutant.

    Raises:
        UsageError: no subject or mutant has that name; names the nearest.
        EnvironmentFailure: the subject cannot be run.
    """
    from gatecert.cli.mutants import planted
    from gatecert.cli.setup import check_names, make_plan, subject_of
    from gatecert.errors import EnvironmentFailure

    (part,) = planted(make_plan(config, subject_names=(subject_of(mutant_id),)))
    if part.failed:
        raise EnvironmentFailure(part.failed)
    mutants = {mutant.id: mutant for mutant in part.mutants}
    check_names("mutant", (mutant_id,), mutants)
    return mutants[mutant_id]


def _last_run(out: Path, mutant_id: str) -> tuple[dict[str, Result], Survivor | None]:
    import msgspec

    from gatecert.errors import UsageError
    from gatecert.reports.json import parse_json

    paths = sorted(out.glob("certificate*.json"), key=lambda path: -path.stat().st_mtime_ns)
    for path in paths:
        try:
            certificate = parse_json(path.read_text(encoding="utf-8"))
        except (OSError, msgspec.MsgspecError) as error:
            raise UsageError(f"{path}: not a certificate of this version: {error}") from None
        if mutant_id in certificate.results:
            survivor = next((s for s in certificate.survivors if s.id == mutant_id), None)
            return certificate.results[mutant_id], survivor
    return {}, None


def _lines(mutant: Mutant, results: dict[str, Result], survivor: Survivor | None) -> Iterator[str]:
    from gatecert.reports.cards import ignore_line, result_line, survivor_lines

    yield mutant.id
    yield f"  planted:    {mutant.detail}"
    yield f"  at:         {mutant.path}:{mutant.line}"
    if mutant.in_launcher:
        yield f"  launcher:   {mutant.kernel} of {', '.join(mutant.launches)}"
    yield f"  bug class:  {mutant.bug_class}{'' if mutant.scored else ' (detection ladder)'}"
    labels = ", ".join(label.value for label in mutant.observable_by) or "nothing"
    yield f"  shown by:   {labels}"
    yield f"  revealed:   {', '.join(tag.value for tag in mutant.reveal)}"
    for gate, result in results.items():
        yield f"  {result_line(gate, result)}"
    if not results:
        yield "  no run in --out has judged it"
    if survivor is not None:
        yield from survivor_lines(survivor)[2:]
    elif any(result.unreported for result in results.values()):
        yield ignore_line(mutant.id, mutant.path, mutant.line)
