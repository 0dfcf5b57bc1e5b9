"""What a hunt asks of whoever runs its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from gatecert.gates.oracle import PreparedCase
from gatecert.gates.records import Verdict


class CaseRuns(Protocol):
    """Runs original and mutant on cases, and says where the mutant fails."""

    def originals(self, cases: Sequence[PreparedCase]) -> list[Verdict]:
        """A quick look at each case of the original."""
        ...

    def mutants(self, cases: Sequence[PreparedCase], bits: Mapping[str, str]) -> list[Verdict]:
        """Cases of the mutant, up to the first that fails; `bits` are the original's by case."""
        ...

    def confirmed(self, case: PreparedCase) -> Verdict:
        """The original once more, on a case on which the mutant failed."""
        ...
