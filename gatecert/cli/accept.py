"""`gatecert accept`: write down that a survivor is one to live with, and why."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from gatecert.cli import options


@click.command("accept", short_help="Accept survivors, with a reason, in a reviewed file.")
@click.argument("mutants", metavar="MUTANT...", nargs=-1, required=True)
@click.option("--reason", required=True, help="Why it may survive.")
@click.option("--by", default="", help="Who says so.")
@options.config_option
@options.json_option
def command(
    mutants: tuple[str, ...], reason: str, by: str, config_path: Path | None, as_json: bool
) -> int:
    """Write into gatecert-accepted.toml that each MUTANT (ids or globs) may survive, and why.

    It is run and counts as before; reports tell it apart, and a ratchet does not fail on it. Once
    the function that it mutates changes, it is open again.
    """
    import msgspec

    from gatecert.cli.setup import read_config, say, write_file
    from gatecert.cli.show import find_mutants
    from gatecert.config import CORPUS_CONFIG
    from gatecert.errors import ExitCode, UsageError
    from gatecert.mutants.acceptance import ACCEPTED_FILE, code_of, parse_accepted, with_entry

    config = read_config(config_path)
    if Path(config.path) == CORPUS_CONFIG:
        raise UsageError(
            "survivors of the built-in corpus are not yours to accept: name a --config"
        )
    if not reason.strip():
        raise UsageError("--reason is empty: say why it may survive")
    path = Path(config.root) / ACCEPTED_FILE
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    parse_accepted(str(path), text)
    found = [mutant for wanted in mutants for mutant in find_mutants(config, wanted)]
    for mutant in found:
        code = code_of(mutant, Path(mutant.path).read_text(encoding="utf-8"))
        text = with_entry(text, mutant.id, reason.strip(), by.strip(), code)
    write_file(path, text)
    if as_json:
        ids = {mutant.id for mutant in found}
        said = [one for one in parse_accepted(str(path), text) if one.mutant in ids]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(said)).decode() + "\n")
    for mutant in found:
        say(f"accepted: {mutant.id}")
    say(f"{path}: for review")
    return int(ExitCode.MET)
