"""What code reads besides its own modules: files it opens and environment variables it asks for.

A kernel may be made by a file that is no module of Python's, or by a setting: a verdict on it
depends on them as much as on its source.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Reads:
    """Paths opened, and environment variables that the user's code asked for, while it watches."""

    opened: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)

    def files(self, folders: Iterable[str]) -> set[str]:
        """The regular files among the opened ones that lie below any of the folders."""
        tops = tuple(f"{os.path.realpath(folder)}/" for folder in folders)
        return {path for path in self.opened if path.startswith(tops) and _is_file(path)}


def watch_reads(mine: Callable[[str], bool]) -> Reads:
    """Watch from now on, until this process ends: call it in a child.

    `mine` says of a source file that it is the user's: libraries ask for variables of the
    machine. Sees what goes through Python; what a library's own C code opens it does not.
    """
    reads = Reads()

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[0], str) and not _writes(args[1]):
            reads.opened.add(os.path.realpath(args[0]))

    sys.addaudithook(hook)
    environ = type(os.environ)
    ask = environ.__getitem__

    def getitem(self: Any, key: Any) -> Any:
        if isinstance(key, str) and mine(_asker()):
            reads.variables.add(key)
        return ask(self, key)

    environ.__getitem__ = getitem  # type: ignore[method-assign]
    return reads


def _asker() -> str:
    """The file of the code that asked, past the standard library's own layers."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_layer(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename


def _is_layer(filename: str) -> bool:
    return filename == os.__file__ or filename.startswith("<frozen")


def _writes(mode: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax")


def _is_file(path: str) -> bool:
    return Path(path).suffix != ".pyc" and Path(path).is_file()
