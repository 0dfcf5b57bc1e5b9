"""Does a certificate still hold for a tree? By hashes alone: nothing is imported or run."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from gatecert.campaign.records import Environment
from gatecert.certificate.records import Certificate
from gatecert.gates.reads import GateReads
from gatecert.provenance import FunctionHash, GateHashes, Provenance, SubjectHashes

_READERS = {"PYTHON": "Python", "PYTEST": "pytest"}
"""Who reads the environment variables that begin so, whatever the gate does."""


class ChangeKind(str, enum.Enum):
    """What sort of thing is not as it was."""

    CERTIFICATE = "certificate"
    """The document is not what gatecert wrote."""
    CONFIGURATION = "configuration"
    """A key of the configuration that the run was about."""
    KERNEL = "kernel"
    """The source of a kernel, or of a device function that one calls."""
    LAUNCHER = "launcher"
    """The source of a function that launches kernels."""
    FILE = "file"
    """Something else in a file that the code under test imports."""
    GATE = "gate"
    """A file that the team's own gate may read."""
    OPERATORS = "operators"
    """The mutation operators."""
    GATECERT = "gatecert"
    """gatecert itself."""
    ENVIRONMENT = "environment"
    """A version that can change a verdict."""


class Change(msgspec.Struct, frozen=True):
    """One thing that is not as the certificate has it, with short values before and after."""

    kind: ChangeKind
    name: str
    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        if not self.before and not self.after:
            return self.name
        return f"{self.name}: {self.before or 'absent'} -> {self.after or 'absent'}"


def changes(
    certificate: Certificate, now: Provenance, environment: Environment, sha256: str
) -> tuple[Change, ...]:
    """All that is not as it was, by name and each thing once.

    `now` is the tree as it is, `environment` this one, `sha256` the document's hash of itself
    computed anew.
    """
    then = certificate.provenance
    assert then is not None  # the caller has looked
    return (
        *_of_the_document(certificate, sha256),
        *_of_settings(then.settings, now.settings),
        *_of_sources(then, now),
        *_of_gates(then, now),
        *_of_tool(certificate, then, now),
        *_of_environment(certificate.environment, environment, then.libraries, now.libraries),
    )


def changed_sources(then: Provenance, now: Provenance) -> tuple[str, ...]:
    """What differs between two runs apart from their environments, in what both were of."""
    gates = {name: hashes for name, hashes in then.gates.items() if name in now.gates}
    subjects = {name: hashes for name, hashes in then.subjects.items() if name in now.subjects}
    then = msgspec.structs.replace(then, gates=gates, subjects=subjects)
    sections = {
        *(f"gate.{name}." for name in gates),
        *(f"subject.{name}." for name in subjects),
    }
    before, after = (
        {
            key: value
            for key, value in settings.items()
            if not key.startswith(("gate.", "subject.")) or key.startswith(tuple(sections))
        }
        for settings in (then.settings, now.settings)
    )
    found = (*_of_settings(before, after), *_of_sources(then, now), *_of_gates(then, now))
    return tuple(str(change) for change in found)


def _of_the_document(certificate: Certificate, sha256: str) -> Iterator[Change]:
    if certificate.sha256 != sha256:
        name = "the certificate's content does not match its own hash: it was edited or cut"
        yield Change(ChangeKind.CERTIFICATE, name)


def _of_settings(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Change]:
    for key in sorted({*then, *now}):
        if then.get(key) != now.get(key):
            before, after = then.get(key, ""), now.get(key, "")
            yield Change(ChangeKind.CONFIGURATION, f"configuration: {key}", before, after)


def _of_sources(then: Provenance, now: Provenance) -> Iterator[Change]:
    seen: set[Change] = set()
    for subject, hashes in then.subjects.items():
        for change in _of_subject(hashes, now.subjects.get(subject, SubjectHashes())):
            if change not in seen:
                seen.add(change)
                yield change


def _of_subject(then: SubjectHashes, now: SubjectHashes) -> Iterator[Change]:
    by_name = {
        ChangeKind.KERNEL: list(_changed(then.kernels, now.kernels)),
        ChangeKind.LAUNCHER: list(_changed(then.launchers, now.launchers)),
    }
    explained = {one.file for ones in by_name.values() for one in ones}
    for kind, functions in by_name.items():
        for one in functions:
            function = one.name.partition(":")[2]
            gone = one.file not in now.files
            what = "is gone with its file" if gone else "changed"
            yield Change(kind, f"{kind.value} {function} in {one.file} {what}")
    for file, sha256 in then.files.items():
        if now.files.get(file) == sha256 or file in explained:
            continue
        holds = any(one.file == file for one in (*then.kernels, *then.launchers))
        where = " outside its kernels and launchers" if holds else ""
        said = f"{file} changed{where}" if file in now.files else f"{file} is gone"
        yield Change(ChangeKind.FILE, said)


def _changed(then: Iterable[FunctionHash], now: Iterable[FunctionHash]) -> Iterator[FunctionHash]:
    known = {one.name: one.sha256 for one in now}
    return (one for one in then if known.get(one.name) != one.sha256)


def _of_gates(then: Provenance, now: Provenance) -> Iterator[Change]:
    imported = {name for hashes in then.subjects.values() for name in hashes.files}
    for gate, hashes in then.gates.items():
        found = now.gates.get(gate)
        if found is None:
            yield Change(ChangeKind.GATE, f"gate {gate}: the configuration has it no more")
            continue
        yield from _of_files(gate, hashes, found, imported)
        for said in (*_of_late_files(hashes.late, found.late), *_of_reads(hashes, found)):
            yield Change(ChangeKind.GATE, f"gate {gate}: {said}")
        if hashes.tree_sha256 != found.tree_sha256:
            said = "another file of the project, which it may read, changed, came or went"
            yield Change(ChangeKind.GATE, f"gate {gate}: {said}")


def _of_files(gate: str, then: GateHashes, now: GateHashes, imported: set[str]) -> Iterator[Change]:
    for file in sorted({*then.files, *now.files} - imported):
        before, after = then.files.get(file), now.files.get(file)
        if before != after:
            what = "is new" if before is None else "is gone" if after is None else "changed"
            yield Change(ChangeKind.GATE, f"gate {gate}: {file} {what}")


def _of_late_files(then: GateReads, now: GateReads) -> Iterator[str]:
    for file in _differing(then.files, now.files):
        yield f"{file} changed" if now.files[file] else f"{file} is gone"


def _of_reads(then: GateHashes, now: GateHashes) -> Iterator[str]:
    """What else differs of what the gate read. A variable that only one of them has was not set
    for the other; a path that only one run was about is not compared."""
    before, after = then.variables, now.variables
    variables = {n for n in {*before, *after} if before.get(n, "") != after.get(n, "")}
    for name in sorted(variables.union(_differing(then.late.variables, now.late.variables))):
        who = next((who for prefix, who in _READERS.items() if name.startswith(prefix)), "it")
        yield f"the environment variable {name}, which {who} reads, has another value"
    for ours, theirs in ((then, now), (then.late, now.late)):
        for folder in _differing(ours.folders, theirs.folders):
            yield f"a file came or went in {folder}, whose names it reads"
        for path in _differing(ours.sought, theirs.sought):
            is_new, is_gone = not ours.sought[path], not theirs.sought[path]
            what = "is there now" if is_new else "is gone" if is_gone else "is of another kind"
            yield f"{path}, which it looks for, {what}"


def _differing(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return sorted(name for name in then.keys() & now.keys() if then[name] != now[name])


def _of_tool(certificate: Certificate, then: Provenance, now: Provenance) -> Iterator[Change]:
    named = False
    for name, version in then.operators.items():
        after = now.operators.get(name)
        if after != version:
            named = True
            text = "" if after is None else f"version {after}"
            yield Change(ChangeKind.OPERATORS, f"operators: {name}", f"version {version}", text)
    if then.operators_sha256 != now.operators_sha256 and not named:
        yield Change(
            ChangeKind.OPERATORS, "operators: their sources changed, and none of their versions"
        )
    elif then.gatecert_sha256 != now.gatecert_sha256 and not named:
        yield Change(ChangeKind.GATECERT, f"gatecert {certificate.environment.gatecert}: its code")


def _of_environment(
    then: Environment,
    now: Environment,
    libraries: Mapping[str, str],
    found: Mapping[str, str],
) -> Iterator[Change]:
    for name in ("gatecert", "python", "torch", "triton", "numpy", "platform"):
        before, after = getattr(then, name), getattr(now, name)
        if before != after:
            yield Change(ChangeKind.ENVIRONMENT, name, before, after)
    # Where there is none, nobody can say that it would be another.
    if then.gpu and now.gpu and then.gpu != now.gpu:
        yield Change(ChangeKind.ENVIRONMENT, "gpu", then.gpu, now.gpu)
    for name, before in libraries.items():
        said = name in then.__struct_fields__
        if not said and found.get(name, "") != before:
            yield Change(ChangeKind.ENVIRONMENT, name, before, found.get(name, ""))
