"""The decision table: from evidence to causes. docs/survivors.md prints it, a test holds each row.

Nothing is run or read here: equal evidence gives equal causes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gatecert.diagnosis.records import Because, Cause, Diagnosis, Evidence
from gatecert.diagnosis.sentences import said_of
from gatecert.witness.records import Witness


class Facts(msgspec.Struct, frozen=True):
    """What the table asks; None: not known."""

    seen: bool
    """Calls of the gate were captured and run again."""
    reached: bool | None
    """A changed line ran."""
    beyond_noise: bool | None
    """Results of the gate's own calls differ by more than rounding."""
    witness: bool
    """Elsewhere they do."""
    passes: bool | None
    """The gate's own comparison lets the witness pass."""
    guard_here: bool
    """A guard sees it on the gate's own inputs."""
    guard_elsewhere: bool
    """A guard sees it on other inputs."""


class Row(msgspec.Struct, frozen=True):
    """Causes where the facts named in `when` are so; the first row that fits decides."""

    when: Mapping[str, bool]
    causes: tuple[Cause, ...]


TABLE = (
    Row({"seen": False}, (Cause.UNEXPLAINED,)),
    Row({"reached": False, "witness": True, "passes": True}, (Cause.UNREACHED, Cause.TOLERATED)),
    Row({"reached": False, "witness": True}, (Cause.UNREACHED,)),
    Row({"reached": False, "guard_elsewhere": True}, (Cause.UNREACHED, Cause.UNOBSERVED)),
    Row({"reached": False}, (Cause.UNREACHED,)),
    Row(
        {"beyond_noise": True, "witness": True, "passes": False},
        (Cause.TOLERATED, Cause.UNINFECTED),
    ),
    Row({"beyond_noise": True}, (Cause.TOLERATED,)),
    Row({"witness": True, "passes": True}, (Cause.UNINFECTED, Cause.TOLERATED)),
    Row({"witness": True}, (Cause.UNINFECTED,)),
    Row({"guard_here": True}, (Cause.UNOBSERVED,)),
    Row({"guard_elsewhere": True}, (Cause.UNOBSERVED, Cause.UNINFECTED)),
    Row({}, (Cause.NO_WITNESS,)),
)


def facts_of(evidence: Evidence) -> Facts:
    """The table's questions, answered."""
    seen = evidence.propagated is not None or evidence.reached is not None
    propagated = evidence.propagated
    return Facts(
        seen=seen,
        reached=evidence.reached.run if evidence.reached is not None else None,
        beyond_noise=propagated.beyond_noise > 0 if propagated is not None else None,
        witness=evidence.hunt is not None and isinstance(evidence.hunt.found, Witness),
        passes=evidence.witness_passes,
        guard_here=bool(evidence.guards),
        guard_elsewhere=bool(evidence.guards_outside),
    )


def causes_of(facts: Facts) -> tuple[Cause, ...]:
    """The causes of the first row that fits."""
    return next(row.causes for row in TABLE if _fits(row, facts))


def decide(evidence: Evidence) -> Diagnosis:
    """Why the gate accepted the mutant, by the evidence alone."""
    causes = causes_of(facts_of(evidence))
    return Diagnosis(tuple(Because(cause, *said_of(cause, evidence)) for cause in causes))


def _fits(row: Row, facts: Facts) -> bool:
    return all(getattr(facts, name) is wanted for name, wanted in row.when.items())
