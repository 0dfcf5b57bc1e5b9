"""Write down what a run was of, and look at a tree in the same way later."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import operator
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatecert.campaign.gate_files import gate_files
from gatecert.campaign.plan import Plan, PlannedSubject, read_source
from gatecert.config import CORPUS_CONFIG, Config
from gatecert.gates.config import ORACLE_PREFIX, GateConfig, OracleConfig
from gatecert.gates.reads import GateReads
from gatecert.locating import find_source, module_of
from gatecert.mutants.discover import source_of
from gatecert.operators.records import Operator
from gatecert.operators.registry import all_operators
from gatecert.provenance import (
    FunctionHash,
    GateHashes,
    Provenance,
    SubjectHashes,
    from_root,
    in_tree,
)
from gatecert.store.keys import code_sha256, gate_switches, project_files, text_sha256
from gatecert.store.reads import Marks, sha256_of

_MODULE = "module:"


@dataclass(frozen=True, slots=True)
class Places:
    """Names of files that hold on another machine, and back."""

    root: Path
    import_paths: tuple[str, ...] = ()

    def name_of(self, path: str) -> str:
        """Relative to the root where it lies below it or below an import path, else the module's
        name; a file of no package outside both has its bare name."""
        real = Path(path).resolve()
        for folder in (self.root, *map(Path, self.import_paths)):
            if real.is_relative_to(folder.resolve()) and not _is_installed(real):
                return Path(os.path.relpath(real, self.root.resolve())).as_posix()
        return _MODULE + module_of(real)

    def path_of(self, name: str) -> Path | None:
        """The file of that name in this tree and this environment, if there is one."""
        if name.startswith(_MODULE):
            return find_source(name.removeprefix(_MODULE), self.import_paths)
        path = self.root / name
        return path if path.is_file() else None


def places_of_plan(plan: Plan) -> Places:
    """How the files of a plan are named."""
    folders = dict.fromkeys(path for s in plan.subjects for path in s.import_paths)
    return Places(plan.root, tuple(folders))


def describe_provenance(plan: Plan, planned: Sequence[PlannedSubject], out: Path) -> Provenance:
    """What the plan's run is of; `out` is where its results go."""
    ran = [subject for subject in planned if not subject.run.failed]
    places = places_of_plan(plan)
    subjects = {s.run.subject.name: _hashes_of(s, places) for s in ran}
    tables = {ref.name: ref.config for ref in plan.gates if ref.config is not None}
    read = {name: _read_by(name, ran) for name in tables}
    gates = _gate_hashes(tables, places, _files_of(subjects), read, _config_path(plan.config), out)
    return Provenance(
        config=_relative_config(plan.config),
        settings=settings_of(
            plan.config,
            [s.name for s in plan.subjects],
            [*tables, *(ref.name for ref in plan.gates if ref.oracle is not None)],
        ),
        subjects=subjects,
        gates=gates,
        operators=_versions(plan.operators),
        operators_sha256=code_sha256("operators"),
        gatecert_sha256=code_sha256(),
        libraries=_libraries(_files_of(subjects)),
    )


def look_again(then: Provenance, config: Config) -> Provenance:
    """The same things as they are now: nothing of the code under test is imported or run."""
    import_paths = tuple(dict.fromkeys(p for s in config.subjects for p in s.import_paths))
    places = Places(Path(config.root), import_paths)
    subjects = {name: _looked_at(hashes, places) for name, hashes in then.subjects.items()}
    tables = {name: config.gates[name] for name in then.gates if name in config.gates}
    names = _subjects_in(then.settings)
    read = {name: _read_then(then.gates[name], places.root) for name in tables}
    return Provenance(
        config=then.config,
        settings=settings_of(config, names, [*tables, *_oracles_in(then.settings)]),
        subjects=subjects,
        gates={
            name: msgspec.structs.replace(hashes, late=_late_now(then.gates[name], places.root))
            for name, hashes in _gate_hashes(
                tables, places, _files_of(then.subjects), read, _config_path(config), out=None
            ).items()
        },
        operators=_versions(o for o in all_operators() if o.name in then.operators),
        operators_sha256=code_sha256("operators"),
        gatecert_sha256=code_sha256(),
        libraries={name: _version(name) for name in then.libraries},
    )


def settings_of(
    config: Config | None, subjects: Iterable[str], gates: Iterable[str]
) -> dict[str, str]:
    """Keys of a configuration with their values as JSON, for some subjects and gates, and the
    mutants that its ignore file names; what is as by default is left out."""
    if config is None or config.file is None:
        return {}
    table, chosen = _told(config.file), set(gates)
    for section, names in (("subject", set(subjects)), ("gate", chosen)):
        structs = getattr(config.file, section).items()
        table[section] = {name: _told(struct) for name, struct in structs if name in names}
    table["oracle"] = {
        name.removeprefix(ORACLE_PREFIX): _told_oracle(struct, Path(config.root))
        for name, struct in config.oracles.items()
        if name in chosen
    }
    table["require"] = _told(config.file.require)
    table["ignore"] = {entry.mutant: entry.reason for entry in config.ignore}
    return dict(sorted(_leaves("", table)))


def _told(struct: msgspec.Struct) -> dict[str, object]:
    """The fields of a table that are not as by default."""
    return {
        field.name: _without_places(msgspec.to_builtins(value))
        for field in msgspec.structs.fields(struct)
        if (value := getattr(struct, field.name)) != field.default
        and not (field.default_factory is dict and value == {})
    }


def _told_oracle(table: OracleConfig, root: Path) -> dict[str, object]:
    """The settings of an oracle, its strategy always, and the hash of its file."""
    told = {**_told(table), "strategy": table.strategy}
    path = root / table.tolerances
    if table.tolerances:
        told["tolerances_sha256"] = sha256_of(path) if path.is_file() else ""
    return told


def _without_places(value: object) -> object:
    """The value with a hash in place of every absolute path: those are of one machine."""
    if isinstance(value, str) and Path(value).is_absolute():
        return f"sha256:{text_sha256(value)[:16]}"
    if isinstance(value, dict):
        return {key: _without_places(inner) for key, inner in value.items()}
    return [*map(_without_places, value)] if isinstance(value, list | tuple) else value


def _leaves(prefix: str, table: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield prefix + key, msgspec.json.encode(value).decode()


def _subjects_in(settings: Mapping[str, str]) -> list[str]:
    """Subjects whose tables were written down: `subject.NAME.entry` is always there."""
    return [
        key.removeprefix("subject.").removesuffix(".entry")
        for key in settings
        if key.startswith("subject.") and key.endswith(".entry")
    ]


def _oracles_in(settings: Mapping[str, str]) -> list[str]:
    """The gates of oracles whose settings were written down."""
    return [
        ORACLE_PREFIX + key.removeprefix("oracle.").removesuffix(".strategy")
        for key in settings
        if key.startswith("oracle.") and key.endswith(".strategy")
    ]


def _hashes_of(subject: PlannedSubject, places: Places) -> SubjectHashes:
    def hashed(module: str, qualname: str, path: str) -> FunctionHash:
        source = source_of(subject.texts.get(path, ""), qualname)
        return FunctionHash(f"{module}:{qualname}", places.name_of(path), text_sha256(source or ""))

    run = subject.run
    return SubjectHashes(
        kernels=tuple(hashed(k.module, k.qualname, k.path) for k in run.kernels),
        launchers=tuple(hashed(x.module, x.qualname, x.path) for x in run.launchers),
        files={places.name_of(path): sha for path, sha in subject.sources.items()},
    )


def _looked_at(then: SubjectHashes, places: Places) -> SubjectHashes:
    paths = {name: places.path_of(name) for name in then.files}
    files = {name: sha256_of(path) for name, path in paths.items() if path is not None}
    texts: dict[str, str] = {}
    for function in (*then.kernels, *then.launchers):
        path = places.path_of(function.file)
        if path is not None and function.file not in texts:
            with contextlib.suppress(SyntaxError, UnicodeDecodeError):
                texts[function.file] = read_source(str(path))

    def again(functions: Iterable[FunctionHash]) -> Iterator[FunctionHash]:
        for one in functions:
            source = source_of(texts.get(one.file, ""), one.name.partition(":")[2])
            yield FunctionHash(one.name, one.file, "" if source is None else text_sha256(source))

    return SubjectHashes(tuple(again(then.kernels)), tuple(again(then.launchers)), files)


def _gate_hashes(
    tables: Mapping[str, GateConfig],
    places: Places,
    elsewhere: Iterable[str],
    read: Mapping[str, GateReads],
    config: Path | None,
    out: Path | None,
) -> dict[str, GateHashes]:
    """Hashes by gate: of the files that its table names and of what it `read`. What is named
    elsewhere in the record is not part of the tree's hash, so that a change shows once and by
    name."""
    if not tables:
        return {}
    elsewhere, root = set(elsewhere), places.root
    by_gate = {
        name: {
            **{places.name_of(str(path)): sha256_of(path) for path in gate_files(table, root)},
            **_hashes_beside(read[name].files, places, elsewhere, config),
        }
        for name, table in tables.items()
    }
    named = {*elsewhere, *(name for files in by_gate.values() for name in files)}
    digest = hashlib.sha256()
    for path in project_files(places.root, but=out):
        name = path.relative_to(places.root).as_posix()
        if path.is_file() and name not in named and path.resolve() != config:
            digest.update(f"{name}\0{sha256_of(path)}\0".encode())
    tree = digest.hexdigest()
    marks = Marks()

    def beside(name: str) -> GateReads:
        """What is no file."""
        reads, switches = read[name], dict.fromkeys(gate_switches(), "")
        variables = dict(sorted({**reads.variables, **switches}.items()))
        beside = GateReads({}, variables, reads.folders, reads.sought)
        return from_root(marks.all_of(beside), str(root))

    return {
        name: GateHashes(files, tree, found.variables, found.folders, found.sought)
        for name, files in by_gate.items()
        for found in (beside(name),)
    }


def _hashes_beside(
    files: Iterable[str], places: Places, elsewhere: Collection[str], config: Path | None
) -> dict[str, str]:
    """Hashes of files that a gate read, by their path from the root, as far as they exist and are
    not named elsewhere in the record."""
    paths = [
        Path(file) for file in files if Path(file).is_file() and Path(file).resolve() != config
    ]
    root = places.root.resolve()
    return {
        Path(os.path.relpath(path.resolve(), root)).as_posix(): sha256_of(path)
        for path in paths
        if places.name_of(str(path)) not in elsewhere
    }


def _read_by(gate: str, subjects: Iterable[PlannedSubject]) -> GateReads:
    """What the gate read on the originals of all subjects."""
    read = (subject.reads.get(gate, GateReads()) for subject in subjects)
    return functools.reduce(operator.or_, read, GateReads())


def _read_then(hashes: GateHashes, root: Path) -> GateReads:
    """What a record says that the gate read, as paths of this tree."""
    names = (name for name in hashes.files if not name.startswith(_MODULE))
    return in_tree(
        GateReads(dict.fromkeys(names, ""), hashes.variables, hashes.folders, hashes.sought),
        str(root),
    )


def _late_now(hashes: GateHashes, root: Path) -> GateReads:
    """What a record says that the gate read on candidates alone, as it is in this tree."""
    return from_root(Marks().all_of(in_tree(hashes.late, str(root))), str(root))


def _files_of(subjects: Mapping[str, SubjectHashes]) -> set[str]:
    return {name for hashes in subjects.values() for name in hashes.files}


def _config_path(config: Config | None) -> Path | None:
    return None if config is None else Path(config.path).resolve()


def _relative_config(config: Config | None) -> str:
    path = _config_path(config)
    if path is None or path == CORPUS_CONFIG.resolve():
        return ""
    return Path(os.path.relpath(path, Path.cwd())).as_posix()


def _versions(operators: Iterable[Operator]) -> dict[str, int]:
    return {operator.name: operator.version for operator in operators}


def _libraries(files: Iterable[str]) -> dict[str, str]:
    """Versions of what gatecert requires, of pytest, and of packages that are under test."""
    from packaging.requirements import Requirement

    wanted = {"pytest"}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for requirement in map(Requirement, importlib.metadata.requires("gatecert") or ()):
            marker = requirement.marker
            if marker is None or marker.evaluate({"extra": ""}):
                wanted.add(requirement.name)
    packages = {
        name.removeprefix(_MODULE).partition(".")[0] for name in files if name.startswith(_MODULE)
    }
    homes = importlib.metadata.packages_distributions() if packages else {}
    wanted |= {distribution for package in packages for distribution in homes.get(package, ())}
    found = {name: _version(name) for name in sorted(wanted)}
    return {name: version for name, version in found.items() if version}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _is_installed(path: Path) -> bool:
    return bool({"site-packages", "dist-packages"} & set(path.parts))
