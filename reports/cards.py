"""What is known of one mutant, in lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from gatecert.campaign.records import Status
from gatecert.certificate.known import ON_IT
from gatecert.certificate.records import Result, Survivor
from gatecert.diagnosis.records import Cause
from gatecert.gates.records import Reason, Worst
from gatecert.mutants.suppression import ignore_comment
from gatecert.reports.why import why_lines

_MEANS = {
    Status.UNVIABLE: "it compiles for no signature of the declared domain",
    Status.EQUIVALENT: "its compiled code is the original's for every signature of the declared "
    "domain, so that no gate can tell them apart and it is in no rate",
    Status.NOT_OBSERVABLE: "by its label, this lane cannot show it; it is in no rate",
    Status.NOT_RUN: "a sample, a time budget or an interrupt left it out",
}
"""What a status says of a mutant, where its name does not."""


def shared_facts(survivors: Iterable[Survivor]) -> list[str]:
    """What is recorded of the original and stands on several cards: to be told once, above them."""
    found = Counter(fact for survivor in survivors for fact in survivor.known)
    return [fact for fact, cards in found.items() if cards > 1 and not fact.startswith(ON_IT)]


def open_first(survivors: Iterable[Survivor]) -> tuple[Survivor, ...]:
    """Those that nobody accepts before the others."""
    return tuple(sorted(survivors, key=lambda one: bool(one.accepted) and not one.reopened))


def survivor_count(survivors: Sequence[Survivor]) -> str:
    """`8`, or `8, 2 of them accepted`."""
    accepted = sum(bool(one.accepted) and not one.reopened for one in survivors)
    return f"{len(survivors)}, {accepted} of them accepted" if accepted else str(len(survivors))


def fact_lines(facts: Iterable[str]) -> list[str]:
    """Facts as a card has them."""
    return [f"  known:   {fact}" for fact in facts]


def survivor_lines(survivor: Survivor, told: Collection[str] = ()) -> list[str]:
    """What is known of a survivor, without its diff and without facts that are told above."""
    lines = [
        survivor.id,
        f"  planted: {survivor.detail}",
        f"  reason:  {survivor.reason.value}",
    ]
    if survivor.accepted:
        state = "reopened, its code has changed since" if survivor.reopened else "accepted"
        lines.append(f"  {state}: {survivor.accepted}")
    lines += why_lines(survivor)
    lines += fact_lines(fact for fact in survivor.known if fact not in told)
    # Of equal bits the error is what the original has too: its own rounding.
    own = survivor.reason is Cause.UNINFECTED
    whose = ", the original's own rounding: the outputs are equal, bit for bit" if own else ""
    if survivor.worst is not None:
        lines.append(f"  worst:   {worst_element(survivor.worst)}{whose}")
    elif survivor.margin:
        lines.append(f"  worst:   error is {survivor.margin:.3g} of its allowance{whose}")
    if survivor.case:
        lines.append(f"  case:    {survivor.case}")
    if survivor.oracle_case and survivor.oracle_case != survivor.case:
        lines.append(f"  killed:  by the oracle on {survivor.oracle_case}")
    if survivor.reveal:
        lines.append(f"  reveal:  {', '.join(tag.value for tag in survivor.reveal)}")
    if survivor.path:
        lines.append(ignore_line(survivor.id, survivor.path, survivor.line))
    return lines


def ignore_line(mutant_id: str, path: str, line: int) -> str:
    """How to ignore the mutant, and where."""
    return f"  ignore:  with {ignore_comment(mutant_id)} at {path}:{line}"


def result_line(gate: str, result: Result) -> str:
    """`oracle: killed: values: 3 of 9 elements are wrong, on CASE`, for every status in words."""
    said = ": ".join(part for part in (result.reason.value, result.detail) if part)
    if result.status is Status.DUPLICATE:
        parts = [f"its compiled code is that of {result.same_as}"]
    elif result.status in _MEANS:
        parts = [_MEANS[result.status], *_judged_all_the_same(result, said)]
    elif result.reason is Reason.NONE and result.case:
        parts = [said, f"closest to its allowance on {result.case}"]
    else:
        parts = [", ".join(filter(None, [said, f"on {result.case}" if result.case else ""]))]
    status = result.status.value.replace("_", " ")
    return ": ".join(filter(None, [gate, status, "; ".join(filter(None, parts))]))


def worst_element(worst: Worst) -> str:
    """The worst element's error against its allowance, and where it is."""
    error = "not finite" if worst.error is None else f"{worst.error:.3g}"
    return (
        f"error {error} against allowance {worst.allowance:.3g} at {worst.output}"
        f"{list(worst.index)}"
    )


def _judged_all_the_same(result: Result, said: str) -> list[str]:
    """What the gate said of a mutant that is in no rate, if it was asked."""
    if result.reason is not Reason.NONE:
        return [f"run all the same, it was rejected: {said}, on {result.case}"]
    if result.case:
        return [f"run all the same, it was accepted, closest to its allowance on {result.case}"]
    return [f"run all the same: {said}"] if said else []
