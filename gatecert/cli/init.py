"""`gatecert init`: draft a configuration for a repository."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.drafting import Draft


@click.command("init", short_help="Draft gatecert.toml for a repository.")
@click.argument(
    "root", metavar="[PATH]", default=".", type=click.Path(path_type=Path), required=False
)
@click.option("--force", is_flag=True, help="Replace a gatecert.toml that is there.")
@click.option("--dry-run", is_flag=True, help="Print the draft; write nothing.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of gatecert.toml instead.")
@options.json_option
def command(root: Path, force: bool, dry_run: bool, schema: bool, as_json: bool) -> int:
    """Draft gatecert.toml for the repository at PATH, by default the current folder.

    Kernels, the functions that launch them and the tests that import those are found in source
    text; nothing of it is imported or run. What is not certain is a comment in the draft.
    """
    from gatecert.cli.setup import say
    from gatecert.config import FILE_NAME

    if schema:
        from gatecert.schema import render_schema

        click.echo(render_schema(), nl=False)
        return 0
    check_folder(root, force or dry_run)
    from gatecert.drafting import draft

    drafted = draft(root)
    target = root / FILE_NAME
    if not dry_run:
        _write(target, drafted.config)
    if as_json:
        _print_json(drafted, target, written=not dry_run)
    elif dry_run:
        click.echo(drafted.config, nl=False)
    else:
        _print_summary(drafted, target)
    for skip in drafted.skipped:
        say(f"not in the draft: {skip.name}: {skip.reason}")
    return 0


def check_folder(root: Path, may_replace: bool) -> None:
    """Refuse a folder that is none, or that has a configuration already.

    Raises:
        UsageError: says which, and what to do.
    """
    from gatecert.config import find_config
    from gatecert.errors import UsageError

    if not root.is_dir():
        raise UsageError(f"{root}: not a folder")
    known = find_config(root)
    if known is not None and not may_replace:
        raise UsageError(
            f"{known} has a configuration already; --force writes a new gatecert.toml, --dry-run "
            "prints it"
        )


def _write(target: Path, text: str) -> None:
    from gatecert.errors import UsageError

    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror}") from None


def _print_summary(drafted: Draft, target: Path) -> None:
    click.echo(f"{target}: written")
    for subject in drafted.subjects:
        unsure = f"; perhaps {subject.guess}" if subject.guess else ""
        what = subject.guess if subject.sure else f"operation to be filled in{unsure}"
        click.echo(f"  subject {subject.name}: {subject.entry} ({what})")
    if drafted.tests:
        click.echo(f"  gate tests: pytest {' '.join(drafted.tests)}")
    else:
        click.echo("  no test file imports them: the draft has no gate of your own")
    if not drafted.tests and not any(subject.sure for subject in drafted.subjects):
        click.echo("Fill in an operation or a gate first: nothing can judge these subjects yet.")
    folder = "" if target.parent.resolve() == Path.cwd() else f" --config {target}"
    click.echo(f"Next: {drafted.next_command}{folder}")


def _print_json(drafted: Draft, target: Path, *, written: bool) -> None:
    import msgspec

    document = {
        "path": str(target),
        "written": written,
        "next": drafted.next_command,
        **msgspec.structs.asdict(drafted),
    }
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
