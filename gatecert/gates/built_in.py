"""Gates that need no table: the oracle and the presets.

They are named, and asked whom they can judge, in the supervisor; it is the warm server that
prepares them. What they import (torch, for the most part) is imported there.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatecert.gates.base import Gate, PreparedGate
from gatecert.gates.presets.file import read_presets
from gatecert.gates.records import ORACLE
from gatecert.subjects import Subject


def built_in_names() -> tuple[str, ...]:
    """The oracle, and the presets in the order of their file."""
    return (ORACLE, *read_presets()["preset"])


@dataclass(frozen=True, slots=True)
class BuiltInGate:
    """A built-in gate, imported when it is needed."""

    name: str

    def applies_to(self, subject: Subject) -> str | None:
        """It needs an operation; a preset says itself what else."""
        if subject.operation is None:
            return "it has no operation, so there are no inputs and no reference"
        return None if self.name == ORACLE else self._load().applies_to(subject)

    def prepare(self, subject: Subject, *, seed: int, quick: bool) -> PreparedGate:
        """As the gate itself."""
        return self._load().prepare(subject, seed=seed, quick=quick)

    def _load(self) -> Gate:
        if self.name == ORACLE:
            from gatecert.gates.oracle import OracleGate

            return OracleGate()
        from gatecert.gates.presets.gate import get_preset

        return get_preset(self.name)
