"""`gatecert gates`: the gates that are known here."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.config import Config


_WIDTH = 70


@click.command("gates")
@options.config_option
@options.json_option
def command(config_path: Path | None, as_json: bool) -> int:
    """List the built-in gates and those of the configuration."""
    import msgspec

    from gatecert.cli.setup import read_config
    from gatecert.reports.tables import Table
    from gatecert.reports.terminal import render_table

    rows = tuple(_rows(read_config(config_path)))
    if as_json:
        document = [dict(zip(("name", "kind", "what"), row, strict=True)) for row in rows]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    else:
        wrapped = tuple(
            (name, kind, textwrap.fill(what, _WIDTH)) if what else (name, kind, what)
            for name, kind, what in rows
        )
        click.echo(render_table(Table("Gates", ("gate", "kind", "what it does"), wrapped)))
    return 0


def _rows(config: Config) -> Iterator[tuple[str, str, str]]:
    from gatecert.gates.presets.gate import presets
    from gatecert.gates.registry import METAMORPHIC, ORACLE

    what = "inputs from the schema, fp64 reference, rounding-interval test, memory guards"
    yield ORACLE, "oracle", what
    yield METAMORPHIC, "oracle", "relations between outputs for related inputs; no reference"
    for preset in presets():
        yield preset.name, "preset", f"{preset.data.summary} ({preset.data.source})"
    for name, settings in config.oracles.items():
        kind = settings.comparator.get("type", "RoundingInterval")
        what = f"strategy {settings.strategy}, {kind}"
        yield name, "oracle", what + f", {settings.tolerances}" if settings.tolerances else what
    for name, table in config.gates.items():
        what = table.callable or " ".join(table.command or table.args) or table.around
        yield name, table.kind, what
