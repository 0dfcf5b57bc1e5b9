"""Hash what a gate read, as the user's tree and environment hold it, and tell whether it changed.

A sandbox says names only: it works on a copy, and in an environment of its own.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gatecert.gates.reads import KINDS, GateReads, unhashed
from gatecert.sandbox.copy_plan import LEFT_OUT, is_left_out
from gatecert.store.keys import LARGE_BYTES, text_sha256

_OF_THE_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr", "/var")
_OF_THE_SESSION = frozenset(
    {
        *("_", "COLUMNS", "HOME", "LINES", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHLVL"),
        *("PYTEST_CURRENT_TEST", "TEMP", "TERM", "TMP", "TMPDIR", "USER"),
    }
)
"""Variables that differ from one terminal to the next."""


class Marks:
    """Marks of what was read as it is now; each is looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def of(self, kind: str, name: str) -> str:
        """The mark of a file, variable, folder or path, by the field of `GateReads`."""
        if (kind, name) not in self._known:
            self._known[kind, name] = _LOOKING[kind](name)
        return self._known[kind, name]

    def all_of(self, reads: GateReads) -> GateReads:
        """The same names with their marks."""
        return GateReads(
            *({name: self.of(kind, name) for name in getattr(reads, kind)} for kind in KINDS)
        )


def hashed(reads: GateReads, tops: Iterable[str]) -> GateReads:
    """The reads with their marks: of what the user has, and neither the system, a cache nor a
    temporary file. `tops` are folders whose files count wherever they lie. A file that only the
    gate's copy had is a path that it looked for."""
    below = tuple(f"{os.path.realpath(top)}/" for top in tops)
    files, folders, sought = (
        {path for path in names if _counts(path, below)}
        for names in (reads.files, reads.folders, reads.sought)
    )
    there = {path for path in files if Path(path).is_file()}
    found = unhashed(
        there,
        {*reads.variables} - _OF_THE_SESSION,
        folders,
        (sought | files) - there,
    )
    return Marks().all_of(found)


def hold(reads: GateReads, marks: Marks | None = None) -> bool:
    """Is all that was read as it was? `marks` are those that somebody has looked at already."""
    return (marks or Marks()).all_of(reads) == reads


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes, however many they are; a large one is read again only once its
    size or time of change is another."""
    status = path.stat()
    if status.st_size > LARGE_BYTES:
        return _sha256_once(path, status.st_size, status.st_mtime_ns)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.lru_cache(maxsize=1024)
def _sha256_once(path: Path, size: int, mtime_ns: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(LARGE_BYTES):
            digest.update(part)
    return digest.hexdigest()


def _variable_sha256(name: str) -> str:
    """Hash of an environment variable's value; "" where it is not set."""
    value = os.environ.get(name)
    return "" if value is None else text_sha256(value)


def _file_mark(path: str) -> str:
    return sha256_of(Path(path)) if Path(path).is_file() else ""


def _names_sha256(folder: str) -> str:
    """Hash of the names that a gate sees in the folder; "" where there is none."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not is_left_out(entry))
    except OSError:
        return ""
    return text_sha256("\0".join(name for name in names if not name.endswith(".pyc")))


def _kind_of(path: str) -> str:
    """What is there."""
    known = Path(path)
    return "file" if known.is_file() else "folder" if known.is_dir() else ""


_LOOKING = {
    "files": _file_mark,
    "variables": _variable_sha256,
    "folders": _names_sha256,
    "sought": _kind_of,
}


def _counts(path: str, below: tuple[str, ...]) -> bool:
    parts = Path(path).parts
    if not LEFT_OUT.isdisjoint(parts):
        return False
    if path.startswith(below):
        return True
    elsewhere = (*_OF_THE_SYSTEM, sys.prefix, sys.base_prefix, tempfile.gettempdir())
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and not path.startswith(tuple(f"{os.path.realpath(f)}/" for f in elsewhere))
