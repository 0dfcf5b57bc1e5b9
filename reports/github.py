"""What GitHub Actions shows of a run: annotations on lines, and a page for the job's summary.

Formats: GitHub's "Workflow commands for GitHub Actions" (annotations, their escapes, and the
limit of ten warnings a step) and its limit of 1 MiB for a step's summary.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path, PurePath

from tabulate import tabulate

from gatecert.certificate.ratchet import Held
from gatecert.certificate.records import Certificate, Survivor
from gatecert.reports import cards, tables

MOST_ANNOTATIONS = 10
_MOST_SURVIVORS = 20
_MOST_BYTES = 1 << 20
_CUT = "\n\n... cut at GitHub's limit; the whole report is report.md\n"


def annotation_lines(
    certificate: Certificate,
    *,
    root: Path,
    workspace: Path,
    only: Collection[str] | None = None,
) -> list[str]:
    """A `::warning` line for each survivor of the chosen gate, ten at most, and a last line that
    says how many more there are.

    Args:
        root: folder that the certificate's paths are relative to.
        workspace: folder that GitHub's paths are relative to; a file outside is not named.
        only: the ids to annotate (those that a ratchet does not know); None means all.
    """
    survivors = [s for s in certificate.survivors if only is None or s.id in only]
    lines = [_warning(certificate.gate, s, root, workspace) for s in survivors[:MOST_ANNOTATIONS]]
    if len(survivors) > MOST_ANNOTATIONS:
        more = len(survivors) - MOST_ANNOTATIONS
        lines.append(f"::notice title=gatecert::{more} more survivors: see the job's summary")
    return lines


def step_summary(certificate: Certificate, held: Held | None = None) -> str:
    """Markdown for `$GITHUB_STEP_SUMMARY`: what decided the exit code, then the survivors."""
    text = "\n".join(_summary(certificate, held)) + "\n"
    if len(text.encode()) <= _MOST_BYTES:
        return text
    room = _MOST_BYTES - len(_CUT.encode())
    return text.encode()[:room].decode("utf-8", "ignore") + _CUT


def escaped(text: str) -> str:
    """A message as workflow commands take it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """A property's value as workflow commands take it."""
    return escaped(text).replace(":", "%3A").replace(",", "%2C")


def _warning(gate: str, survivor: Survivor, root: Path, workspace: Path) -> str:
    properties = {"title": f"{gate} accepts a planted bug"}
    known = survivor.path and not survivor.path.startswith("module:")
    path = _below(root / survivor.path, workspace) if known else ""
    if path:
        properties = {"file": path, "line": str(survivor.line), **properties}
    head = ",".join(f"{name}={escaped_property(value)}" for name, value in properties.items())
    message = (
        f"{survivor.operator}: {survivor.detail} ({survivor.reason.value}). "
        f"`gatecert show {survivor.id}` shows the diff"
    )
    return f"::warning {head}::{escaped(message)}"


def _below(path: Path, workspace: Path) -> str:
    real, folder = path.resolve(), workspace.resolve()
    return PurePath(real.relative_to(folder)).as_posix() if real.is_relative_to(folder) else ""


def _summary(certificate: Certificate, held: Held | None) -> Iterator[str]:
    yield f"## gatecert: gate `{certificate.gate}`"
    yield ""
    if certificate.selection.note:
        yield certificate.selection.note
        return
    part = tables.selection_line(certificate)
    if part:
        yield f"Part of a run: {part}.\n"
    if certificate.interrupted:
        yield "**The run was interrupted: its figures are partial.**\n"
    yield from (f"- **not met:** {line}" for line in certificate.unmet)
    if held is not None:
        yield from (f"- {line}" for line in held.remarks)
    yield ""
    table = tables.gate_table(certificate)
    yield tabulate(table.rows, headers=table.columns, tablefmt="github", disable_numparse=True)
    yield f"\n{table.note}\n" if table.note else ""
    for rejection in certificate.controls.rejections[:_MOST_SURVIVORS]:
        said = f"{rejection.outcome} {rejection.detail} {rejection.case}"
        yield f"- correct code: `{rejection.id}`: {' '.join(said.split())}"
    for name in certificate.adversaries.accepted_ids[:_MOST_SURVIVORS]:
        yield f"- accepted, and no gate may: `{name}`"
    yield ""
    yield from _survivors(certificate, held)


def _survivors(certificate: Certificate, held: Held | None) -> Iterator[str]:
    survivors = list(certificate.survivors)
    if held is not None:
        news = {*held.new_survivors, *held.lost_kills}
        survivors.sort(key=lambda survivor: survivor.id not in news)
    yield f"### Survivors ({len(survivors)})"
    yield ""
    told = cards.shared_facts(survivors[:_MOST_SURVIVORS])
    yield from (f"- {line.strip()}" for line in cards.fact_lines(told))
    yield ""
    for survivor in survivors[:_MOST_SURVIVORS]:
        name, *rest = cards.survivor_lines(survivor, told)
        yield f"<details><summary><code>{name}</code></summary>\n"
        yield from (f"- {line.strip()}" for line in rest)
        yield f"\n````diff\n{survivor.diff.rstrip()}\n````\n</details>\n"
    if len(survivors) > _MOST_SURVIVORS:
        yield f"... and {len(survivors) - _MOST_SURVIVORS} more in the report"
