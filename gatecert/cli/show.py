"""`gatecert show`: all that is known of one mutant."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.certificate.records import Result, Survivor
    from gatecert.config import Config
    from gatecert.errors import UsageError
    from gatecert.mutants.records import Mutant

_MOST_NEAR = 3


@click.command("show", short_help="Show a mutant and what gates said of it.")
@click.argument("mutant_id", metavar="ID")
@options.config_option
@options.json_option
@options.out_option
def command(mutant_id: str, config_path: Path | None, as_json: bool, out: Path) -> int:
    """Show a mutant, its diff and its labels, and what the last run in --out said of it.

    A glob shows all that it names; with --json they are then a list.
    """
    import msgspec

    from gatecert.cli.setup import is_glob, read_config

    mutants = find_mutants(read_config(config_path), mutant_id)
    if not as_json:
        for number, mutant in enumerate(mutants):
            _print(mutant, out, after_another=number > 0)
        return 0
    documents = [_document(mutant, out) for mutant in mutants]
    body = msgspec.json.encode(documents if is_glob(mutant_id) else documents[0])
    sys.stdout.write(msgspec.json.format(body).decode() + "\n")
    return 0


def find_mutants(config: Config, wanted: str) -> list[Mutant]:
    """Plant the subjects that an id or glob may name, and pick its mutants.

    Raises:
        UsageError: it names no subject or mutant; names the nearest.
        EnvironmentFailure: the subject cannot be run.
    """
    from gatecert.cli.mutants import planted
    from gatecert.cli.setup import check_selection, choose_subjects, make_plan
    from gatecert.errors import EnvironmentFailure
    from gatecert.mutants.suppression import names_mutant

    check_selection(config, only=(wanted,))
    names = [subject.name for subject in choose_subjects(config, (), (wanted,))]
    parts = planted(make_plan(config, subject_names=names))
    mutants = [mutant for part in parts for mutant in part.mutants]
    found = [mutant for mutant in mutants if names_mutant(wanted, mutant.id)]
    if found:
        return found
    for part in parts:
        if part.failed:
            raise EnvironmentFailure(part.failed)
    raise _unknown(wanted, [mutant.id for mutant in mutants])


def find_mutant(config: Config, mutant_id: str) -> Mutant:
    """The one mutant of an id; raises as `find_mutants`, and where a glob names several."""
    from gatecert.errors import UsageError

    found = find_mutants(config, mutant_id)
    if len(found) > 1:
        raise UsageError(f"{mutant_id!r} names {len(found)} mutants, {found[0].id} first; name one")
    return found[0]


def _unknown(wanted: str, ids: Sequence[str]) -> UsageError:
    from gatecert.errors import UsageError

    near = difflib.get_close_matches(wanted, ids, n=_MOST_NEAR)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return UsageError(f"no mutant {wanted!r}; {hint}`gatecert mutants list` prints the ids")


def _document(mutant: Mutant, out: Path) -> dict[str, object]:
    results, survivor = _last_run(out, mutant.id)
    return {"mutant": mutant, "results": results, "survivor": survivor}


def _print(mutant: Mutant, out: Path, *, after_another: bool) -> None:
    from rich.console import Console

    from gatecert.reports.terminal import print_diff

    if after_another:
        click.echo("")
    for line in _lines(mutant, *_last_run(out, mutant.id)):
        click.echo(line)
    click.echo("")
    print_diff(mutant.diff, Console(highlight=False))


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
    from gatecert.campaign.records import Status
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
    elif any(result.status is Status.UNREPORTED for result in results.values()):
        yield ignore_line(mutant.id, mutant.path, mutant.line)
