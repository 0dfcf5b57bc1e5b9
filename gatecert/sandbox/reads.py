"""What code reads besides its own modules: files it opens and environment variables it asks for.

A kernel may be made by a file that is no module of Python's, or by a setting: a verdict on it
depends on them as much as on its source.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, ItemsView, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gatecert.sandbox.imports import is_users

if TYPE_CHECKING:
    from gatecert.gates.reads import GateReads


@dataclass(slots=True)
class Reads:
    """Paths opened, and environment variables that the user's code asked for, while it watches."""

    opened: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)

    def names(self) -> GateReads:
        """What a gate read: files that were opened or imported and are no library's, and
        variables, without their hashes."""
        from gatecert.gates.reads import unhashed

        return unhashed(self.users_files(), self.variables)

    def asked(self) -> list[str]:
        """The variables in order."""
        return sorted(self.variables)

    def users_files(self) -> list[str]:
        """Files that were opened or imported and are no library's."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        imported = {path for path in modules if isinstance(path, str) and path.endswith(".py")}
        return sorted(path for path in self.opened | imported if is_users(path) and _is_file(path))

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
    ask, every = environ.__getitem__, environ.__iter__
    copying: list[Any] = [None]

    def getitem(self: Any, key: Any) -> Any:
        file, place = _asker()
        if isinstance(key, str) and place != copying[0] and mine(file):
            reads.variables.add(key)
        return ask(self, key)

    def iterate(self: Any) -> Any:
        if not isinstance(sys._getframe(1).f_locals.get("self"), ItemsView):
            copying[0] = _asker()[1]
        return every(self)

    environ.__getitem__ = getitem  # type: ignore[method-assign]
    environ.__iter__ = iterate  # type: ignore[method-assign]
    return reads


def _asker() -> tuple[str, tuple[Any, int]]:
    """The file of the code that asked, past the standard library's own layers, and the
    instruction: one that copies all variables only hands them on."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_layer(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, (frame.f_code, frame.f_lasti)


def _is_layer(filename: str) -> bool:
    return filename == os.__file__ or filename.startswith("<frozen")


def _writes(mode: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax")


def _is_file(path: str) -> bool:
    """Whether it is a file that somebody wrote: neither byte code nor an installer's record of a
    package in development, which pytest reads for its plugins."""
    known = Path(path)
    record = known.parent.suffix in (".egg-info", ".dist-info")
    return known.suffix != ".pyc" and not record and known.is_file()
