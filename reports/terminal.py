"""The report on a terminal; plain text without colour wherever the console is no terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rich.console import Console
from rich.text import Text
from tabulate import tabulate

from gatecert.certificate.records import Certificate, GateScore, Survivor
from gatecert.reports import cards, tables
from gatecert.reports.notes import notes
from gatecert.reports.tables import Table
from gatecert.reports.why import card_limit_lines, reasons_line
from gatecert.wording import count

_MOST_SURVIVORS = 40
_MOST_WEAKNESSES = 40
_MOST_BESIDE = 3
"""Survivors shown of a gate that only stands beside the chosen one."""
_MOST_LINES = 12
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_report(certificate: Certificate, console: Console) -> None:
    """Print the whole report, the grave things last, where a reader's eyes are."""
    _print(console, _headline(certificate))
    for table in (
        tables.class_table(certificate),
        tables.subject_table(certificate),
        tables.ladder_table(certificate),
        tables.status_table(certificate),
        tables.gate_table(certificate),
    ):
        if table.rows:
            _print_table(table, console)
    for score in tables.gates_of(certificate):
        _print_weaknesses(score, console, subject=len(certificate.subjects) > 1)
    for score in tables.gates_of(certificate):
        chosen = score.gate == certificate.gate
        _print_survivors(score, console, _MOST_SURVIVORS if chosen else _MOST_BESIDE)
    for title, lines in notes(certificate):
        _heading(console, f"{title} ({len(lines)})")
        for line in lines[:_MOST_LINES]:
            _print(console, f"  {line}")
        if len(lines) > _MOST_LINES:
            _print(console, f"  ... and {len(lines) - _MOST_LINES} more in the certificate")
    _heading(console, "Time")
    for line in tables.timing_lines(certificate.timings_s):
        _print(console, f"  {line}")


def render_table(table: Table) -> str:
    """A table as aligned plain text."""
    text: str = tabulate(
        table.rows, headers=table.columns, tablefmt="simple", disable_numparse=True
    )
    return text


def _headline(certificate: Certificate) -> str:
    environment = certificate.environment
    state = "interrupted run of " if certificate.interrupted else ""
    observable = certificate.observable
    part = tables.selection_line(certificate)
    return (
        f"{state}gate {certificate.gate} on {count(len(certificate.subjects), 'subject')}, lane "
        f"{certificate.lane}, seed {certificate.seed}{', quick' if certificate.quick else ''}; "
        f"gatecert {environment.gatecert}, torch {environment.torch}, "
        f"triton {environment.triton}\n"
        f"{observable.observable} of {observable.viable} viable mutants are observable here "
        f"({tables.percent(observable.share)})" + (f"\npart of a run: {part}" if part else "")
    )


def _print_weaknesses(score: GateScore, console: Console, *, subject: bool) -> None:
    if not score.weaknesses:
        return
    _heading(console, tables.weaknesses_title(score))
    for weakness in score.weaknesses[:_MOST_WEAKNESSES]:
        for line in tables.weakness_lines(weakness, subject=subject):
            _print(console, line)
    if len(score.weaknesses) > _MOST_WEAKNESSES:
        left = len(score.weaknesses) - _MOST_WEAKNESSES
        _print(console, f"... and {left} more in the report")


def _print_survivors(score: GateScore, console: Console, most: int) -> None:
    survivors = cards.open_first(score.survivors)
    _heading(console, f"Survivors of {score.gate} ({cards.survivor_count(survivors)})")
    if not survivors:
        _print(console, "  none")
    if by_reason := reasons_line(score):
        _print(console, f"  {by_reason}\n")
    told = cards.shared_facts(survivors[:most])
    for line in cards.fact_lines(told):
        _print(console, line)
    if told:
        _print(console, "")
    for survivor in survivors[:most]:
        print_survivor(survivor, console, told, card_limit_lines(survivor, score))
    if len(survivors) > most:
        _print(console, f"... and {len(survivors) - most} more in the report")


def print_survivor(
    survivor: Survivor, console: Console, told: Collection[str], more: Iterable[str] = ()
) -> None:
    """What is known of a survivor and was not told above, `more` of the gate, and its diff."""
    for line in (*cards.survivor_lines(survivor, told), *more):
        _print(console, line)
    print_diff(survivor.diff, console)


def print_diff(diff: str, console: Console) -> None:
    """A unified diff, indented, in the usual colours."""
    for line in diff.splitlines():
        _print(console, f"    {line}", _DIFF_STYLES.get(line[:1], ""))
    _print(console, "")


def _print_table(table: Table, console: Console) -> None:
    _heading(console, table.title)
    _print(console, render_table(table))
    if table.note:
        _print(console, table.note)


def _heading(console: Console, title: str) -> None:
    _print(console, f"\n{title}", "bold")


def _print(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style), soft_wrap=True)
