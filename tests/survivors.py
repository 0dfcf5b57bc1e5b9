"""The frozen survivor situations of `tests/testdata/survivors`: read, and planted by exact text."""

from __future__ import annotations

import enum
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent / "testdata" / "survivors"
FROZEN = FOLDER / "situations.toml"


class WhySurvived(str, enum.Enum):
    """The five reasons, in the order in which they are asked; defined in the folder's README."""

    UNREACHED = "unreached"
    """No call of the gate runs the changed line."""
    TOLERATED = "tolerated"
    """Outputs differ in bits on the gate's own inputs, and it accepts them."""
    UNINFECTED = "uninfected"
    """All outputs are the same in bits on the gate's own inputs, and differ on others."""
    UNOBSERVED = "unobserved"
    """Wrong, but no input shows it in values: a guard sees it."""
    NO_WITNESS = "no witness found"
    """No input shows a difference, and no guard sees one."""


class Situation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One mutant under one gate, and why it survives.

    The mutant is `file` (relative to the folder) with the one line `before` turned into `after`;
    `operator` is the one that plants the same, "" where none does. `reasons` holds the first
    reason and, where there is one, the second. `witness` is the id of a case on which the
    mutant shows: in values, or for `unobserved` to one of the `guards`.
    """

    id: str
    subject: str
    gate: str
    file: str
    before: str
    after: str
    operator: str
    reasons: tuple[WhySurvived, ...]
    why: str
    witness: str = ""
    blind_axes: tuple[str, ...] = ()
    guards: tuple[str, ...] = ()

    @property
    def line(self) -> int:
        """The number of the changed line, from 1."""
        return original(self).split("\n").index(self.before) + 1


class Facts(msgspec.Struct, frozen=True):
    """What was seen of one situation; fields of a witness are None where it has none.

    `*_on_gate` are about the inputs that the gate gave the entry, `beyond_noise` about differences
    that rounding does not explain. `comparator_accepts` says what the gate's own comparison
    makes of the mutant's results on the witness, where the gate is a function or a script.
    """

    id: str
    accepts_original: bool
    accepts_mutant: bool
    calls: int
    reached: bool
    same_inputs_on_gate: bool
    same_bits_on_gate: bool
    beyond_noise_on_gate: bool
    seen_on_gate: tuple[str, ...] = ()
    same_bits_on_witness: bool | None = None
    beyond_noise_on_witness: bool | None = None
    comparator_accepts: bool | None = None
    seen_by: tuple[str, ...] = ()
    original_seen_by: tuple[str, ...] = ()
    sampled: int = 0
    sampled_differ: tuple[str, ...] = ()


class _Frozen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    situation: tuple[Situation, ...]


def situations() -> tuple[Situation, ...]:
    """All of them, in the order of the file."""
    return msgspec.toml.decode(FROZEN.read_bytes(), type=_Frozen).situation


def original(situation: Situation) -> str:
    """The text of the file that the situation changes."""
    return (FOLDER / situation.file).read_text(encoding="utf-8")


def mutant(situation: Situation) -> str:
    """That text with the one line changed.

    Raises:
        ValueError: there is not exactly one such line, or the change is none.
    """
    lines = original(situation).split("\n")
    if lines.count(situation.before) != 1 or situation.before == situation.after:
        raise ValueError(f"{situation.id}: the edit does not apply exactly once")
    lines[lines.index(situation.before)] = situation.after
    return "\n".join(lines)
