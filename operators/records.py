"""Records of the operator catalogue: edits, sites, examples, operators.

An operator is data plus one function. It looks at the syntax of one kernel and yields the
places where one edit recreates a bug that real kernels have had.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from gatecert.operators.facts.kernel import KernelSyntax


class ObservableBy(str, enum.Enum):
    """What kind of evidence can show that a planted bug is there."""

    VALUES = "values"
    """An output differs beyond rounding on some input of the domain."""
    BOUNDS = "bounds"
    """A lane reads or writes outside its buffer, or reads a lane that was masked off."""
    REPEAT = "repeat"
    """Two runs on the same input differ in bits."""
    RACE = "race"
    """Programs race; visible to a race detector or under another order."""
    FAR_SPAN = "far_span"
    """Only offsets past 2^31 show it."""
    DEVICE = "device"
    """Only a real device shows it (precision modes, barriers, alignment)."""


class Reveal(str, enum.Enum):
    """Conditions on the input that make a planted bug visible."""

    ANY = "any"
    """Any input."""
    TAIL = "tail"
    """A size that is no multiple of the block."""
    SHORT = "short"
    """A size far below the block."""
    SEVERAL_BLOCKS = "several_blocks"
    """A loop that runs at least twice (better three times)."""
    ALL_NEGATIVE = "all_negative"
    """Rows whose values are all negative."""
    NEGATIVE = "negative"
    """At least some negative values."""
    RISING = "rising"
    """A running maximum that rises from tile to tile."""
    LARGE_MAGNITUDE = "large_magnitude"
    """Values whose exponential overflows."""
    LARGE_OFFSET = "large_offset"
    """A mean far from zero."""
    NEAR_ZERO = "near_zero"
    """Values so small that epsilon matters."""
    SEVERAL_ROWS = "several_rows"
    """More than one row, batch or head."""
    NON_SQUARE = "non_square"
    """Dims that differ from one another."""
    MASKED_ROWS = "masked_rows"
    """Rows that are wholly masked or -inf."""
    STRIDED = "strided"
    """A non-contiguous layout."""


class Edit(msgspec.Struct, frozen=True, order=True):
    """Replace `text[start:end]` of a module's source by `text` (offsets in characters)."""

    start: int
    end: int
    text: str


class Site(msgspec.Struct, frozen=True):
    """One place where an operator applies, and what it would plant there.

    `variant` tells apart several mutants of one operator at one place. `scored` is False for
    the detection ladder (graded constants below 1e-2), which never enters a kill rate.
    An empty `observable_by` says that no run can show the bug (padding that is never used).
    """

    edits: tuple[Edit, ...]
    line: int
    detail: str
    observable_by: tuple[ObservableBy, ...]
    reveal: tuple[Reveal, ...]
    variant: str = ""
    scored: bool = True


class Example(msgspec.Struct, frozen=True):
    """A kernel and every mutant that the operator must plant in it, as whole kernel texts.

    Texts are Python source of a `@triton.jit` function, dedented; tests plant the operator in
    `source` and compare the resulting texts, in order, with `mutants`.
    """

    source: str
    mutants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """One kind of bug and the rule that plants it."""

    name: str
    """Stable kebab-case name, part of every mutant id."""
    bug_class: str
    """Row of the bug taxonomy (docs/operators.md), e.g. `mask-missing`."""
    summary: str
    """One sentence: what is planted."""
    evidence: str
    """Where real kernels had it (repository and issue or pull request), or `textbook`."""
    find: Callable[[KernelSyntax], Iterable[Site]]
    applies: tuple[Example, ...]
    does_not_apply: tuple[str, ...]
    version: int = 1
    """Raised whenever the rule plants something else than before."""
