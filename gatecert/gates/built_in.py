"""Gates that need no table: the oracle, the relations and the presets.

They are named, and asked whom they can judge, in the supervisor; it is the warm server that
prepares them. What they import (torch, for the most part) is imported there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gatecert.gates.base import CaseGate, Gate, PreparedGate
from gatecert.gates.presets.file import read_presets
from gatecert.gates.records import ORACLE
from gatecert.subjects import Subject

if TYPE_CHECKING:
    from gatecert.oracle.case import Case

METAMORPHIC = "metamorphic"


def built_in_names() -> tuple[str, ...]:
    """The oracle, the relations, and the presets in the order of their file.

    `oracle:STRATEGY` is built in too: the oracle under another strategy.
    """
    return (ORACLE, METAMORPHIC, *read_presets()["preset"])


def strategy_of(name: str) -> str | None:
    """`boundary` of `oracle:boundary`."""
    gate, colon, strategy = name.partition(":")
    return strategy if gate == ORACLE and colon else None


@dataclass(frozen=True, slots=True)
class BuiltInGate:
    """A built-in gate, imported when it is needed."""

    name: str

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation; others than the oracle say themselves what else."""
        if subject.operation is None:
            return "it has no operation, so there are no inputs and no reference"
        return None if self.name == ORACLE else self.load().applies_to(subject)

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedGate:
        """As the gate itself."""
        return self.load().prepare(subject, seed=seed, quick=quick)

    def cases(self, subject: Subject, *, seed: int, quick: bool) -> tuple[Case, ...]:
        """As the gate itself; none where its inputs are no cases."""
        gate = self.load()
        return gate.cases(subject, seed=seed, quick=quick) if isinstance(gate, CaseGate) else ()

    @property
    def _is_oracle(self) -> bool:
        return self.name == ORACLE or strategy_of(self.name) is not None

    def load(self) -> Gate:
        """The gate itself, imported."""
        if self._is_oracle:
            from gatecert.gates.oracle import OracleGate

            strategy = strategy_of(self.name)
            return OracleGate() if strategy is None else OracleGate(self.name, strategy)
        if self.name == METAMORPHIC:
            from gatecert.gates.metamorphic import MetamorphicGate

            return MetamorphicGate()
        from gatecert.gates.presets.gate import get_preset

        return get_preset(self.name)
