"""Hash what a gate read, as the user's tree and environment hold it, and tell whether it changed.

A sandbox says names only: it works on a copy, and in an environment of its own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gatecert.gates.reads import GateReads
from gatecert.sandbox.copy_plan import LEFT_OUT
from gatecert.store.keys import content_mark, text_sha256

_OF_THE_SYSTEM = ("/bin", "/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr", "/var")
_OF_THE_SESSION = frozenset(
    {
        *("_", "COLUMNS", "HOME", "LINES", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHLVL"),
        *("PYTEST_CURRENT_TEST", "TEMP", "TERM", "TMP", "TMPDIR", "USER"),
    }
)
"""Variables that differ from one terminal to the next."""


def hashed(reads: GateReads, tops: Iterable[str]) -> GateReads:
    """The reads with their hashes: of files that the user has, and neither the system, a cache
    nor a temporary file. `tops` are folders whose files count wherever they lie."""
    below = tuple(f"{os.path.realpath(top)}/" for top in tops)
    files = (path for path in reads.files if _counts(path, below))
    return GateReads(
        {path: content_mark(Path(path)) for path in sorted(files)},
        {name: variable_sha256(name) for name in sorted({*reads.variables} - _OF_THE_SESSION)},
    )


def hold(reads: GateReads) -> bool:
    """Is all that was read as it was?"""
    return all(content_mark(Path(path)) == mark for path, mark in reads.files.items()) and all(
        variable_sha256(name) == mark for name, mark in reads.variables.items()
    )


def variable_sha256(name: str) -> str:
    """Hash of an environment variable's value; "" where it is not set."""
    value = os.environ.get(name)
    return "" if value is None else text_sha256(value)


def _counts(path: str, below: tuple[str, ...]) -> bool:
    parts = Path(path).parts
    if not LEFT_OUT.isdisjoint(parts) or not Path(path).is_file():
        return False
    if path.startswith(below):
        return True
    elsewhere = (*_OF_THE_SYSTEM, sys.prefix, sys.base_prefix, tempfile.gettempdir())
    hidden = any(part.startswith(".") for part in parts)
    return not hidden and not path.startswith(tuple(f"{os.path.realpath(f)}/" for f in elsewhere))
