"""What a reader must know besides the figures, as headed lists of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate, GateScore, Result
from gatecert.reports.tables import gates_of

_UNANSWERED = "Died, timed out, or touched memory out of bounds unreported by {gate}"
_NO_ANSWER = (Status.CRASHED, Status.TIMEOUT, Status.UNREPORTED)


def notes(certificate: Certificate) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Headed lists of what a reader must know besides the figures; empty ones are left out."""
    rejections = tuple(
        f"{score.gate}: {r.id}: {r.outcome} {r.reason.value} {r.detail} {r.case}".rstrip()
        for score in gates_of(certificate)
        for r in score.controls.rejections
    )
    accepted = tuple(
        f"{score.gate}: {name}{_because(score, name)}"
        for score in gates_of(certificate)
        for name in score.adversaries.accepted_ids
    )
    unanswered = tuple(
        _unanswered(name, result)
        for name, by_gate in certificate.results.items()
        if (result := by_gate[certificate.gate]).status in _NO_ANSWER
    )
    found = (
        ("gatecert contradicts itself; please report this", certificate.contradictions),
        ("Controls rejected or without a verdict", rejections),
        ("Adversaries accepted", accepted),
        (_UNANSWERED.format(gate=certificate.gate), unanswered),
        (
            "Inconclusive: no verdict that counts",
            tuple(f"{u.id}: {u.why}" for u in certificate.inconclusive),
        ),
        (
            "Not observable on this lane",
            tuple(f"{u.id}: {u.why}" for u in certificate.not_observable),
        ),
        ("Held against an earlier run", tuple(_against(certificate))),
        (
            "Not mutated",
            tuple(f"{s.name}: {s.reason}" for s in certificate.skipped),
        ),
        (
            "Ignored, with a reason",
            tuple(f"{i.mutant}: {i.reason} ({i.path}:{i.line})" for i in certificate.ignored),
        ),
        ("Not tested", certificate.not_tested),
    )
    return tuple((title, lines) for title, lines in found if lines)


def _unanswered(name: str, result: Result) -> str:
    """That the gate passed while a guard saw more is all in the detail."""
    said = () if result.status is Status.UNREPORTED else (result.status.value,)
    return ": ".join(part for part in (name, *said, result.detail) if part)


def _against(certificate: Certificate) -> Iterator[str]:
    against = certificate.against
    if against is None:
        return
    versions = [f"{name} {a} -> {b}" for name, (a, b) in against.environment.items()]
    what = ", ".join(versions) or "same versions"
    yield f"{against.compared} answers on controls compared; {what}"
    yield from (f"changed besides: {line}" for line in against.changed_sources)
    for change in against.changes:
        yield f"{change.gate}: {change.id}: {change.what} {change.before} -> {change.after}"
    if not against.changes:
        yield "no verdict and no bit of an output changed"


def _because(score: GateScore, adversary: str) -> str:
    why = score.adversaries.because.get(adversary, ())
    return f" (by {', '.join(weakness.value for weakness in why)})" if why else ""
