"""Why a survivor survived, in lines of text: causes, what was measured, what to add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gatecert.certificate.records import GateScore, Survivor
from gatecert.diagnosis.records import Cause, Evidence, Infected, Propagated, Reached
from gatecert.wording import count


def why_lines(survivor: Survivor) -> list[str]:
    """The causes with what they rest on, then the remedies; empty where it was not explained."""
    lines = []
    for number, because in enumerate(survivor.because):
        head = "why:  " if number == 0 else "also: "
        cause = "" if number == 0 else f"{because.cause.value}: "
        lines.append(f"  {head}   {cause}{because.said}")
    if survivor.evidence is not None:
        lines += [f"  seen:    {line}" for line in evidence_lines(survivor.evidence)]
    return lines + [
        f"  remedy:  {line}" for text in survivor.remedies for line in text.splitlines()
    ]


def reasons_line(score: GateScore) -> str:
    """How many survivors have which reason first; "" where none was explained."""
    if not any(survivor.because for survivor in score.survivors):
        return ""
    found = Counter(survivor.reason for survivor in score.survivors)
    return ", ".join(f"{found[cause]} {cause.value}" for cause in Cause if found[cause])


def card_limit_lines(survivor: Survivor, score: GateScore) -> list[str]:
    """The detection limit in the survivor's kernel, on the card of one that was explained."""
    line = limit_line(survivor.kernel, score) if survivor.because else ""
    return [f"  limit:   {line}"] if line else []


def evidence_lines(evidence: Evidence) -> Iterator[str]:
    """What was measured, a line each."""
    captured = evidence.captured
    cut = f", {captured.cut} too many to keep" if captured.cut else ""
    yield f"{count(captured.calls, 'call')} of the entry, {captured.kept} run again{cut}"
    if evidence.reached is not None:
        yield _reached(evidence.reached)
    if evidence.infected is not None:
        yield _infected(evidence.infected)
    if evidence.propagated is not None:
        yield _propagated(evidence.propagated)
    if evidence.witness_passes is not None:
        said = "lets the witness pass" if evidence.witness_passes else "says no to the witness"
        yield f"the gate's own comparison {said}"


def limit_line(kernel: str, score: GateScore) -> str:
    """How small an error the gate sees in a kernel, by graded constants; "" where it has none."""
    said = [
        f"{rung} {group.mutants.killed}/{group.mutants.scored}"
        for rung, group in score.ladder_by_kernel.get(kernel, {}).items()
        if group.mutants.scored
    ]
    return f"graded constants seen in {kernel}, of those planted: {', '.join(said)}" if said else ""


def _reached(reached: Reached) -> str:
    masks = {True: "with lanes masked off", False: "with no lane ever masked off", None: ""}
    ran = "ran" if reached.run else "never ran"
    launched = count(reached.launches, "launch")
    return f"the changed line {ran} {masks[reached.masked]}".rstrip() + f", in {launched}"


def _infected(infected: Infected) -> str:
    first = f", first of {infected.first}" if infected.first else ""
    left = f"{infected.differing} of {count(infected.launches, 'launch')}"
    return f"{left} left other bits in their tensors{first}"


def _propagated(seen: Propagated) -> str:
    beyond = f", {seen.beyond_noise} by more than rounding" if seen.differing else ""
    return f"{seen.differing} of {count(seen.calls, 'call')} gave other bits{beyond}"
