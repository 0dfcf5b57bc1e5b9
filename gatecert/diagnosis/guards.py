"""What guards see of a call that was run in several manners."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.noise import difference
from gatecert.diagnosis.outputs import outputs_of
from gatecert.diagnosis.records import Guard
from gatecert.diagnosis.replaying import Manner, Ran
from gatecert.oracle.expectation import Expected

MANNERS = tuple(Manner)
"""A call is run in all of them; `again` right after the plain run, in the same process."""
_ORDERS = (Manner.REVERSED, Manner.INTERLEAVED, Manner.LATE)


def guards_in(
    call: Kept, runs: Mapping[Manner, Ran], written: Collection[int], expected: Expected | None
) -> dict[Guard, str]:
    """The guards that see something in these runs of one candidate, each with what it saw.

    Runs in other manners are held against the candidate's own plain one: what is wrong there
    already shows in the results.
    """
    plain = runs[Manner.PLAIN]
    results = outputs_of(call, plain, written)

    def differs(manner: Manner) -> bool:
        other = runs[manner]
        if other.hung or plain.hung:
            return False
        if other.error != plain.error:
            return True
        return difference(results, outputs_of(call, other, written), expected).beyond_noise

    found: dict[Guard, str] = {}
    if plain.findings:
        first = plain.findings[0]
        lanes = sum(one.lanes for one in plain.findings)
        found[Guard.BOUNDS] = f"{first.kind.value} on {first.argument}, {lanes} lanes in all"
    for manner in _ORDERS:
        if differs(manner):
            found[Guard.RACE] = f"other results {manner.value}"
            break
    # What a bad load reads is poisoned too.
    if not plain.findings and differs(Manner.POISONED):
        found[Guard.POISON] = "other results where what nobody wrote is NaN"
    if differs(Manner.AGAIN):
        found[Guard.REPEAT] = "other results in a second call"
    changed = sorted(set(plain.changed) - set(written))
    if changed:
        found[Guard.INPUTS] = f"argument number {changed[0] + 1} is changed"
    return found
