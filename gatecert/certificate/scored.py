"""A mutant under one gate, with all that its place in the certificate follows from."""

from __future__ import annotations

from dataclasses import dataclass

from gatecert.campaign.records import Status
from gatecert.diagnosis.records import Evidence
from gatecert.gates.records import Verdict
from gatecert.mutants.records import Accepted, Mutant


@dataclass(frozen=True, slots=True)
class Scored:
    """A mutant with its status and verdict under one gate, and the original's verdict."""

    mutant: Mutant
    status: Status
    verdict: Verdict | None
    original: Verdict | None
    reach: frozenset[str] = frozenset()
    """Kernels whose launch runs the mutated function, or that a mutated launcher launches."""
    oracle: Verdict | None = None
    ignored: str = ""
    """Why a person ignores it."""
    accepted: Accepted | None = None
    """That a person accepts it as a survivor."""
    same_as: str = ""
    same_on_launches: bool = False
    explanation: Evidence | None = None
