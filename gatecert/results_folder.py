"""Folders of results: what in them is gatecert's, and what is a stranger there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_STORE = "gatecert.sqlite"
_MARKS = frozenset({_STORE, ".gatecert.lock"})
_OWN = re.compile(
    r"gatecert\.sqlite(-wal|-shm|-journal)?|\.gatecert\.lock|\.gitignore|codes"
    r"|(certificate|report|controls|hunts)(-r\d+)?\.(json|md)|\..+\.partial"
)


def is_results(folder: Path) -> bool:
    """Does the folder hold results and nothing that a gate could need? What an old lock or store
    was left in is no such folder."""
    return any(os.path.lexists(folder / mark) for mark in _MARKS) and not strangers(folder)


def strangers(folder: Path) -> list[str]:
    """Names of what is not gatecert's in a folder. Beside a store other results may lie, as
    JUnit's or a log, and folders of results; code may not."""
    if not folder.is_dir():
        return []
    beside_store = os.path.lexists(folder / _STORE)
    return sorted(
        path.name
        for path in _others(folder)
        if not beside_store or path.suffix == ".py" or path.is_dir()
    )


def _others(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        own = _OWN.fullmatch(path.name) or path.name == "__pycache__"
        if not own and not (path.is_dir() and is_results(path)):
            yield path
