"""Records of a hunt: what was asked, what was tried, and what came of it."""

from __future__ import annotations

import enum

import msgspec

from gatecert.gates.records import Reason, Worst
from gatecert.lanes.records import Finding

RUNS = "runs"
"""The axis of a case that the gate has, run in every configuration and order of programs."""


class Stage(str, enum.Enum):
    """Why a case is tried."""

    RUNS = "runs"
    """One of the gate's own, in every configuration and order: the gate takes turns."""
    CALLED = "called"
    """The mutant's reveal tags call for it."""
    ONE_AXIS = "one_axis"
    """One of the gate's own with one axis changed."""
    TWO_AXES = "two_axes"
    """One of the gate's own with two axes changed."""
    RANDOM = "random"
    """Drawn from the whole declared domain."""
    SMALL = "small"
    """Every combination of small sizes."""
    NEARER = "nearer"
    """A witness with one axis taken back, to find the nearest."""


class HuntEnd(str, enum.Enum):
    """Why a hunt ended."""

    FOUND = "found"
    """There is a witness."""
    CASES = "cases"
    """So many cases as were allowed were tried."""
    SECONDS = "seconds"
    """The time was up."""
    SPACE = "space"
    """No further case was found in the domain that is small enough to run."""


class HuntBudget(msgspec.Struct, frozen=True):
    """How much one hunt may cost, whichever is reached first. What is tried follows from mutant
    and seed alone, and `seconds` only cuts it short."""

    seconds: float = 60.0
    cases: int = 500


class Change(msgspec.Struct, frozen=True):
    """One axis on which a witness is not like the gate's own case nearest to it."""

    axis: str
    own: str
    witness: str


class SetAside(msgspec.Struct, frozen=True):
    """A case that says nothing of the mutant: the original fails on it, or the lane does."""

    case: str
    why: str


class Tried(msgspec.Struct, frozen=True):
    """What a hunt did.

    `by_axis` counts the cases in which that axis was changed on purpose (several in some), and
    `by_stage` each case once. On `other_bits` cases outputs differed in bits; of those that passed
    the largest error is `largest` of its allowance. `impossible` cases could not be made; the
    first of the `set_asides` are told.
    """

    cases: int
    end: HuntEnd
    by_stage: dict[Stage, int] = {}
    by_axis: dict[str, int] = {}
    other_bits: int = 0
    largest: float = 0.0
    largest_case: str = ""
    impossible: int = 0
    set_aside: tuple[SetAside, ...] = ()
    set_asides: int = 0


class Witness(msgspec.Struct, frozen=True, tag="witness"):
    """A case outside the gate's own on which the original passes every check and the mutant does
    not; `changes` are against `nearest`, the gate's own case that differs from it on fewest axes.

    `reason` is the check that failed; it is empty where the mutant's process died or hung, which
    `detail` then says. A replay of `case` proves by `inputs_sha256` that inputs are the same.
    """

    case: str
    nearest: str
    changes: tuple[Change, ...]
    stage: Stage
    reason: Reason
    detail: str
    tried: Tried
    worst: Worst | None = None
    findings: tuple[Finding, ...] = ()
    inputs_sha256: str = ""


class SmallDomain(msgspec.Struct, frozen=True):
    """All sizes of `dims` up to `bound` were tried, so many cases, and there was no difference. It
    is no proof of equivalence."""

    dims: tuple[str, ...]
    bound: int
    cases: int


class NoWitness(msgspec.Struct, frozen=True, tag="no_witness"):
    """Nothing that was tried tells the mutant from its original beyond noise. Of masks, bounds and
    indices `small` says up to which sizes that was everything."""

    tried: Tried
    small: SmallDomain | None = None


class Hunt(msgspec.Struct, frozen=True):
    """The hunt of one mutant outside one gate's cases; only `seconds` may differ in a repeat."""

    mutant: str
    gate: str
    seed: int
    own_cases: int
    found: Witness | NoWitness
    seconds: float = 0.0
