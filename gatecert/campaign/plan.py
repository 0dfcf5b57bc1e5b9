"""From a configuration to what will be run: kernels, mutants, controls, adversaries."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatecert.campaign.records import SubjectRun
from gatecert.errors import UsageError
from gatecert.gates.config import GateConfig
from gatecert.lanes.records import Launch
from gatecert.mutants.adversaries import adversary_candidates
from gatecert.mutants.benign import benign_rewrites
from gatecert.mutants.discover import find_kernels, link_callees
from gatecert.mutants.plant import plant
from gatecert.mutants.records import Kernel, Mutant, Signature, Skip
from gatecert.operators.records import Operator
from gatecert.sandbox.protocol import GateRef, Probed
from gatecert.subjects import Subject

_BLOCK_SIZES = range(8, 513)
_MOST_BLOCKS_PER_DIM = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for. The first gate is the one certified; the others stand beside."""

    root: Path
    subjects: tuple[Subject, ...]
    gates: tuple[GateRef, ...]
    operators: tuple[Operator, ...]
    seed: int = 0
    quick: bool = False
    jobs: int = 1
    only: tuple[str, ...] = ()
    overlay: bool = True


@dataclass(frozen=True, slots=True)
class PlannedSubject:
    """A subject's part of the run before anything was judged."""

    run: SubjectRun
    texts: dict[str, str]
    signatures: tuple[Signature, ...]
    probe_s: float


def gate_refs(
    names: Sequence[str], tables: dict[str, GateConfig], root: str
) -> tuple[GateRef, ...]:
    """Gates by name with their tables."""
    return tuple(GateRef(name, root, tables.get(name)) for name in dict.fromkeys(names))


def plan_subject(
    subject: Subject, probed: Probed, operators: Iterable[Operator], probe_s: float
) -> PlannedSubject:
    """Discover the launched kernels and all they call, plant, rewrite, add adversaries."""
    launched = {launch.kernel for launch in probed.launches}
    texts = {path: Path(path).read_text(encoding="utf-8") for path in set(probed.modules.values())}
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
    skips += [
        Skip(k.name, k.path, k.line, f"not launched by {subject.entry} on its declared domain")
        for k in found.values()
        if k not in wanted
    ]
    skips += [
        Skip(name, "", 0, "launched, but its source was not found in an imported module")
        for name in sorted(launched - set(found))
    ]
    operators = tuple(operators)
    mutants: list[Mutant] = []
    for kernel in wanted:
        mutants += plant(subject.name, kernel, texts[kernel.path], operators)
    entry_text = Path(probed.entry_path).read_text(encoding="utf-8")
    run = SubjectRun(
        subject=with_blocks(subject, probed.launches),
        kernels=tuple(wanted),
        skipped=tuple(skips),
        mutants=tuple(_with_distinct_ids(mutants)),
        controls=tuple(benign_rewrites(subject.name, wanted, texts)),
        adversaries=tuple(
            adversary_candidates(subject.name, subject.entry, probed.entry_path, entry_text)
        ),
    )
    signatures = tuple(dict.fromkeys(signature_of(launch) for launch in probed.launches))
    return PlannedSubject(run, texts, signatures, probe_s)


def signature_of(launch: Launch) -> Signature:
    """The general compiled form behind a launch: no divisibility, no value folded."""
    return Signature(
        kernel=launch.kernel,
        types=launch.types,
        constexprs=launch.constexprs,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )


def with_blocks(subject: Subject, launches: Iterable[Launch]) -> Subject:
    """The subject with block sizes that its launches show, where none are configured.

    A power of two that a constexpr holds in every launch of its kernel is a block size; which
    dim it tiles is not known, so every dim gets it (under the name `*`).
    """
    if subject.blocks:
        return subject
    seen: dict[tuple[str, str], set[object]] = {}
    for launch in launches:
        for name, value in launch.constexprs:
            seen.setdefault((launch.kernel, name), set()).add(value)
    fixed = {
        value
        for values in seen.values()
        if len(values) == 1
        for value in values
        if type(value) is int and value in _BLOCK_SIZES and value & (value - 1) == 0
    }
    if not fixed:
        return subject
    blocks = tuple(sorted(fixed))[:_MOST_BLOCKS_PER_DIM]
    return msgspec.structs.replace(subject, blocks={"*": blocks})


def labels_sha256(mutants: Iterable[Mutant]) -> str:
    """Hash of every mutant's labels: what was claimed before anything ran."""
    digest = hashlib.sha256()
    for mutant in mutants:
        labels = (mutant.id, mutant.observable_by, mutant.reveal, mutant.scored)
        digest.update(msgspec.json.encode(labels))
    return digest.hexdigest()


def _with_callees(launched: Iterable[str], found: dict[str, Kernel]) -> list[Kernel]:
    names = dict.fromkeys(name for name in sorted(launched) if name in found)
    for name in tuple(names):
        names.update(dict.fromkeys(c for c in found[name].callees if c in found))
    return [found[name] for name in names]


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
