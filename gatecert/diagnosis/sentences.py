"""The sentences of a diagnosis, each from the evidence of its cause."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gatecert.diagnosis.records import Cause, Evidence, Guard, GuardSeen
from gatecert.witness.records import NoWitness, Witness
from gatecert.wording import count, listed

Said: TypeAlias = tuple[str, tuple[str, ...], tuple[Guard, ...]]
"""A sentence, the blind axes, the guards that see it."""

_MOST_AXES = 4


def said_of(cause: Cause, evidence: Evidence) -> Said:
    """What the evidence says of this cause."""
    return _BY_CAUSE[cause](evidence)


def _unreached(evidence: Evidence) -> Said:
    captured = evidence.captured
    launches = evidence.reached.launches if evidence.reached is not None else 0
    where = f"{count(captured.kept, 'call')} run again, {count(launches, 'launch')}"
    if not captured.calls and not captured.launches:
        where = "the gate neither calls the entry nor launches its kernels"
    return f"the changed line never ran: {where}", _axes(evidence), ()


def _tolerated(evidence: Evidence) -> Said:
    seen = evidence.propagated
    if seen is None or not seen.beyond_noise:
        return "the gate's own comparison lets the witness pass", (), ()
    said = f"{seen.beyond_noise} of {count(seen.calls, 'call')} give other results"
    if seen.error is not None and seen.own_error is not None:
        said += f": the largest error is {seen.error:.3g}, the original's {seen.own_error:.3g}"
    elif seen.difference is not None:
        said += f": the largest difference is {seen.difference:.3g}"
    if evidence.allowed is not None:
        said += f"; the worst uses {evidence.allowed:.3g} of what the gate allows"
    return said, (), ()


def _uninfected(evidence: Evidence) -> Said:
    seen = evidence.propagated
    same = "results are the original's, bit for bit, on all of the gate's inputs"
    if seen is not None and seen.differing:
        same = f"{seen.differing} of {count(seen.calls, 'call')} differ, in rounding alone"
    if seen is not None and seen.beyond_noise:
        same = "other inputs show more"
    witness = _witness(evidence)
    if witness is None:
        elsewhere = [one for one in evidence.guards_outside if one.case]
        where = f", on {elsewhere[0].case}" if elsewhere else ""
        return f"nothing sees it on the gate's own inputs, a guard does elsewhere{where}", (), ()
    told = "; ".join(axis.said for axis in evidence.blind[:_MOST_AXES])
    return f"{same}; {witness.case} shows it: {told}", _axes(evidence), ()


def _unobserved(evidence: Evidence) -> Said:
    seen = evidence.guards or evidence.guards_outside
    guards = tuple(dict.fromkeys(one.guard for one in seen))
    told = listed([f"{one.guard.value} ({one.detail})" for one in _first_of_each(seen)])
    where = "the gate's own inputs" if evidence.guards else "other inputs"
    return f"no result shows it; on {where} guards see it: {told}", (), guards


def _no_witness(evidence: Evidence) -> Said:
    if evidence.hunt is None or not isinstance(evidence.hunt.found, NoWitness):
        return "results are the original's; no operation declares where to look further", (), ()
    tried = evidence.hunt.found.tried
    by_stage = ", ".join(f"{n} {stage.value}" for stage, n in tried.by_stage.items())
    other = f"; {count(tried.other_bits, 'case')} gave other bits" if tried.other_bits else ""
    seed, small = evidence.hunt.seed, evidence.hunt.found.small
    every = f"; all {', '.join(small.dims)} <= {small.bound} are among them" if small else ""
    return (
        f"{count(tried.cases, 'case')} tried ({by_stage}; seed {seed}), "
        f"none shows it{other}{every}",
        (),
        (),
    )


def _unexplained(evidence: Evidence) -> Said:
    why = evidence.captured.why_none or "no call of the entry was seen"
    return f"{why}: what the gate does with the code is not known", (), ()


_BY_CAUSE: Mapping[Cause, Callable[[Evidence], Said]] = {
    Cause.UNREACHED: _unreached,
    Cause.TOLERATED: _tolerated,
    Cause.UNINFECTED: _uninfected,
    Cause.UNOBSERVED: _unobserved,
    Cause.NO_WITNESS: _no_witness,
    Cause.UNEXPLAINED: _unexplained,
}


def _witness(evidence: Evidence) -> Witness | None:
    found = evidence.hunt.found if evidence.hunt is not None else None
    return found if isinstance(found, Witness) else None


def _axes(evidence: Evidence) -> tuple[str, ...]:
    return tuple(axis.name for axis in evidence.blind)


def _first_of_each(seen: tuple[GuardSeen, ...]) -> tuple[GuardSeen, ...]:
    return tuple({one.guard: one for one in reversed(seen)}.values())[::-1]
