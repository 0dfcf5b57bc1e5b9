"""Which case shows a survivor, by what is known of it already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatecert.certificate.records import Survivor
from gatecert.remedies.records import Untreated
from gatecert.witness.records import Hunt, NoWitness, Witness


def witnesses_of(survivors: Iterable[Survivor], hunts: Iterable[Hunt] = ()) -> dict[str, str]:
    """By survivor a case on which it fails a check of the oracle: the one on which the oracle
    rejected it, else what a search has found. Those without one are left out."""
    found = {hunt.mutant: hunt.found for hunt in hunts}
    cases: dict[str, str] = {}
    for one in survivors:
        hunted = found.get(one.id)
        if one.evidence is not None and one.evidence.hunt is not None and hunted is None:
            hunted = one.evidence.hunt.found
        if one.oracle_case:
            cases[one.id] = one.oracle_case
        elif isinstance(hunted, Witness):
            cases[one.id] = hunted.case
    return cases


def untreated(
    survivors: Iterable[Survivor], witnesses: Mapping[str, str], hunts: Iterable[Hunt] = ()
) -> tuple[Untreated, ...]:
    """The survivors without a witness, each with what is known of why."""
    tried = {
        hunt.mutant: hunt.found.tried.cases for hunt in hunts if isinstance(hunt.found, NoWitness)
    }
    return tuple(
        Untreated(
            one.id,
            f"a search through {tried[one.id]} cases found no witness"
            if one.id in tried
            else "the oracle accepts it, and nobody has looked outside its cases",
        )
        for one in survivors
        if one.id not in witnesses
    )
