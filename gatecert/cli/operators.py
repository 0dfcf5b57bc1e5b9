"""`gatecert operators`: the catalogue of planted bugs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from gatecert.cli import options

if TYPE_CHECKING:
    from gatecert.operators.records import Operator


@click.command("operators")
@click.option("--explain", metavar="NAME", help="One operator with its examples.")
@click.option("--markdown", is_flag=True, help="The whole catalogue, as docs/operators.md has it.")
@click.argument("names", nargs=-1, metavar="")
@options.json_option
def command(explain: str | None, markdown: bool, names: Sequence[str], as_json: bool) -> int:
    """List the mutation operators, or explain one."""
    if names:
        raise click.UsageError(
            f"`gatecert operators` takes no names: write --explain {names[0]} for one operator"
        )
    import msgspec

    from gatecert.operators.registry import all_operators, get_operator
    from gatecert.reports.catalogue import explain_operator, render_catalogue
    from gatecert.reports.tables import Table
    from gatecert.reports.terminal import render_table

    chosen = (get_operator(explain),) if explain else all_operators()
    if as_json:
        document = [_document(operator) for operator in chosen]
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document)).decode() + "\n")
    elif markdown:
        sys.stdout.write(render_catalogue(chosen))
    elif explain:
        click.echo(explain_operator(chosen[0]))
    else:
        rows = tuple((o.name, o.bug_class, o.summary) for o in chosen)
        click.echo(render_table(Table("Operators", ("operator", "bug class", "plants"), rows)))
    return 0


def _document(operator: Operator) -> dict[str, object]:
    return {
        "name": operator.name,
        "bug_class": operator.bug_class,
        "summary": operator.summary,
        "evidence": operator.evidence,
        "version": operator.version,
        "applies": [
            {"source": example.source, "mutants": list(example.mutants)}
            for example in operator.applies
        ],
        "does_not_apply": list(operator.does_not_apply),
    }
