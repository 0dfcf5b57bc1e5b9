"""`gatecert operations`: what the oracle has a schema and a reference for."""

from __future__ import annotations

import sys

import click

from gatecert.cli import options


@click.command("operations")
@options.json_option
def command(as_json: bool) -> int:
    """List the built-in operations with their inputs and outputs."""
    import msgspec

    from gatecert.oracle.operations import Operation, operations
    from gatecert.reports.tables import Table
    from gatecert.reports.terminal import render_table

    def document(operation: Operation) -> dict[str, object]:
        return {
            "name": operation.name,
            "summary": operation.summary,
            "inputs": {spec.name: " ".join(spec.dims) for spec in operation.tensors},
            "scalars": [spec.name for spec in operation.scalars],
            "outputs": [" ".join(spec.dims) for spec in operation.outputs],
        }

    if as_json:
        text = msgspec.json.encode([document(operation) for operation in operations()])
        sys.stdout.write(msgspec.json.format(text).decode() + "\n")
        return 0
    rows = tuple(
        (
            operation.name,
            ", ".join(
                (
                    *(f"{spec.name}[{' '.join(spec.dims)}]" for spec in operation.tensors),
                    *(spec.name for spec in operation.scalars),
                )
            ),
            ", ".join(f"[{' '.join(spec.dims)}]" for spec in operation.outputs),
        )
        for operation in operations()
    )
    click.echo(render_table(Table("Operations", ("operation", "inputs", "outputs"), rows)))
    return 0
