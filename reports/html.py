"""The report as one page of HTML that stands by itself: no script, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gatecert.certificate.records import Certificate, GateScore, Survivor
from gatecert.reports import cards, tables
from gatecert.reports.notes import notes
from gatecert.reports.why import evidence_lines, limit_line
from gatecert.wording import count

_TEMPLATE = "report.html.jinja"
_KINDS = {"+": "added", "-": "removed", "@": "place"}

Limits = Mapping[str, Mapping[str, float | None]]
"""Detection limits by subject and dtype; None: no error that was planted is seen."""


@dataclass(frozen=True, slots=True)
class Card:
    """A survivor as the page shows it; `diff` is lines with their kinds."""

    survivor: Survivor
    verdicts: tuple[str, ...]
    evidence: tuple[str, ...]
    limits: tuple[str, ...]
    diff: tuple[tuple[str, str], ...]


def render_html(certificate: Certificate, limits: Limits | None = None) -> str:
    """The certificate as one page; `limits` are those of the chosen gate, where they are known."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    scores = tables.gates_of(certificate)
    found = (
        tables.gate_table(certificate),
        tables.class_table(certificate),
        tables.subject_table(certificate),
        tables.ladder_table(certificate),
        tables.status_table(certificate),
    )
    return environment.get_template(_TEMPLATE).render(
        certificate=certificate,
        subjects=count(len(certificate.subjects), "subject"),
        tables=[table for table in found if table.rows],
        weaknesses=list(_weaknesses(certificate, scores)),
        gates=[
            (score, [_card(certificate, one, score, limits or {}) for one in score.survivors])
            for score in scores
        ],
        notes=list(notes(certificate)),
    )


def _weaknesses(
    certificate: Certificate, scores: tuple[GateScore, ...]
) -> Iterator[tuple[str, list[list[str]]]]:
    several = len(certificate.subjects) > 1
    for score in scores:
        if score.weaknesses:
            lines = [tables.weakness_lines(one, subject=several) for one in score.weaknesses]
            yield tables.weaknesses_title(score), [list(map(str.strip, one)) for one in lines]


def _card(certificate: Certificate, survivor: Survivor, score: GateScore, limits: Limits) -> Card:
    results = certificate.results.get(survivor.id, {})
    return Card(
        survivor,
        tuple(cards.result_line(gate, result) for gate, result in results.items()),
        tuple(evidence_lines(survivor.evidence)) if survivor.evidence is not None else (),
        tuple(_limits(certificate, survivor, score, limits)),
        tuple((_KINDS.get(line[:1], "same"), line) for line in survivor.diff.splitlines()),
    )


def _limits(
    certificate: Certificate, survivor: Survivor, score: GateScore, limits: Limits
) -> Iterator[str]:
    if line := limit_line(survivor.kernel, score):
        yield line
    if score.gate == certificate.gate:
        for dtype, limit in limits.get(survivor.subject, {}).items():
            said = "no error that was planted" if limit is None else f"{limit:g}"
            yield f"smallest relative error seen in {dtype or 'results'}: {said}"
