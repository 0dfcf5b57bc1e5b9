"""What the supervisor and its server say to each other: one JSON document per line."""

from __future__ import annotations

import msgspec

from gatecert.diagnosis.records import Evidence
from gatecert.encoding import decode
from gatecert.gates.config import GateConfig, OracleSettings
from gatecert.gates.records import Verdict
from gatecert.gates.suite.records import PytestBaseline
from gatecert.lanes.records import Launch
from gatecert.mutants.records import Candidate
from gatecert.operators.records import ObservableBy
from gatecert.subjects import Subject
from gatecert.witness.records import Hunt, HuntBudget


class GateRef(msgspec.Struct, frozen=True):
    """A gate by name, with its table of gatecert.toml where it has one; `around` is the table
    of the gate that a sanitizer runs, `oracle` the settings of an oracle under another name."""

    name: str
    root: str
    config: GateConfig | None = None
    around: GateConfig | None = None
    oracle: OracleSettings | None = None

    @property
    def runs_compiled(self) -> bool:
        """Do its candidates run on a GPU?"""
        return self.config is not None and self.config.runs_compiled


class Limits(msgspec.Struct, frozen=True):
    """Time and memory that one child may use.

    The time limit of a mutant is `factor` times the original's own time under that gate, and
    at least `minimum_s`; `memory_bytes` comes on top of what the server itself holds.
    """

    factor: float = 10.0
    minimum_s: float = 20.0
    baseline_s: float = 900.0
    memory_bytes: int = 8 << 30


class Task(msgspec.Struct, frozen=True):
    """One candidate for one gate; `observe` asks a gate that can for a record of every case."""

    candidate: Candidate
    gate: str
    stop_at_first: bool = True
    observe: bool = False


class ProbeRequest(msgspec.Struct, frozen=True, tag="probe"):
    """Learn which kernels the original launches, with which signatures and block sizes."""

    subject: Subject
    gate: GateRef
    seed: int = 0


class ShardRequest(msgspec.Struct, frozen=True, tag="shard"):
    """Judge candidates of one subject. `overlay=False` leaves the user's code as it is, which
    makes every mutant the original: a self-test of the whole chain. `signatures` holds the keys
    of the compiled forms that mutants were compared by; `preload` names library modules that the
    code under test imports, so that they are imported once and not in every child. After
    `stop_after_s` no further task is started. `originals` holds by gate the
    verdict on the original, which the request then need not judge again, and `baselines` what a
    suite did on it. `modules` maps modules with mutants to their files: a gate may import one
    under another name; `kernels` are all of the subject."""

    subject: Subject
    gates: tuple[GateRef, ...]
    tasks: tuple[Task, ...]
    signatures: frozenset[str] = frozenset()
    preload: tuple[str, ...] = ()
    seed: int = 0
    quick: bool = False
    limits: Limits = Limits()
    overlay: bool = True
    stop_after_s: float | None = None
    originals: dict[str, Verdict] = {}
    baselines: dict[str, PytestBaseline] = {}
    modules: dict[str, str] = {}
    kernels: tuple[str, ...] = ()


class HuntRequest(msgspec.Struct, frozen=True, tag="hunt"):
    """Look outside the cases of a gate for one on which a mutant and its original differ.

    `observable_by` says whether one run of a case can show the mutant; `preload` is as in a shard.
    """

    subject: Subject
    gate: GateRef
    candidate: Candidate
    observable_by: tuple[ObservableBy, ...] = ()
    budget: HuntBudget = HuntBudget()
    preload: tuple[str, ...] = ()
    seed: int = 0
    quick: bool = False
    limits: Limits = Limits()


class ExplainRequest(msgspec.Struct, frozen=True, tag="explain"):
    """Measure why a gate accepted candidates of one subject. `budget` is that of the search for
    each of them; all else is as in a shard."""

    subject: Subject
    gate: GateRef
    candidates: tuple[Candidate, ...]
    budget: HuntBudget = HuntBudget()
    preload: tuple[str, ...] = ()
    seed: int = 0
    quick: bool = False
    limits: Limits = Limits()
    baselines: dict[str, PytestBaseline] = {}
    modules: dict[str, str] = {}
    kernels: tuple[str, ...] = ()


class Probed(msgspec.Struct, frozen=True, tag="probed"):
    """What a probe saw.

    `modules` maps every module with kernels to its file. `home` is where the entry is really
    defined, as `module:qualname`, and `home_path` that module's file. `blocks` are the block
    sizes that launches show, by dim. `sources_sha256` covers every file that is not a library's
    and was imported: a verdict on the original depends on them all; `sources` has the hash of
    each by its path. `preload` names the parts of torch that importing the entry brought in.
    `dims` are the sizes that the oracle is to add, by the subject's profile, and `configs` is
    how many autotune configurations a launched kernel has at most. `notes` tell of logged shapes
    that are not run as they are.
    """

    launches: tuple[Launch, ...]
    modules: dict[str, str]
    home: str
    home_path: str
    blocks: dict[str, tuple[int, ...]]
    sources_sha256: str
    preload: tuple[str, ...]
    sources: dict[str, str] = {}
    dims: dict[str, tuple[int, ...]] = {}
    configs: int = 1
    notes: tuple[str, ...] = ()


class Judged(msgspec.Struct, frozen=True, tag="judged"):
    """One verdict; `observed` are the packed cells of a task that asked for them."""

    verdict: Verdict
    observed: bytes = b""


class Hunted(msgspec.Struct, frozen=True, tag="hunted"):
    """What a hunt found."""

    hunt: Hunt


class Explained(msgspec.Struct, frozen=True, tag="explained"):
    """What was measured of one mutant."""

    evidence: Evidence


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """A gate is ready; `seconds` went into its inputs and references. `notes` are for the user:
    what a candidate costs where that is much, and what the gate does to its files."""

    gate: str
    seconds: float
    notes: tuple[str, ...] = ()


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The shard cannot go on; `exit_code` is that of the error behind it."""

    message: str
    exit_code: int


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """Nothing more comes for this request."""

    seconds: float


Request = ProbeRequest | ShardRequest | HuntRequest | ExplainRequest
Event = Probed | Judged | Hunted | Explained | Prepared | Failed | Finished


def decode_request(text: bytes) -> Request:
    """A request back."""
    return decode(text, Request)  # type: ignore[no-any-return]


def decode_event(text: bytes) -> Event:
    """An event back."""
    return decode(text, Event)  # type: ignore[no-any-return]
