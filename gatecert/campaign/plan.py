"""From a configuration to what will be run: kernels, mutants, controls, adversaries."""

from __future__ import annotations

import hashlib
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from gatecert.calibration.records import oracle_settings
from gatecert.campaign.records import SubjectRun
from gatecert.config import Config
from gatecert.errors import UsageError
from gatecert.gates.config import LIBRARIES, GateConfig, OracleConfig
from gatecert.gates.reads import GateReads
from gatecert.gates.records import Verdict
from gatecert.gates.suite.records import PytestBaseline
from gatecert.lanes.cuda.gpu import describe_gpu
from gatecert.mutants.acceptance import AcceptedEntry
from gatecert.mutants.adversaries import adversary_candidates
from gatecert.mutants.benign import benign_rewrites
from gatecert.mutants.discover import find_kernels, link_callees
from gatecert.mutants.launchers import Sources, launchers_at
from gatecert.mutants.plant import plant, plant_in_launcher
from gatecert.mutants.records import CandidateKind, Kernel, Launcher, Mutant, Signature, Skip
from gatecert.mutants.suppression import Entry
from gatecert.operators.records import Operator
from gatecert.operators.registry import bug_classes
from gatecert.sandbox.protocol import GateRef, Probed
from gatecert.sandbox.signatures import signature_of
from gatecert.store.records import Shard
from gatecert.subjects import Subject
from gatecert.witness.records import HuntBudget

_NOT_LAUNCHED = "not launched by"
_LEAVE_OUT_KERNELS = ("/does_nothing", "/returns_freed_memory")


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for. The first gate is the one certified; the others stand beside."""

    root: Path
    subjects: tuple[Subject, ...]
    gates: tuple[GateRef, ...]
    operators: tuple[Operator, ...]
    lane: str = "interpreter"
    seed: int = 0
    quick: bool = False
    jobs: int = 1
    only: tuple[str, ...] = ()
    overlay: bool = True
    matrix: bool = False
    """Every candidate runs every case, and what each showed is kept."""
    shard: Shard | None = None
    config: Config | None = None
    """The configuration it was made of, for the record."""
    whole: bool = True
    """All subjects and operators of the configuration are in it."""
    since: str = ""
    """Only mutants on lines changed since this git revision."""
    sample: int = 0
    """Only so many mutants, drawn at random; 0: all."""
    time_budget_s: float = 0.0
    """After so much time of judging no further mutant is started; 0: no limit."""
    explain: HuntBudget | None = None
    """Measure why the chosen gate's survivors survived, with so much search for each."""
    ignore: tuple[Entry, ...] = ()
    """Entries of the ignore file."""
    accepted: tuple[AcceptedEntry, ...] = ()
    """Entries of the file of accepted survivors."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Gates that were to stand beside and cannot judge, and why."""

    def lane_of(self, ref: GateRef) -> str:
        """Where the candidates of a gate run."""
        return "cuda" if ref.runs_compiled else self.lane

    @property
    def gpu(self) -> str:
        """The GPU that its gates use; "" where none needs one, or there is none."""
        return describe_gpu() if any(ref.runs_compiled for ref in self.gates) else ""

    @property
    def libraries(self) -> tuple[str, ...]:
        """What servers should have in memory for these gates."""
        tables = [ref.config for ref in self.gates if ref.config is not None]
        kinds = [table.kind for table in tables if not table.runs_compiled]
        return tuple(dict.fromkeys(name for kind in kinds for name in LIBRARIES.get(kind, ())))


@dataclass(frozen=True, slots=True)
class PlannedSubject:
    """A subject's part of the run before anything was judged."""

    run: SubjectRun
    texts: dict[str, str]
    signatures: tuple[Signature, ...]
    probe_s: float
    sources_sha256: str = ""
    preload: tuple[str, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)
    """Every file that was imported and is no library's, with its hash."""
    originals: dict[str, Verdict] = field(default_factory=dict)
    """By gate: the verdict on the original."""
    baselines: dict[str, PytestBaseline] = field(default_factory=dict)
    """By gate: what a suite does on the original."""
    reads: dict[str, GateReads] = field(default_factory=dict)
    """By gate: what it read there."""


def gate_refs(
    names: Sequence[str],
    tables: dict[str, GateConfig],
    root: str,
    oracles: Mapping[str, OracleConfig] | None = None,
) -> tuple[GateRef, ...]:
    """Gates by name with their tables.

    Raises:
        UsageError: an oracle's file of tolerances is missing, wrong, or nobody has reviewed it.
    """

    def one(name: str) -> GateRef:
        table = tables.get(name)
        around = tables.get(table.around) if table else None
        named = (oracles or {}).get(name)
        oracle = oracle_settings(named, Path(root)) if named else None
        return GateRef(name, root, table, around, oracle)

    return tuple(map(one, dict.fromkeys(names)))


def plan_subject(
    subject: Subject, probed: Probed, operators: Iterable[Operator], probe_s: float
) -> PlannedSubject:
    """Discover the launched kernels, all they call and who launches them, plant, rewrite, add
    adversaries."""
    launched = {launch.kernel for launch in probed.launches}
    texts = {path: read_source(path) for path in set(probed.modules.values())}
    found: dict[str, Kernel] = {}
    skips: list[Skip] = []
    for module, path in probed.modules.items():
        kernels, skipped = find_kernels(module, path, texts[path])
        found.update({kernel.name: kernel for kernel in kernels})
        skips += skipped
    found = {kernel.name: kernel for kernel in link_callees(found.values())}
    wanted = _with_callees(launched, found)
    if subject.kernels:
        unknown = [n for n in subject.kernels if not any(_named(k, n) for k in wanted)]
        if unknown:
            raise UsageError(
                f"subject {subject.name!r}: kernels {', '.join(unknown)} are not launched; "
                f"launched are {', '.join(k.qualname for k in wanted)}"
            )
        wanted = [k for k in wanted if any(_named(k, n) for n in subject.kernels)]
    where = "on its declared domain" if subject.operation else "under the gate"
    skips += [
        Skip(k.name, k.path, k.line, f"{_NOT_LAUNCHED} {subject.entry} {where}")
        for k in found.values()
        if k not in wanted
    ]
    skips += [
        Skip(name, "", 0, "launched, but its source was not found in an imported module")
        for name in sorted(launched - set(found))
    ]
    profile = subject.profile
    operators = tuple(one for one in operators if profile.covers(one.bug_class))
    mutants: list[Mutant] = []
    for kernel in wanted:
        mutants += plant(subject.name, kernel, texts[kernel.path], operators)
    sources = Sources(probed.modules, texts, found)
    targets = launched & {kernel.name for kernel in wanted}
    launchers = launchers_at({x.launcher for x in probed.launches}, sources, targets, subject.entry)
    for launcher in launchers:
        mutants += plant_in_launcher(subject.name, launcher, sources, operators)
    home_text = read_source(probed.home_path)
    benign = benign_rewrites(subject.name, wanted, texts)
    adversaries = adversary_candidates(subject.name, probed.home, probed.home_path, home_text)
    if not launched:
        # Without its kernels the entry is itself.
        adversaries = [one for one in adversaries if not one.id.endswith(_LEAVE_OUT_KERNELS)]
    run = SubjectRun(
        subject=msgspec.structs.replace(
            subject,
            blocks=probed.blocks,
            dims=probed.dims or subject.dims,
            configs=probed.configs,
            log_notes=(),  # they tell counts, which no verdict depends on
        ),
        kernels=tuple(wanted),
        launchers=tuple(launchers),
        skipped=tuple(skips),
        mutants=tuple(_with_distinct_ids(mutants)),
        controls=tuple(benign) if CandidateKind.BENIGN in profile.candidates else (),
        adversaries=tuple(adversaries) if CandidateKind.ADVERSARY in profile.candidates else (),
        not_tested=(
            *_without_launcher(targets, launchers),
            *profile.left_out(bug_classes()),
            *(f"launch log: {note}" for note in (*subject.log_notes, *probed.notes)),
        ),
    )
    signatures = tuple(dict.fromkeys(signature_of(launch) for launch in probed.launches))
    return PlannedSubject(
        run, texts, signatures, probe_s, probed.sources_sha256, probed.preload, probed.sources
    )


def without_others_kernels(
    planned: Sequence[PlannedSubject], *, all_are_here: bool
) -> tuple[PlannedSubject, ...]:
    """The subjects without what they do not launch and another one does, or may where not all
    subjects of the configuration are here: that is no omission."""
    launched = {kernel.name for part in planned for kernel in part.run.kernels}

    def is_omission(skip: Skip) -> bool:
        if not skip.reason.startswith(_NOT_LAUNCHED):
            return True
        return all_are_here and skip.name not in launched

    return tuple(
        replace(
            part,
            run=msgspec.structs.replace(
                part.run, skipped=tuple(filter(is_omission, part.run.skipped))
            ),
        )
        for part in planned
    )


def labels_sha256(mutants: Iterable[Mutant]) -> str:
    """Hash of every mutant's labels: what was claimed before anything ran."""
    digest = hashlib.sha256()
    for mutant in mutants:
        labels = (mutant.id, mutant.observable_by, mutant.reveal, mutant.scored)
        digest.update(msgspec.json.encode(labels))
    return digest.hexdigest()


def read_source(path: str) -> str:
    """A module's text as Python decodes it: declared encoding, byte order mark, line ends."""
    with tokenize.open(path) as source:
        return source.read()


def _with_callees(launched: Iterable[str], found: dict[str, Kernel]) -> list[Kernel]:
    names = dict.fromkeys(name for name in sorted(launched) if name in found)
    for name in tuple(names):
        names.update(dict.fromkeys(c for c in found[name].callees if c in found))
    return [found[name] for name in names]


def _without_launcher(kernels: Iterable[str], launchers: Iterable[Launcher]) -> Iterator[str]:
    """Kernels that are launched by code that does not name them."""
    named = {kernel for launcher in launchers for kernel in launcher.launches}
    for kernel in sorted(set(kernels) - named):
        yield f"no mutant in the launcher of {kernel}: no function names it where it is launched"


def _with_distinct_ids(mutants: list[Mutant]) -> Iterator[Mutant]:
    """Functions of one name in two modules get the module's name into their ids."""
    uses = Counter(mutant.id for mutant in mutants)
    for mutant in mutants:
        if uses[mutant.id] == 1:
            yield mutant
        else:
            full = f"/{mutant.module}.{mutant.kernel}/"
            new_id = mutant.id.replace(f"/{mutant.kernel}/", full, 1)
            yield msgspec.structs.replace(mutant, id=new_id)


def _named(kernel: Kernel, name: str) -> bool:
    return name in (kernel.name, kernel.qualname, kernel.qualname.rpartition(".")[2])
