"""The tables of a certificate as rows of text; terminal and markdown only lay them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from gatecert.campaign.records import Status
from gatecert.certificate.records import Certificate, Counts, GateScore, Group, Survivor
from gatecert.gates.records import Worst
from gatecert.gates.wiring.weaknesses import NamedWeakness
from gatecert.mutants.suppression import ignore_comment
from gatecert.statistics import Rate


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column names and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def gates_of(certificate: Certificate) -> tuple[GateScore, ...]:
    """Every gate of the run, the chosen one first."""
    chosen = GateScore(
        gate=certificate.gate,
        **{
            field: getattr(certificate, field)
            for field in GateScore.__struct_fields__
            if field != "gate"
        },
    )
    return (chosen, *certificate.beside)


def gate_table(certificate: Certificate) -> Table:
    """One row per gate: correct code, code no gate may accept, mutants."""
    rows = []
    for score in gates_of(certificate):
        controls, adversaries = score.controls, score.adversaries
        rows.append(
            (
                score.gate,
                f"{controls.rejected} of {controls.runs}",
                str(controls.distinct),
                percent(controls.rejected_kernels.high),
                f"{adversaries.accepted} of {adversaries.total}",
                interval(score.kill_rate),
                percent(score.detection_rate.value),
                percent(score.macro_kill_rate),
            )
        )
    columns = (
        "gate",
        "controls rejected",
        "distinct",
        "upper bound",
        "adversaries accepted",
        "kill rate [95%]",
        "with crashes, timeouts",
        "mean over classes",
    )
    return Table("Gates", columns, tuple(rows))


def status_table(certificate: Certificate) -> Table:
    """One row per gate: mutants by status."""
    fields = Counts.__struct_fields__
    rows = tuple(
        (score.gate, *(str(getattr(score.mutants, field)) for field in fields))
        for score in gates_of(certificate)
    )
    return Table("Mutants", ("gate", *(field.replace("_", " ") for field in fields)), rows)


def class_table(certificate: Certificate) -> Table:
    """Kill rates by bug class, gates side by side."""
    return _side_by_side(certificate, "bug class", lambda score: score.by_class)


def operator_table(certificate: Certificate) -> Table:
    """Kill rates by mutation operator, gates side by side."""
    return _side_by_side(certificate, "operator", lambda score: score.by_operator)


def subject_table(certificate: Certificate) -> Table:
    """Kill rates by subject, gates side by side."""
    return _side_by_side(certificate, "subject", lambda score: score.by_subject)


def ladder_table(certificate: Certificate) -> Table:
    """The detection ladder: graded constants that stand in no kill rate."""
    return _side_by_side(certificate, "rung", lambda score: score.ladder, total=False)


def _side_by_side(
    certificate: Certificate,
    what: str,
    groups: Callable[[GateScore], Mapping[str, Group]],
    *,
    total: bool = True,
) -> Table:
    scores = gates_of(certificate)
    columns = (what, "mutants", *(score.gate for score in scores))
    by_gate = [groups(score) for score in scores]
    rows = [
        (name, str(group.mutants.total), *(share(found[name].mutants) for found in by_gate))
        for name, group in by_gate[0].items()
    ]
    if total:
        counts = [score.mutants for score in scores]
        rows.append(("all", str(counts[0].total), *(share(count) for count in counts)))
    title = f"Killed of scored, by {what}" if total else "Detection ladder, in no kill rate"
    return Table(title, columns, tuple(rows))


def timing_line(certificate: Certificate) -> str:
    """Where the time went, dearest part first."""
    parts = sorted(certificate.timings_s.items(), key=lambda part: -part[1])
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in parts)


def survivor_lines(survivor: Survivor) -> list[str]:
    """What is known of a survivor, without its diff."""
    lines = [
        survivor.id,
        f"  planted: {survivor.detail}",
        f"  reason:  {survivor.reason.value}",
    ]
    if survivor.worst is not None:
        lines.append(f"  worst:   {worst_element(survivor.worst)}")
    elif survivor.margin:
        lines.append(f"  worst:   error is {survivor.margin:.3g} of its allowance")
    if survivor.case:
        lines.append(f"  case:    {survivor.case}")
    if survivor.oracle_case and survivor.oracle_case != survivor.case:
        lines.append(f"  killed:  by the oracle on {survivor.oracle_case}")
    if survivor.reveal:
        lines.append(f"  reveal:  {', '.join(tag.value for tag in survivor.reveal)}")
    if survivor.path:
        place = f"{survivor.path}:{survivor.line}"
        lines.append(f"  ignore:  with {ignore_comment(survivor.operator)} at {place}")
    return lines


def selection_line(certificate: Certificate) -> str:
    """What part of the mutants the figures are about; "" where it is all of them."""
    chosen = certificate.selection
    parts = []
    if chosen.since:
        parts.append(f"only mutants on lines changed since {chosen.since}")
    if chosen.sample_of:
        parts.append(f"a sample of {chosen.sample} of {chosen.sample_of} mutants")
    if chosen.not_reached:
        parts.append(f"{chosen.not_reached} mutants not reached in {chosen.time_budget_s:g} s")
    return "; ".join(parts)


def weakness_lines(weakness: NamedWeakness, *, subject: bool) -> list[str]:
    """A weakness, what shows it, and what mends it; `subject` names the subject too."""
    where = f"{weakness.subject}: " if subject else ""
    return [
        f"{where}{weakness.weakness.value}: {weakness.weakness.sentence}",
        f"  seen:    {weakness.evidence}",
        f"  remedy:  {weakness.weakness.remedy}",
    ]


def weaknesses_title(score: GateScore) -> str:
    """The heading over what a gate cannot see."""
    return f"What {score.gate} cannot see, from evidence ({len(score.weaknesses)})"


def worst_element(worst: Worst) -> str:
    """The worst element's error against its allowance, and where it is."""
    error = "not finite" if worst.error is None else f"{worst.error:.3g}"
    return (
        f"error {error} against allowance {worst.allowance:.3g} at {worst.output}"
        f"{list(worst.index)}"
    )


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
        f"{name}: {result.status.value}: {result.detail}"
        for name, by_gate in certificate.results.items()
        if (result := by_gate[certificate.gate]).status in (Status.CRASHED, Status.TIMEOUT)
    )
    found = (
        ("gatecert contradicts itself; please report this", certificate.contradictions),
        ("Controls rejected or without a verdict", rejections),
        ("Adversaries accepted", accepted),
        (f"Crashed or timed out under {certificate.gate}", unanswered),
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


def percent(value: float | None) -> str:
    """`97.3%`, or `-` where nothing is known."""
    return "-" if value is None else f"{100 * value:.1f}%"


def interval(rate: Rate) -> str:
    """`97.3% [90.1, 99.8] n=204`."""
    if rate.value is None:
        return "-"
    if rate.low is None or rate.high is None:
        return f"{percent(rate.value)} n={rate.n}"
    return f"{percent(rate.value)} [{100 * rate.low:.1f}, {100 * rate.high:.1f}] n={rate.n}"


def share(counts: Counts) -> str:
    """`12/13 (92.3%)`: killed of scored."""
    if not counts.scored:
        return "-"
    return f"{counts.killed}/{counts.scored} ({percent(counts.killed / counts.scored)})"
