"""Records of one run: what was planted, what the compiler said, what every gate said."""

from __future__ import annotations

import enum

import msgspec

from gatecert.diagnosis.records import Evidence
from gatecert.gates.records import Verdict
from gatecert.mutants.records import (
    Accepted,
    Candidate,
    CodeComparison,
    Ignored,
    Kernel,
    Launcher,
    Mutant,
    Skip,
)
from gatecert.operators.records import ObservableBy
from gatecert.provenance import Provenance
from gatecert.subjects import Subject


class Status(str, enum.Enum):
    """What became of a mutant under one gate."""

    KILLED = "killed"
    """The gate said, positively, that it is wrong."""
    SURVIVED = "survived"
    """The gate accepted it."""
    CRASHED = "crashed"
    """The gate's process died."""
    TIMEOUT = "timeout"
    """No answer in time, not alone either."""
    UNREPORTED = "unreported"
    """It touched memory out of bounds: a guard saw it, and an external gate accepted it."""
    UNVIABLE = "unviable"
    """It imports or compiles for no signature of the domain; never counted."""
    EQUIVALENT = "equivalent"
    """Proven: same compiled code for every signature of the domain."""
    DUPLICATE = "duplicate"
    """Proven: same compiled code as another mutant."""
    NOT_OBSERVABLE = "not_observable"
    """By its label, this lane cannot show it; counted apart."""
    INCONCLUSIVE = "inconclusive"
    """The environment failed: never a kill."""
    IGNORED = "ignored"
    """A person said so, with a reason."""
    NOT_RUN = "not_run"
    """Left out by --sample or --time-budget, or the run was interrupted; never counted."""


STAGES = ("probe and plant", "compile", "judge", "compile survivors", "explain survivors")
"""Parts of a run by the clock, one after the other; `total` is the whole of it. All other times of
a run are added up over jobs that run side by side."""
PROCESSES = "processes: "
"""Begins the name of a time that judging processes spent."""
SHARDS = "shards: "
"""Begins the name of a time that is added up over shards."""

USUAL_LANE = "interpreter"

LANE_SHOWS: dict[str, frozenset[ObservableBy]] = {
    USUAL_LANE: frozenset(
        {ObservableBy.VALUES, ObservableBy.BOUNDS, ObservableBy.REPEAT, ObservableBy.RACE}
    ),
    "cuda": frozenset(ObservableBy),
}
"""What each lane can show; a label disjoint from it is `not_observable` there."""


class Environment(msgspec.Struct, frozen=True):
    """Where a run happened; versions that can change a verdict."""

    gatecert: str
    python: str
    torch: str
    triton: str
    numpy: str
    platform: str
    lane: str
    operators: str
    labels_sha256: str
    gpu: str = ""
    """Where a gate ran compiled kernels: the GPU and what its driver supports."""


class SubjectRun(msgspec.Struct, frozen=True):
    """One subject's part of a run. `verdicts` holds every gate's, told apart by `gate`."""

    subject: Subject
    kernels: tuple[Kernel, ...] = ()
    skipped: tuple[Skip, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    comparisons: tuple[CodeComparison, ...] = ()
    controls: tuple[Candidate, ...] = ()
    adversaries: tuple[Candidate, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    not_tested: tuple[str, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    launchers: tuple[Launcher, ...] = ()
    failed: str = ""
    """Why the subject could not be run at all (import, baseline), else empty."""
    explanations: tuple[Evidence, ...] = ()
    """What was measured of survivors, where that was asked for."""

    def reach(self, mutant: Mutant) -> frozenset[str]:
        """The kernels whose launch runs the mutated function, or that the mutated launcher
        launches."""
        if mutant.in_launcher:
            return frozenset(mutant.launches)
        mutated = f"{mutant.module}:{mutant.kernel}"
        return frozenset(k.name for k in self.kernels if k.name == mutated or mutated in k.callees)


class Selection(msgspec.Struct, frozen=True):
    """What part of the mutants was asked for, and what of that was not run.

    `only` mutants were named (0: none was), without benign rewrites and adversaries.
    `since` is the revision of `--in-diff`, and `note` says why no mutant lies in that diff.
    `sample` of `sample_of` mutants were drawn (0 where all were meant); `not_sampled` are the ids
    of the rest. `not_reached` are pairs of mutant and gate that the time budget left no time for.
    """

    since: str = ""
    note: str = ""
    sample: int = 0
    sample_of: int = 0
    not_sampled: tuple[str, ...] = ()
    time_budget_s: float = 0.0
    not_reached: tuple[tuple[str, str], ...] = ()
    only: int = 0
    tests_changed: tuple[str, ...] = ()
    """Files of gates that have changed since that revision."""


class Run(msgspec.Struct, frozen=True):
    """A whole run of `certify`: all that reports and the certificate are made from."""

    gate: str
    """The chosen gate; the certificate's top-level figures are its."""
    gates: tuple[str, ...]
    seed: int
    quick: bool
    lane: str
    environment: Environment
    subjects: tuple[SubjectRun, ...]
    timings_s: dict[str, float] = {}
    interrupted: bool = False
    not_tested: tuple[str, ...] = ()
    root: str = ""
    """The configuration's folder, to which paths in reports are relative."""
    selection: Selection = Selection()
    provenance: Provenance | None = None
    """Hashes of all that it was of; None in a record of an earlier version."""
    left_out: dict[str, str] = {}
    """Gates that were to stand beside the chosen one and cannot judge, and why."""
    lanes: dict[str, str] = {}
    """By gate where its candidates ran, if that is not the run's own lane."""

    def lane_of(self, gate: str) -> str:
        """Where the candidates of a gate ran."""
        return self.lanes.get(gate, self.lane)
