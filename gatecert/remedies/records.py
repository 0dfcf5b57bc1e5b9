"""Records of remedies: what to add to a gate, and what that was seen to do."""

from __future__ import annotations

import enum

import msgspec

ENVELOPE = 1.5
"""A tolerance is at least so many times what the worst control needs."""


class Form(str, enum.Enum):
    """How a case is added."""

    CONFIG = "config"
    """A table of gatecert.toml: the oracle tries the case, under all its guards."""
    PYTEST = "pytest"
    """A test of a suite that compares values; it has no guards."""
    SNIPPET = "snippet"
    """A script that needs nothing but torch."""


class Text(msgspec.Struct, frozen=True):
    """One form of a remedy, ready to be pasted. It was run: `kills` says that it accepts the
    original and rejects the mutant; where it does not, `why` says what it did."""

    form: Form
    text: str
    kills: bool
    why: str = ""


class Tolerance(msgspec.Struct, frozen=True):
    """What `torch.allclose(y, reference, rtol, atol)` needs on the gate's own inputs in a dtype,
    the reference in float64 and rtol one roundoff of the dtype.

    The mutant passes from an atol of `mutant_needs` on, `controls` (the original and benign
    rewrites) from one of `controls_need`.
    """

    dtype: str
    rtol: float
    controls: int
    controls_need: float
    mutant_needs: float

    @property
    def atol(self) -> float | None:
        """One that kills it and keeps its distance from the controls; None: there is none, the
        mutant's error is within this operation's noise."""
        kept = max(ENVELOPE * self.controls_need, self.rtol * 2.0**-10)
        return kept if kept < self.mutant_needs else None


class Remedy(msgspec.Struct, frozen=True):
    """What kills one survivor: a `case` on which it shows, and the texts that add it.

    `witness` is the case that was found, `case` the simplest that fails for the same reason.
    """

    mutant: str
    witness: str
    case: str
    texts: tuple[Text, ...]
    tolerances: tuple[Tolerance, ...] = ()
    """Of a gate whose inputs are cases: what would kill it there, dtype by dtype."""


class Untreated(msgspec.Struct, frozen=True):
    """A survivor for which no remedy was found, and why."""

    mutant: str
    why: str


class Added(msgspec.Struct, frozen=True):
    """A case of the smallest set: what one run of it costs, and the survivors that it kills."""

    subject: str
    case: str
    seconds: float
    kills: tuple[str, ...]


class HeldOut(msgspec.Struct, frozen=True):
    """The smallest set under a seed that no search saw: of `mutants` with a witness it `killed`
    some; of `controls`, originals and benign rewrites, it rejected those in `rejected`."""

    seed: int
    mutants: int
    killed: int
    survived: tuple[str, ...] = ()
    controls: int = 0
    rejected: tuple[str, ...] = ()


class SmallestSet(msgspec.Struct, frozen=True):
    """The cheapest cases that kill every survivor which any of the witnesses kills.

    Of `survivors` of the gate, `with_witness` have one; `scored` and `killed` are the gate's own.
    """

    gate: str
    survivors: int
    with_witness: int
    scored: int
    killed: int
    cases: tuple[Added, ...]
    held_out: HeldOut
    untreated: tuple[Untreated, ...] = ()

    @property
    def kill_rate(self) -> float:
        """Of the gate with these cases, as they did under the held-out seed."""
        return (self.killed + self.held_out.killed) / self.scored if self.scored else 0.0
