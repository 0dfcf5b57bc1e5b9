"""What a run was of, as hashes: kernels, gates, configuration, operators, libraries.

Files are named by their path relative to the folder of the configuration; a file of an installed
package by `module:` and its dotted name. No absolute path is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from gatecert.gates.reads import GateReads


class FunctionHash(msgspec.Struct, frozen=True):
    """A kernel or launcher: `module:qualname`, its file, and the hash of its source text,
    decorators included."""

    name: str
    file: str
    sha256: str


class SubjectHashes(msgspec.Struct, frozen=True):
    """What a subject's verdicts rest on."""

    kernels: tuple[FunctionHash, ...] = ()
    """Those launched, and all device functions that they call."""
    launchers: tuple[FunctionHash, ...] = ()
    files: dict[str, str] = {}
    """Every file that importing the entry imports, libraries aside, with its hash."""


class GateHashes(msgspec.Struct, frozen=True):
    """What a gate of the team's own may read."""

    files: dict[str, str] = {}
    """The files that its table names, test files and conftest.py first of all, and those that it
    imported or opened on the original."""
    tree_sha256: str = ""
    """One hash over every other file of the project that is no prose, log or cache."""
    variables: dict[str, str] = {}
    """Environment variables that it asked for on the original, and those that change Python and
    pytest, with the hash of their value; "" where one was not set."""
    folders: dict[str, str] = {}
    """Folders whose names it read on the original, with a hash of the names."""
    sought: dict[str, str] = {}
    """Paths that it looked for there: "file", "folder", or "" where there was nothing."""
    late: GateReads = GateReads()
    """What it read of all this on candidates alone."""


class Provenance(msgspec.Struct, frozen=True):
    """All of it. `config` is the configuration's path from where the run was started, "" for the
    built-in corpus; `settings` are its keys with their values as JSON; those of subjects and
    gates that took no part are left out, and what is as by default."""

    config: str = ""
    settings: dict[str, str] = {}
    subjects: dict[str, SubjectHashes] = {}
    gates: dict[str, GateHashes] = {}
    operators: dict[str, int] = {}
    """Version of every operator that was asked for."""
    operators_sha256: str = ""
    gatecert_sha256: str = ""
    """gatecert's own code and data, all that a judging process can import."""
    libraries: dict[str, str] = {}
    """Versions of the libraries that gatecert, the gates and the code under test rest on."""


def with_late(provenance: Provenance, reads: Mapping[str, GateReads], root: str) -> Provenance:
    """The record with what each gate read on candidates and not on the original, by gate; `reads`
    has paths from the machine's own root."""
    sources = {name: "" for hashes in provenance.subjects.values() for name in hashes.files}

    def late(gate: str, hashes: GateHashes) -> GateReads:
        known = GateReads(
            {**sources, **hashes.files}, hashes.variables, hashes.folders, hashes.sought
        )
        return from_root(reads.get(gate, GateReads()), root).beyond(known)

    gates = {
        name: msgspec.structs.replace(hashes, late=late(name, hashes))
        for name, hashes in provenance.gates.items()
    }
    return msgspec.structs.replace(provenance, gates=gates)


def from_root(reads: GateReads, root: str) -> GateReads:
    """The reads with their paths as they are called from the folder of the configuration."""
    real = os.path.realpath(root)
    return _renamed(reads, lambda path: Path(os.path.relpath(path, real)).as_posix())


def in_tree(reads: GateReads, root: str) -> GateReads:
    """The reads of a record with their paths in the tree at `root`."""
    return _renamed(reads, lambda name: os.path.realpath(Path(root, name)))


def _renamed(reads: GateReads, rename: Callable[[str], str]) -> GateReads:
    files, folders, sought = (
        {rename(name): mark for name, mark in names.items()}
        for names in (reads.files, reads.folders, reads.sought)
    )
    return GateReads(files, dict(reads.variables), folders, sought)
