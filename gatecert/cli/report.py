"""`gatecert report`: a stored run, or a certificate, rendered again; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.certificate import Certificate
    from gatecert.store import Runs


@click.command("report", short_help="Print the report of a stored run.")
@click.argument("what", metavar="[RUN|CERTIFICATE]", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "markdown", "json", "html"]),
    default="terminal",
    show_default=True,
    help="What to print on stdout.",
)
@options.out_option
@options.json_option
def command(what: str | None, form: str, out: Path, as_json: bool) -> int:
    """Print the report of a stored RUN (`gatecert runs list`), by default of the latest one, or
    of a CERTIFICATE, a .json file that certify wrote anywhere.

    An unfinished run is reported as far as it got. The exit code says whether there was
    something to print, not how the gate fared.
    """
    from gatecert.cli.certificates import read_certificate
    from gatecert.cli.results import print_certificate
    from gatecert.reports.markdown import render_markdown

    if what is not None and what.endswith(".json"):
        certificate = read_certificate(Path(what)).certificate
    else:
        certificate = _stored(what, out)
    if form == "html" and not as_json:
        from gatecert.reports.html import render_html

        click.echo(render_html(certificate, _limits(certificate, out)), nl=False)
    elif form == "markdown" and not as_json:
        click.echo(render_markdown(certificate), nl=False)
    else:
        print_certificate(certificate, as_json or form == "json")
    return 0


def _limits(certificate: Certificate, out: Path) -> dict[str, dict[str, float | None]]:
    """Of the same gate, where `gatecert limits` has left them in --out."""
    import msgspec

    from gatecert.campaign.limits import LimitsRecord
    from gatecert.cli.setup import say

    path = out / "limits.json"
    if not path.is_file():
        return {}
    try:
        record = msgspec.json.decode(path.read_bytes(), type=LimitsRecord)
    except msgspec.MsgspecError as error:
        say(f"{path} is left out: {error}")
        return {}
    found: dict[str, dict[str, float | None]] = {}
    for row in record.rows if record.gate == certificate.gate else ():
        if not row.why:
            found.setdefault(row.subject, {})[row.dtype] = row.limit
    return found


def _stored(run_id: str | None, out: Path) -> Certificate:
    from gatecert.certificate import certify
    from gatecert.cli.setup import say
    from gatecert.errors import UsageError
    from gatecert.store import open_runs
    from gatecert.store.records import RunState
    from gatecert.store.runs import as_run

    with open_runs(out) as runs:
        info = runs.get(run_id or _latest(runs))
        if info.scope.command != "certify":
            name = info.scope.command
            raise UsageError(
                f"run {info.id} is of `gatecert {info.scope}`; {name}*.json in {out} holds it"
            )
        stored = runs.load(info.id)
    if info.state is not RunState.FINISHED:
        done, tasks = len(stored.verdicts), len(stored.tasks.mine)
        say(f"run {info.id} is {info.state.value}: {done} of {tasks} verdicts, partial figures")
    return certify(as_run(stored))


def _latest(runs: Runs) -> str:
    from gatecert.errors import UsageError

    found = [info.id for info in runs.all() if info.scope.command == "certify"]
    if not found:
        raise UsageError(f"{runs.path}: it holds no run of certify")
    return found[-1]
