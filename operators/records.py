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
    from gatecert.operators.facts.launcher import LauncherSyntax


class Target(str, enum.Enum):
    """What an operator edits."""

    KERNEL = "kernel"
    """A `@triton.jit` function."""
    LAUNCHER = "launcher"
    """The Python function that launches kernels: buffers, grids, arguments."""


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
    NON_DEFAULT = "non_default"
    """An optional argument at another value than its default."""
    LARGE_SPAN = "large_span"
    """Offsets past the range of the integer type that holds them."""
    HALF_PRECISION = "half_precision"
    """A 16-bit floating-point format."""
    LONG = "long"
    """A sum of many values."""
    SEVERAL_PROGRAMS = "several_programs"
    """Several programs that write to one place."""
    REPEATED_INDICES = "repeated_indices"
    """Indices that occur more than once."""


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

    Texts are Python source of a `@triton.jit` function, dedented; for an operator that edits
    launchers, kernels with their launcher as the last function. Tests plant the operator in
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
    """The sites in a kernel; `no_sites` for an operator that edits launchers."""
    applies: tuple[Example, ...]
    does_not_apply: tuple[str, ...]
    version: int = 1
    """Raised whenever the rule plants something else than before."""
    find_in_launcher: Callable[[LauncherSyntax], Iterable[Site]] | None = None
    """The sites in a launcher, for an operator that edits launchers."""

    @property
    def target(self) -> Target:
        """What it edits."""
        return Target.KERNEL if self.find_in_launcher is None else Target.LAUNCHER


def no_sites(kernel: KernelSyntax) -> Iterable[Site]:
    """`find` of an operator that edits launchers."""
    return ()
