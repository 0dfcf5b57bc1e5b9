"""Records of why a gate accepted a mutant: what was measured, and the causes that follow."""

from __future__ import annotations

import enum

import msgspec

from gatecert.witness.records import Hunt


class Cause(str, enum.Enum):
    """What stands between a gate and a kill; asked in this order, the first that holds is first."""

    UNREACHED = "unreached"
    """The gate never ran the changed line."""
    TOLERATED = "tolerated"
    """Outputs differ by more than rounding on the gate's own inputs, and it allows that."""
    UNINFECTED = "uninfected"
    """Outputs are the original's on all the gate's inputs, and differ on others."""
    UNOBSERVED = "unobserved"
    """It is wrong, and no output shows it: a guard does."""
    NO_WITNESS = "no witness found"
    """Nothing that was tried tells it from the original."""
    UNEXPLAINED = "unexplained"
    """Nobody could see what this gate does with the code."""


class Guard(str, enum.Enum):
    """What sees a bug that the outputs of a plain run do not show."""

    BOUNDS = "bounds"
    """A lane outside its buffer is recorded."""
    RACE = "race"
    """Programs run in another order, or take turns."""
    POISON = "poison"
    """What nobody wrote, and masked-off lanes without a value, hold NaN."""
    REPEAT = "repeat"
    """A second call on the same inputs is held against the first."""
    INPUTS = "inputs"
    """Inputs are compared after the call."""


class Captured(msgspec.Struct, frozen=True):
    """The calls of the entry that the gate makes on the original, and the distinct `launches` of
    its kernels that it makes by itself. So many of both are `kept`: equal ones once, and none
    beyond the memory for them (`cut` of those). `why_none` says why there is none."""

    calls: int = 0
    launches: int = 0
    kept: int = 0
    cut: int = 0
    why_none: str = ""


class Reached(msgspec.Struct, frozen=True):
    """What became of the changed lines: `launches` of kernels in all calls, whether a changed line
    was `run`, and whether a load or store in one of them was `masked`: it ever had a lane masked
    off (None: there was none with a mask)."""

    launches: int
    run: bool
    masked: bool | None = None


class Infected(msgspec.Struct, frozen=True):
    """Launches after which the tensors that the kernel was given differ in bits from what the
    original left in them, of those that both made; `first` names the first."""

    launches: int
    differing: int
    first: str = ""


class Propagated(msgspec.Struct, frozen=True):
    """What the calls gave back, held against the original's results.

    Of `calls`, `differing` gave other bits and `beyond_noise` more than rounding explains. `call`
    is the number of the worst of them, from 0: `difference` is its largest one, `error` and
    `own_error` are the largest of mutant and original against the float64 reference (None without
    an operation, or where a value is not finite).
    """

    calls: int
    differing: int = 0
    beyond_noise: int = 0
    call: int = 0
    difference: float | None = None
    error: float | None = None
    own_error: float | None = None


class GuardSeen(msgspec.Struct, frozen=True):
    """A guard that saw the mutant and not the original, and on which input: a case, or a call of
    the gate's own."""

    guard: Guard
    detail: str
    case: str = ""


class BlindAxis(msgspec.Struct, frozen=True):
    """A way in which a witness is like none of the gate's own inputs: its kind and what of it, as
    in `dims:N%BLOCK`, `layout:transposed`, `dtype:bfloat16`; and the same in words."""

    name: str
    said: str


class Evidence(msgspec.Struct, frozen=True):
    """All that was measured of a mutant under a gate that accepted it. None: it was not.

    `allowed` is the largest share of its allowance that an error used, where the gate says what it
    allows; `guards` saw it on the gate's own inputs, `guards_outside` on others. `hunt` looked for
    outputs that differ outside them; the gate is `blind` on the axes on which the witness that it
    found is not like them, and `witness_passes` is what the gate's own comparison would
    make of the witness.
    """

    mutant: str
    gate: str
    captured: Captured = Captured()
    reached: Reached | None = None
    infected: Infected | None = None
    propagated: Propagated | None = None
    allowed: float | None = None
    guards: tuple[GuardSeen, ...] = ()
    guards_outside: tuple[GuardSeen, ...] = ()
    hunt: Hunt | None = None
    blind: tuple[BlindAxis, ...] = ()
    witness_passes: bool | None = None
    seconds: float = 0.0


class Because(msgspec.Struct, frozen=True):
    """A cause with the sentence that its evidence makes, and what to add: inputs on the `axes` on
    which the gate is blind, by their names, or the `guards` that see it."""

    cause: Cause
    said: str
    axes: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True):
    """The causes in order; to remove the first kills, or shows the next."""

    causes: tuple[Because, ...]

    @property
    def first(self) -> Because:
        """The reason that reports give."""
        return self.causes[0]
