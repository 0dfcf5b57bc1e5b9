"""Records of what a run was asked for, what it planned, and how far it got."""

from __future__ import annotations

import enum
import zlib
from typing import Any, TypeVar

import msgspec

from gatecert.campaign.records import Run
from gatecert.diagnosis.records import Evidence
from gatecert.errors import UsageError
from gatecert.gates.records import Verdict
from gatecert.mutants.records import CodeComparison, Signature

Record = TypeVar("Record")


class Shard(msgspec.Struct, frozen=True, order=True):
    """The `number`-th of `count` parts of a run's candidates, counted from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


def parse_shard(text: str) -> Shard:
    """Read `k/n`.

    Raises:
        UsageError: it is not of that form with 1 <= k <= n.
    """
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal()):
        raise UsageError(f"shard {text!r}: write it as k/n, as in 2/3")
    shard = Shard(int(number), int(count))
    if not 1 <= shard.number <= shard.count:
        raise UsageError(f"shard {text!r}: k goes from 1 to n")
    return shard


class Scope(msgspec.Struct, frozen=True):
    """What a command was asked for; the same command again has an equal scope.

    `subjects`, `operators` and `only` hold names given on the command line, and are empty
    where all were meant.
    """

    command: str
    config: str = ""
    gates: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    seed: int = 0
    seeds: int = 1
    rewrite_seeds: int | None = None
    quick: bool = False
    matrix: bool = False
    fresh: bool = False
    shard: Shard | None = None
    in_diff: str = ""
    sample: int = 0
    time_budget_s: float = 0.0
    profile: str = ""
    against: str = ""
    """Hash of the certificate that the run is held against."""
    no_oracle: bool = False

    @property
    def whole(self) -> bool:
        """Was everything asked for that the configuration holds, however long it takes?"""
        part = self.subjects or self.operators or self.only or self.shard
        return not (part or self.in_diff or self.sample or self.time_budget_s or self.profile)

    def like(self, other: Scope) -> bool:
        """Would their certificates be about the same thing?"""
        return msgspec.structs.replace(self, fresh=other.fresh) == other

    def __str__(self) -> str:
        options = [
            *(f"--gate {name}" for name in self.gates),
            *(f"--subject {name}" for name in self.subjects),
            *(f"--operator {name}" for name in self.operators),
            *(f"--only {name}" for name in self.only),
            *(["--no-oracle"] if self.no_oracle else []),
            *([f"--seed {self.seed}"] if self.seed else []),
            *([f"--seeds {self.seeds}"] if self.seeds != 1 else []),
            *([] if self.rewrite_seeds is None else [f"--rewrite-seeds {self.rewrite_seeds}"]),
            *(f"--{name}" for name in ("quick", "matrix", "fresh") if getattr(self, name)),
            *([f"--shard {self.shard}"] if self.shard else []),
            *([f"--in-diff {self.in_diff}"] if self.in_diff else []),
            *([f"--sample {self.sample}"] if self.sample else []),
            *([f"--time-budget {self.time_budget_s:g}s"] if self.time_budget_s else []),
            *([f"--profile {self.profile}"] if self.profile else []),
            *([f"--against {self.against[:12]}"] if self.against else []),
        ]
        return " ".join([self.command, *options])


class RunState(str, enum.Enum):
    """How far a run got."""

    RUNNING = "running"
    """A process is writing it."""
    UNFINISHED = "unfinished"
    """It was interrupted or killed; the same command goes on with it."""
    FINISHED = "finished"
    """It ended as it should."""


class RunInfo(msgspec.Struct, frozen=True):
    """A run at a glance. `verdicts` of `tasks` are there; `tasks` is 0 before it has planned."""

    id: str
    state: RunState
    started: str
    finished: str
    scope: Scope
    fingerprint: str
    tasks: int
    verdicts: int
    observed_bytes: int


class PlannedTask(msgspec.Struct, frozen=True, array_like=True):
    """One candidate for one gate, with the key of all that its verdict depends on."""

    subject: str
    candidate: str
    gate: str
    key: str

    @property
    def place(self) -> tuple[str, str]:
        """What tells it apart within a run."""
        return self.candidate, self.gate


class Tasks(msgspec.Struct, frozen=True):
    """Every task of the whole plan, in the certificate's order, and this run's share of it.

    `share` names candidates; None means all. Every shard plans the same tasks, so that shards
    can be held against each other.
    """

    planned: tuple[PlannedTask, ...]
    share: frozenset[str] | None = None

    @property
    def mine(self) -> tuple[PlannedTask, ...]:
        """The tasks of this run."""
        if self.share is None:
            return self.planned
        return tuple(task for task in self.planned if task.candidate in self.share)


class PlannedPart(msgspec.Struct, frozen=True):
    """What comparing a subject's code needs besides its part of the run."""

    subject: str
    texts: dict[str, str]
    signatures: tuple[Signature, ...]
    probe_s: float
    sources_sha256: str
    preload: tuple[str, ...]


class Planned(msgspec.Struct, frozen=True):
    """A run before anything was judged: its record without verdicts and comparisons."""

    run: Run
    parts: tuple[PlannedPart, ...] = ()


class StoredVerdict(msgspec.Struct, frozen=True):
    """A verdict under its key, with the observations of a matrix run (see `gates.cells`)."""

    key: str
    verdict: Verdict
    observed: bytes = b""


class StoredRun(msgspec.Struct, frozen=True):
    """Everything that the store holds of one run."""

    info: RunInfo
    planned: Planned
    tasks: Tasks
    comparisons: dict[str, tuple[CodeComparison, ...]]
    verdicts: tuple[StoredVerdict, ...]
    timings_s: dict[str, float]
    explanations: tuple[Evidence, ...] = ()


def pack(record: Any) -> bytes:
    """A record as compressed msgpack, which keeps floats as they are, infinities included."""
    return zlib.compress(msgspec.msgpack.encode(record))


def unpack(body: bytes, kind: type[Record]) -> Record:
    """A record back.

    Raises:
        msgspec.ValidationError: another version of gatecert wrote it.
    """
    return msgspec.msgpack.decode(zlib.decompress(body), type=kind)
