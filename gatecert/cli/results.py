"""Where a run's results go, and what is said of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gatecert.cli.setup import say, write_file
from gatecert.errors import INTERRUPTED, ExitCode

if TYPE_CHECKING:
    from gatecert.campaign.records import Run
    from gatecert.certificate import Certificate
    from gatecert.config import Require
    from gatecert.store import RunRecord, Scope


def conclude(run: Run, record: RunRecord, scope: Scope, require: Require, as_json: bool) -> int:
    """Write certificate and report, print them, finish the run; gives the exit code.

    Only a whole and finished run takes the plain names. Any other is named after its id, and
    what an earlier session of it wrote under that name gives way.
    """
    from gatecert.certificate import certify, exit_code, unmet
    from gatecert.reports.json import render_json
    from gatecert.reports.markdown import render_markdown

    certificate = certify(run)
    by_id = paths_of(record.folder, record.id)
    plain = scope.whole and not run.interrupted
    paths = paths_of(record.folder) if plain else by_id
    if plain:
        _say_what_is_replaced(record, scope, paths[0])
    write_file(paths[0], render_json(certificate))
    write_file(paths[1], render_markdown(certificate))
    if plain:
        for path in by_id:
            path.unlink(missing_ok=True)
    if not run.interrupted:
        record.finish()
    print_certificate(certificate, as_json)
    for line in unmet(certificate, require):
        say(f"requirement not met: {line}")
    say(f"certificate: {paths[0]}; report: {paths[1]}")
    if run.interrupted:
        say("interrupted: the figures are partial; the same command goes on where it stopped")
        return INTERRUPTED
    code = exit_code(certificate, require)
    if scope.shard is not None and code is ExitCode.NOTHING_SCORED:
        return int(ExitCode.MET)  # A share may hold no scored mutant; the whole will.
    return int(code)


def paths_of(folder: Path, run: str = "") -> tuple[Path, Path]:
    """Certificate and report of the last whole run, or of the run of that id."""
    suffix = f"-{run}" if run else ""
    return folder / f"certificate{suffix}.json", folder / f"report{suffix}.md"


def print_certificate(certificate: Certificate, as_json: bool) -> None:
    """The certificate on stdout, for people or as one JSON document."""
    from rich.console import Console

    from gatecert.reports.json import render_json
    from gatecert.reports.terminal import print_report

    if as_json:
        sys.stdout.write(render_json(certificate))
    else:
        print_report(certificate, Console(highlight=False))


def _say_what_is_replaced(record: RunRecord, scope: Scope, path: Path) -> None:
    """A whole run of another kind (gate, seed, --quick) takes the place: say which it was."""
    last = record.last_whole_run()
    if path.exists() and last is not None and not last.scope.like(scope):
        say(
            f"{path} was of run {last.id} (`gatecert {last.scope}`) and is replaced; "
            f"`gatecert report {last.id}` shows it"
        )
