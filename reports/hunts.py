"""What a hunt for a witness did and found, in lines of text."""

from __future__ import annotations

from collections.abc import Mapping

from gatecert.reports.cards import worst_element
from gatecert.witness.records import Hunt, HuntEnd, NoWitness, SmallDomain, Stage, Tried, Witness

_ENDS = {
    HuntEnd.FOUND: "",
    HuntEnd.CASES: "; it ended with its number of cases",
    HuntEnd.SECONDS: "; it ended with its time",
    HuntEnd.SPACE: "; nothing else in the domain is small enough to run",
}
_STAGES = {
    Stage.RUNS: "of the gate's own in every configuration and order",
    Stage.CALLED: "that its tags call for",
    Stage.ONE_AXIS: "with one axis varied",
    Stage.TWO_AXES: "with two axes varied",
    Stage.RANDOM: "drawn from the whole domain",
    Stage.SMALL: "of small sizes",
    Stage.NEARER: "to bring the witness nearer",
}


def hunt_lines(hunt: Hunt) -> list[str]:
    """A hunt of one mutant."""
    found = hunt.found
    lines = [hunt.mutant]
    if isinstance(found, Witness):
        lines += _witness_lines(found)
    else:
        lines.append(f"  no witness: {_difference(found)}")
        if found.small is not None:
            lines.append(f"  {small_line(found.small)}")
    lines += _tried_lines(hunt, found.tried)
    if isinstance(found, Witness):
        lines.append(f"  gatecert replay '{found.case}' --mutant '{hunt.mutant}'")
    return lines


def _witness_lines(found: Witness) -> list[str]:
    why = f"{found.reason.value}: {found.detail}" if found.reason.value else found.detail
    lines = [f"  witness: {found.case}", f"  fails:   {why}"]
    if found.worst is not None:
        lines.append(f"  worst:   {worst_element(found.worst)}")
    changes = ", ".join(f"{one.axis} {one.own} -> {one.witness}" for one in found.changes)
    return [*lines, f"  changed: {changes}", f"  nearest: {found.nearest}"]


def small_line(small: SmallDomain) -> str:
    """Up to which sizes that was everything."""
    return (
        f"no difference over all {', '.join(small.dims)} <= {small.bound} ({small.cases} cases), "
        "which is no proof"
    )


def _difference(found: NoWitness) -> str:
    tried = found.tried
    if not tried.other_bits:
        return "outputs are the original's, bit for bit, on all that was tried"
    return (
        f"other bits on {tried.other_bits} cases, the largest error {tried.largest:.3g} of its "
        f"allowance on {tried.largest_case}"
    )


def _tried_lines(hunt: Hunt, tried: Tried) -> list[str]:
    stages = ", ".join(f"{count} {_STAGES[stage]}" for stage, count in tried.by_stage.items())
    lines = [
        f"  tried:   {tried.cases} cases outside {hunt.own_cases} of {hunt.gate} under seed "
        f"{hunt.seed} in {hunt.seconds:.0f} s: {stages or 'none'}{_ENDS[tried.end]}",
        f"  axes:    {_counted(tried.by_axis)}",
    ]
    if tried.impossible:
        lines.append(f"  skipped: {tried.impossible} cases that cannot be made")
    if tried.set_asides:
        first = tried.set_aside[0]
        lines.append(f"  aside:   {tried.set_asides} cases, first {first.case}: {first.why}")
    return lines


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{axis} {count}" for axis, count in counts.items()) or "none"
