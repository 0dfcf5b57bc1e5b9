"""The report as a markdown page, complete: nothing is cut for length."""

from __future__ import annotations

from collections.abc import Iterator

from tabulate import tabulate

from gatecert.certificate.records import Certificate, GateScore
from gatecert.reports import cards, tables
from gatecert.reports.notes import notes
from gatecert.reports.tables import Table
from gatecert.reports.why import card_limit_lines, reasons_line


def render_markdown(certificate: Certificate) -> str:
    """The certificate as one page."""
    return "\n".join(_lines(certificate)) + "\n"


def _lines(certificate: Certificate) -> Iterator[str]:
    environment = certificate.environment
    yield f"# gatecert: gate `{certificate.gate}`"
    yield ""
    quick = ", quick" if certificate.quick else ""
    yield (
        f"Lane {certificate.lane}, seed {certificate.seed}{quick}; "
        f"gatecert {environment.gatecert}, Python {environment.python}, "
        f"torch {environment.torch}, triton {environment.triton}, {environment.platform}. "
        f"Operators `{environment.operators[:12]}`, labels `{certificate.labels_sha256[:12]}`."
    )
    yield ""
    if certificate.interrupted:
        yield "**The run was interrupted: its figures are partial.**\n"
    part = tables.selection_line(certificate)
    if part:
        yield f"**Part of a run: {part}.**\n"
    for table in (
        tables.gate_table(certificate),
        tables.class_table(certificate),
        tables.operator_table(certificate),
        tables.subject_table(certificate),
        tables.ladder_table(certificate),
        tables.status_table(certificate),
    ):
        yield from _table(table)
    for score in tables.gates_of(certificate):
        yield from _weaknesses(score, subject=len(certificate.subjects) > 1)
    for score in tables.gates_of(certificate):
        yield from _survivors(score)
    for title, lines in notes(certificate):
        yield f"## {title} ({len(lines)})"
        yield ""
        yield from (f"- {line}" for line in lines)
        yield ""
    yield "## Time"
    yield ""
    yield from (f"- {line}" for line in tables.timing_lines(certificate.timings_s))


def _weaknesses(score: GateScore, *, subject: bool) -> Iterator[str]:
    if score.weaknesses:
        yield f"## {tables.weaknesses_title(score)}"
        yield ""
        for weakness in score.weaknesses:
            name, *rest = tables.weakness_lines(weakness, subject=subject)
            yield f"- {name}"
            yield from (f"  - {line.strip()}" for line in rest)
        yield ""


def _survivors(score: GateScore) -> Iterator[str]:
    yield f"## Survivors of `{score.gate}` ({len(score.survivors)})"
    yield ""
    told = cards.shared_facts(score.survivors)
    yield from (f"- {line.strip()}" for line in cards.fact_lines(told))
    yield ""
    if by_reason := reasons_line(score):
        yield f"{by_reason}\n"
    for survivor in score.survivors:
        name, *rest = cards.survivor_lines(survivor, told)
        rest += card_limit_lines(survivor, score)
        yield f"### `{name}`"
        yield ""
        yield from (f"- {line.strip()}" for line in rest)
        yield ""
        yield f"```diff\n{survivor.diff.rstrip()}\n```"
        yield ""


def _table(table: Table) -> Iterator[str]:
    if table.rows:
        yield f"## {table.title}"
        yield ""
        yield tabulate(table.rows, headers=table.columns, tablefmt="github", disable_numparse=True)
        note = table.note.replace("\n", "  \n")  # Two blanks are markdown's line break.
        yield f"\n{note}\n" if note else ""
