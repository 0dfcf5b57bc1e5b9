"""The tables of a certificate as rows of text; terminal and markdown only lay them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from gatecert.campaign.records import PROCESSES, SHARDS, STAGES, USUAL_LANE, Status
from gatecert.certificate.doubts import proves_nothing, rejected_originals
from gatecert.certificate.records import Certificate, Counts, GateScore, Group
from gatecert.gates.wiring.weaknesses import NamedWeakness
from gatecert.statistics import Rate
from gatecert.wording import count

_CORRECT_CODE = ("controls rejected", "distinct", "upper bound", "adversaries accepted")
_LEGEND = (
    "distinct = controls with other bits than the original's; upper bound = the share of kernels "
    "whose controls it may reject, at 95%"
)
_SCORED = frozenset({Status.KILLED, Status.SURVIVED})
_LEFT_OUT = (
    Status.UNVIABLE,
    Status.EQUIVALENT,
    Status.DUPLICATE,
    Status.NOT_OBSERVABLE,
    Status.IGNORED,
)
"""What is in no gate's figures, as a rule whichever gate it is."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, column names and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """Lines to stand below it."""


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
    whole = not certificate.selection.only
    rows = tuple(
        (_marked(score), *(_of_correct_code(score) if whole else ()), *_of_mutants(score))
        for score in gates_of(certificate)
    )
    columns = (
        "gate",
        *(_CORRECT_CODE if whole else ()),
        "kill rate [95%]",
        "with crashes, timeouts",
        "mean over classes",
    )
    notes = [_LEGEND if whole else "", _footnotes(certificate)]
    return Table("Gates", columns, rows, "\n".join(filter(None, notes)))


def _of_correct_code(score: GateScore) -> tuple[str, ...]:
    controls, adversaries = score.controls, score.adversaries
    return (
        f"{controls.rejected} of {controls.runs}",
        "-" if controls.distinct is None else str(controls.distinct),
        percent(controls.rejected_kernels.high),
        f"{adversaries.accepted} of {adversaries.total}",
    )


def _of_mutants(score: GateScore) -> tuple[str, ...]:
    if proves_nothing(score):
        return ("-", "-", "-")
    return (
        interval(score.kill_rate),
        percent(score.detection_rate.value),
        percent(score.macro_kill_rate),
    )


def status_table(certificate: Certificate) -> Table:
    """One row per gate: mutants by status."""
    fields = Counts.__struct_fields__
    rows = tuple(
        (_marked(score), *(str(getattr(score.mutants, field)) for field in fields))
        for score in gates_of(certificate)
    )
    columns = ("gate", *(field.replace("_", " ") for field in fields))
    return Table("Mutants", columns, rows, _footnotes(certificate))


def class_table(certificate: Certificate) -> Table:
    """Kill rates by bug class, gates side by side, and how the numbers add up."""
    table = _side_by_side(certificate, "bug class", lambda score: score.by_class)
    left_out = ", ".join(map(_in_words, _LEFT_OUT))
    sum_of = f"mutants = left out ({left_out}) + scored + those named after"
    return replace(table, note="\n".join(filter(None, [sum_of, table.note])))


def operator_table(certificate: Certificate) -> Table:
    """Kill rates by mutation operator, gates side by side."""
    return _side_by_side(certificate, "operator", lambda score: score.by_operator)


def subject_table(certificate: Certificate) -> Table:
    """Kill rates by subject, gates side by side."""
    return _side_by_side(certificate, "subject", lambda score: score.by_subject, by_subject=True)


def ladder_table(certificate: Certificate) -> Table:
    """The detection ladder: graded constants that stand in no kill rate."""
    return _side_by_side(certificate, "rung", lambda score: score.ladder, total=False)


def _side_by_side(
    certificate: Certificate,
    what: str,
    groups: Callable[[GateScore], Mapping[str, Group]],
    *,
    total: bool = True,
    by_subject: bool = False,
) -> Table:
    scores = gates_of(certificate)
    by_gate = [groups(score) for score in scores]
    nothing = [proves_nothing(score) for score in scores]
    rows = []
    for name in by_gate[0]:
        idle = [proves_nothing(score, name) for score in scores] if by_subject else nothing
        rows.append(_row(name, [found[name].mutants for found in by_gate], idle))
    if total:
        rows.append(_row("all", [score.mutants for score in scores], nothing))
    title = f"Killed of scored, by {what}" if total else "Detection ladder, in no kill rate"
    columns = (what, "mutants", "left out", *map(_marked, scores))
    return Table(title, columns, tuple(rows), _footnotes(certificate))


def _row(name: str, by_gate: Sequence[Counts], nothing: Sequence[bool]) -> tuple[str, ...]:
    """A group's mutants, how many of them no gate is scored on, and the others by gate; `-` where
    a gate's kills prove nothing."""
    left_out = {
        status: min(getattr(counts, status.value) for counts in by_gate) for status in _LEFT_OUT
    }
    shares = (
        "-" if idle else share(counts, left_out)
        for counts, idle in zip(by_gate, nothing, strict=True)
    )
    return (name, str(by_gate[0].total), str(sum(left_out.values())), *shares)


def _marked(score: GateScore) -> str:
    """The gate's name, with its lane where that is not the usual one, and a mark where a footnote
    says that kills of it prove nothing."""
    name = score.gate if score.lane == USUAL_LANE else f"{score.gate} ({score.lane})"
    return f"{name}*" if rejected_originals(score) else name


def _footnotes(certificate: Certificate) -> str:
    return "\n".join(
        f"{_marked(score)} rejects the original of {', '.join(rejected)}: "
        "its kills there prove nothing"
        for score in gates_of(certificate)
        if (rejected := rejected_originals(score))
    )


def timing_lines(spent: Mapping[str, float]) -> list[str]:
    """Where the time went: by the clock, then what jobs and shards spent side by side."""
    clock = {name: spent[name] for name in STAGES if name in spent}
    lines = []
    if clock:
        total = spent.get("total", sum(clock.values()))
        clock["the rest"] = max(0.0, total - sum(clock.values()))
        lines.append(f"{total:.1f} s by the clock: {_seconds(clock)}")
    shards = {name: s for name, s in spent.items() if name.startswith(SHARDS)}
    jobs = {n: s for n, s in spent.items() if n not in {*shards, *STAGES, "total"}}
    for where, parts in (("all jobs while judging", jobs), ("shards", shards)):
        if parts:
            lines.append(f"added up over {where}: {_seconds(parts)}")
    return lines


def _seconds(parts: Mapping[str, float]) -> str:
    named = ((name.removeprefix(SHARDS).removeprefix(PROCESSES), s) for name, s in parts.items())
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in named)


def selection_line(certificate: Certificate) -> str:
    """What part of the mutants the figures are about; "" where it is all of them."""
    chosen = certificate.selection
    parts = []
    if chosen.only:
        mutants = count(chosen.only, "mutant")
        parts.append(f"only {mutants} by name, without benign rewrites and adversaries")
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


def share(counts: Counts, left_out: Mapping[Status, int] = MappingProxyType({})) -> str:
    """`12/13 (92.3%), 2 crashed`: killed of scored, then all others that are not left out."""
    scored = f"{counts.killed}/{counts.scored}"
    parts = [f"{scored} ({percent(counts.killed / counts.scored)})"] if counts.scored else []
    for status in Status:
        number = getattr(counts, status.value) - left_out.get(status, 0)
        if number and status not in _SCORED:
            parts.append(f"{number} {_in_words(status)}")
    return ", ".join(parts) or "-"


def _in_words(status: Status) -> str:
    return status.value.replace("_", " ")
