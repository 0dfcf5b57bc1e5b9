"""The certificate: what `certificate.json` holds, key by key.

Top-level figures are the chosen gate's; `beside` holds the same figures of every other gate on
the same mutants. docs/certificate.md explains each key.
"""

from __future__ import annotations

import msgspec

from gatecert.campaign.records import Environment, Status
from gatecert.diagnosis.records import Because, Cause, Evidence
from gatecert.gates.records import GateOutcome, Reason, Worst
from gatecert.gates.wiring.weaknesses import NamedWeakness, Weakness
from gatecert.mutants.records import Ignored, Skip
from gatecert.operators.records import ObservableBy, Reveal
from gatecert.provenance import Provenance
from gatecert.statistics import Rate

FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys alone do not raise it."""


class Counts(msgspec.Struct, frozen=True):
    """Mutants by status."""

    killed: int = 0
    survived: int = 0
    crashed: int = 0
    timeout: int = 0
    unreported: int = 0
    unviable: int = 0
    equivalent: int = 0
    duplicate: int = 0
    not_observable: int = 0
    inconclusive: int = 0
    ignored: int = 0
    not_run: int = 0

    @property
    def scored(self) -> int:
        """What the kill rate divides by."""
        return self.killed + self.survived

    @property
    def total(self) -> int:
        """All of them."""
        return sum(getattr(self, status.value) for status in Status)


class Group(msgspec.Struct, frozen=True):
    """The mutants of one bug class, operator, subject or rung of the ladder under one gate."""

    mutants: Counts
    kill_rate: float | None


class Rejection(msgspec.Struct, frozen=True):
    """A control that a gate did not accept: correct code, so the gate is wrong or ill."""

    id: str
    outcome: str
    reason: Reason
    detail: str
    case: str
    worst: Worst | None = None
    inputs_sha256: str = ""
    """Of the case's inputs, for `gatecert replay --expect-inputs`."""


class Controls(msgspec.Struct, frozen=True):
    """What a gate did with correct code."""

    runs: int
    """Controls judged, originals included."""
    distinct: int | None
    """Those whose outputs differ in bits from the original's: the ones that test a tolerance. None
    where no gate of the run looked at bits."""
    rejected: int
    failed: int
    """Controls without a verdict: crash, timeout or environment."""
    cases: int
    """Inputs over all control runs."""
    rejected_kernels: Rate
    """Share of kernels with a rejected control, with its exact 95% interval."""
    rejections: tuple[Rejection, ...] = ()


class Adversaries(msgspec.Struct, frozen=True):
    """What a gate did with code that no gate may accept."""

    total: int
    accepted: int
    inconclusive: int = 0
    """Without a verdict, in neither of the two above."""
    accepted_ids: tuple[str, ...] = ()
    because: dict[str, tuple[Weakness, ...]] = {}
    """Weaknesses that explain why an adversary was accepted, by its id."""


class Survivor(msgspec.Struct, frozen=True):
    """A mutant that a gate accepted."""

    id: str
    subject: str
    operator: str
    bug_class: str
    detail: str
    diff: str
    reason: Cause
    case: str
    worst: Worst | None
    margin: float
    """Largest error / allowance over the gate's cases: below 1, and how far below."""
    reveal: tuple[Reveal, ...]
    """Input conditions that make this bug visible."""
    oracle_case: str = ""
    """A case on which the oracle rejects it: what this gate lacks; `gatecert replay` runs it."""
    oracle_inputs_sha256: str = ""
    """Of that case's inputs, for `gatecert replay --expect-inputs`."""
    kernel: str = ""
    """Its kernel, `module:qualname`; of a mutated launcher the first that it launches."""
    path: str = ""
    """Its file, from the configuration's folder; of an installed package `module:` and its name."""
    line: int = 0
    known: tuple[str, ...] = ()
    """What was recorded of a gate that does not show outputs, a fact each: its tests, what they
    launch, what they compare by."""
    because: tuple[Because, ...] = ()
    """Every cause that evidence supports, the first one first; of runs that explain survivors."""
    evidence: Evidence | None = None
    """What the causes follow from."""
    remedies: tuple[str, ...] = ()
    """What to add to the gate, each ready to be pasted."""
    accepted: str = ""
    """Why somebody accepts it, and who; it counts as a survivor all the same."""
    reopened: bool = False
    """It was accepted, and its function has changed since."""


class GateScore(msgspec.Struct, frozen=True):
    """All figures of one gate."""

    gate: str
    controls: Controls
    adversaries: Adversaries
    mutants: Counts
    kill_rate: Rate
    """killed / (killed + survived); the interval is a bootstrap over kernels."""
    detection_rate: Rate
    """The same with crashes and timeouts of the gate counted as detected."""
    macro_kill_rate: float | None
    """Mean of the bug classes' own kill rates."""
    by_class: dict[str, Group]
    by_operator: dict[str, Group]
    by_subject: dict[str, Group]
    ladder: dict[str, Group]
    """Graded constants below 1e-2, by rung; never part of a kill rate."""
    survivors: tuple[Survivor, ...]
    ladder_by_kernel: dict[str, dict[str, Group]] = {}
    """The same rungs kernel by kernel: how small an error it sees there."""
    weaknesses: tuple[NamedWeakness, ...] = ()
    """What the gate cannot see, by the evidence of what it did."""
    lane: str = "interpreter"
    """Where its candidates ran: what a mutant can show depends on it."""


class Unseen(msgspec.Struct, frozen=True):
    """A mutant without a verdict that counts, and why."""

    id: str
    why: str
    observable_by: tuple[ObservableBy, ...]


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one mutant under one gate."""

    status: Status
    reason: Reason = Reason.NONE
    detail: str = ""
    case: str = ""
    inputs_sha256: str = ""
    """Of the case's inputs, where the gate is an oracle."""
    same_as: str = ""
    """The mutant that a duplicate has the compiled code of."""
    ladder: bool = False
    """It is a rung of the detection ladder, which is in no kill rate."""


class SelectionSummary(msgspec.Struct, frozen=True):
    """What part of the mutants was asked for and run; all of it where nothing is said.

    `only` mutants were named, without benign rewrites and adversaries. `since` is the revision of
    `--in-diff`; `note` says why no mutant lies in that diff. `sample` of `sample_of` mutants were
    drawn. `not_reached` mutants, over all gates, were left when the time budget was spent.
    """

    since: str = ""
    note: str = ""
    sample: int = 0
    sample_of: int = 0
    time_budget_s: float = 0.0
    not_reached: int = 0
    only: int = 0
    tests_changed: tuple[str, ...] = ()
    """Files of gates that have changed since that revision, for which no mutant is judged."""

    @property
    def sampled(self) -> bool:
        """Are the figures those of a random part, from which the whole is inferred?"""
        return self.sample < self.sample_of or self.not_reached > 0


class Observable(msgspec.Struct, frozen=True):
    """How many viable mutants the lane can show at all."""

    viable: int
    observable: int
    share: float | None


class SubjectSummary(msgspec.Struct, frozen=True):
    """What was under test."""

    name: str
    entry: str
    operation: str | None
    dtypes: tuple[str, ...]
    layouts: tuple[str, ...]
    kernels: tuple[str, ...]
    failed: str = ""
    profile: str = ""
    planted: bool = True
    """False where the profile plants no bugs, so that no kill rate is asked for."""


class ControlResult(msgspec.Struct, frozen=True):
    """What a gate said of one control. `bits` is a hash of all outputs that the oracle saw."""

    outcome: GateOutcome
    cases: int = 0
    margin: float = 0.0
    bits: str = ""


class ControlChange(msgspec.Struct, frozen=True):
    """A control that a gate no longer sees as it did: `what` is `verdict`, `bits`, `cases`, or
    `present` where only one of the runs had it."""

    id: str
    gate: str
    what: str
    before: str
    after: str


class Against(msgspec.Struct, frozen=True):
    """The run held against an earlier one, control by control."""

    certificate_sha256: str
    compared: int
    """Pairs of control and gate that both runs have."""
    environment: dict[str, tuple[str, str]]
    """Versions that differ, before and after."""
    changed_sources: tuple[str, ...]
    """What else differs, so that a change may not be the environment's."""
    changes: tuple[ControlChange, ...]


class Certificate(msgspec.Struct, frozen=True):
    """A run's result; the chosen gate's figures at top level."""

    gate: str
    lane: str
    seed: int
    quick: bool
    interrupted: bool
    environment: Environment
    labels_sha256: str
    subjects: tuple[SubjectSummary, ...]
    controls: Controls
    adversaries: Adversaries
    mutants: Counts
    kill_rate: Rate
    detection_rate: Rate
    macro_kill_rate: float | None
    by_class: dict[str, Group]
    by_operator: dict[str, Group]
    by_subject: dict[str, Group]
    ladder: dict[str, Group]
    observable: Observable
    survivors: tuple[Survivor, ...]
    not_observable: tuple[Unseen, ...]
    inconclusive: tuple[Unseen, ...]
    skipped: tuple[Skip, ...]
    not_tested: tuple[str, ...]
    contradictions: tuple[str, ...]
    """Where gatecert contradicts itself (a proven equivalent that a gate rejected)."""
    beside: tuple[GateScore, ...]
    results: dict[str, dict[str, Result]]
    """What became of every mutant, ladder included, under every gate."""
    timings_s: dict[str, float]
    weaknesses: tuple[NamedWeakness, ...] = ()
    """What the chosen gate cannot see, by the evidence of what it did."""
    ladder_by_kernel: dict[str, dict[str, Group]] = {}
    selection: SelectionSummary = SelectionSummary()
    ignored: tuple[Ignored, ...] = ()
    """Mutants that a person ignores, with the reason and where it is written."""
    unmet: tuple[str, ...] = ()
    """Bounds of `[require]` and of the ratchet that were missed when this was written."""
    format: int = FORMAT
    control_results: dict[str, dict[str, ControlResult]] = {}
    """What every gate said of every control."""
    provenance: Provenance | None = None
    """Hashes of all that the run was of; `gatecert verify` holds a tree against them."""
    against: Against | None = None
    left_out: dict[str, str] = {}
    """Gates that were to stand beside the chosen one and cannot judge, and why."""
    sha256: str = ""
    """Hash of everything above but the timings: it shows an edit by hand, and is no signature."""
