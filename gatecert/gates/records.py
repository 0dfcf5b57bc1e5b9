"""Records of what a gate said."""

from __future__ import annotations

import enum

import msgspec

from gatecert.gates.evidence import Evidence
from gatecert.gates.reads import GateReads
from gatecert.gates.suite.records import PytestBaseline
from gatecert.lanes.records import Finding

ORACLE = "oracle"


def is_oracle(gate: str) -> bool:
    """True for gatecert's own gate in any configuration; only there do guards decide."""
    return gate.partition("-")[0].partition(":")[0] == ORACLE


class GateOutcome(str, enum.Enum):
    """What a gate did with a candidate."""

    ACCEPTED = "accepted"
    """The gate said that the candidate is right."""
    REJECTED = "rejected"
    """The gate said, positively, that the candidate is wrong."""
    CRASHED = "crashed"
    """The gate's process died."""
    TIMEOUT = "timeout"
    """The gate did not answer in time, and not alone either."""
    ERROR = "error"
    """The gate or the environment failed before a verdict: never a kill."""


class Reason(str, enum.Enum):
    """Why a candidate was rejected; the first check that failed."""

    NONE = ""
    """It was not rejected, or the gate does not say."""
    VALUES = "values"
    """A finite output differs beyond the tolerance."""
    NONFINITE = "nonfinite"
    """NaN or infinity stands where the reference is finite, or the reverse."""
    CONTRACT = "contract"
    """Wrong number, shape, dtype, device or type of outputs."""
    BOUNDS = "bounds"
    """A guard saw a lane outside its buffer."""
    INPUT_CHANGED = "input_changed"
    """An input that is not declared in-place changed."""
    NOT_REPEATABLE = "not_repeatable"
    """A second run gave other bits on the same input, or the same ones on another."""
    RAISED = "raised"
    """The candidate raised where the original does not."""
    TEST_FAILED = "test_failed"
    """A test of an external gate failed in its call phase."""
    SAID_NO = "said_no"
    """A callable returned False, or a command or one of its tools said no."""


class Worst(msgspec.Struct, frozen=True):
    """The worst element a comparator saw: where, how wrong, how wrong it may be.

    `error` is None where the element is wrong by being NaN or infinite, or by not being so.
    """

    output: str
    index: tuple[int, ...]
    error: float | None
    allowance: float


class Spent(msgspec.Struct, frozen=True):
    """Where a verdict's time went: `kernels_s` of the gate's own `gate_s` inside kernels.

    The rest of `gate_s` is importing the code, copying inputs and comparing outputs; the rest of
    the verdict's duration is starting its process.
    """

    kernels_s: float = 0.0
    gate_s: float = 0.0


class Verdict(msgspec.Struct, frozen=True):
    """What one gate said of one candidate: a value, never an exception.

    `case` names the deciding case: the first failing one, or where nothing failed the closest
    call, with its `worst` element. `launches` counts kernel launches. `loaded` says that the
    overlay's text is what the process really imported: without that proof nothing counts.
    `findings` are what the guards saw; only the oracle lets them decide. `bits` hashes all
    outputs (for telling controls apart). `margin` is the largest error/allowance among the
    cases passed.
    """

    candidate: str
    gate: str
    outcome: GateOutcome
    reason: Reason = Reason.NONE
    detail: str = ""
    case: str = ""
    worst: Worst | None = None
    findings: tuple[Finding, ...] = ()
    loaded: bool = True
    cases: int = 0
    launches: int = 0
    kernels: tuple[str, ...] = ()
    """Kernels launched, as `module:qualname`."""
    uncompared: bool = False
    """A launch had a compiled form by which mutants were not compared."""
    margin: float = 0.0
    bits: str = ""
    inputs_sha256: str = ""
    """Of the deciding case's inputs: a replay elsewhere proves by it that they are the same."""
    compared: int = 0
    """Elements of outputs that the oracle's cases compare, up to the case that decided."""
    exactly: int = 0
    """How many of those must be equal, since nothing before the last step rounds."""
    failed: tuple[str, ...] = ()
    """Every case that failed, where the oracle was to try all of them."""
    duration_s: float = 0.0
    spent: Spent = Spent()
    signal: int = 0
    """What the process died of, where it did."""
    evidence: Evidence | None = None
    """What an external gate did while it judged: on the original and on adversaries."""
    baseline: PytestBaseline | None = None
    """On the original under a pytest gate: what its tests do, and which are set aside."""
    reads: GateReads | None = None
    """What a gate of the team's own imported, opened, listed, looked for and asked for: on the
    original all of it, else what it did not read there."""
