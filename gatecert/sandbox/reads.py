"""What code reads besides its own modules: files that it opens, folders that it lists, paths that
it looks for, and environment variables that it asks for.

A kernel may be made by a file that is no module of Python's, or by a setting: a verdict on it
depends on them as much as on its source.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sys
from collections.abc import Callable, Collection, ItemsView, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from gatecert.sandbox.imports import is_gatecerts, is_users

if TYPE_CHECKING:
    from gatecert.gates.reads import GateReads

_LISTING = frozenset({"os.listdir", "os.scandir"})
_MAKING = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}
"""Events that make a path, with the place of it among their arguments."""
_PROBES: dict[str, Callable[..., Any]] = {
    "stat": os.stat,
    "lstat": os.lstat,
    "access": os.access,
}
_MEMBERSHIPS = (
    *("supports_dir_fd", "supports_effective_ids", "supports_fd"),
    "supports_follow_symlinks",
)
_RESOLVING = frozenset({"realpath", "_joinrealpath"})
_is_users = functools.cache(is_users)
_real = functools.cache(os.path.realpath)


@dataclass(slots=True)
class Reads:
    """Absolute paths and variables, while it watches. `sought` are paths that somebody asked
    whether they are there, or tried to open; `made` those that this process made itself, before
    it read them: what they hold is its own. `known` are the modules that were there before; `mine`
    says of a source file that it is the user's."""

    opened: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    sought: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    known: frozenset[str] = frozenset()
    mine: Callable[[str], bool] = _is_users

    def names(self, *, modules: bool = True) -> GateReads:
        """What a gate read that is no library's, without hashes. `modules` counts those that
        were imported before it was watched too."""
        from gatecert.gates.reads import unhashed

        files = self.users_files(() if modules else self.known)
        return unhashed(files, self.variables, self.users_folders(), self.users_sought(files))

    def asked(self) -> list[str]:
        """The variables in order."""
        return sorted(self.variables)

    def users_files(self, but: Collection[str] = ()) -> list[str]:
        """Files that were opened or imported and are no library's; modules of the names `but`
        aside."""
        modules = [module for name, module in list(sys.modules.items()) if name not in but]
        files = (getattr(module, "__file__", None) for module in modules)
        imported = {path for path in files if isinstance(path, str) and path.endswith(".py")}
        return sorted(path for path in _users(self.opened | imported) if _is_file(path))

    def users_folders(self) -> list[str]:
        """Folders that were listed and are no library's."""
        return sorted({_real(path) for path in self.listed if _is_users(f"{path}/x")})

    def users_sought(self, files: Collection[str] = ()) -> list[str]:
        """Paths that were sought, are no library's, and are none of the files."""
        found = {path for path in _users(self.sought) if _is_written(path)}
        return sorted(found.difference(files))

    def files(self, folders: Iterable[str]) -> set[str]:
        """The regular files among the opened ones that lie below any of the folders."""
        tops = tuple(f"{os.path.realpath(folder)}/" for folder in folders)
        real = map(_real, self.opened)
        return {path for path in real if path.startswith(tops) and _is_file(path)}

    def note_open(self, path: str, mode: Any, flags: int, caller: FrameType | None) -> None:
        """Note that a file is opened. A failing `os.open` may be relative to any folder."""
        if path in self.opened or path in self.made:
            return
        if _makes(path, mode, flags):
            self.made.add(path)
        elif not _writes(mode):
            self.opened.add(path)
            if isinstance(mode, str) and not _is_there(path):
                self.note_sought(path, caller)

    def note_listed(self, path: str, caller: FrameType | None) -> None:
        """Note that the names in a folder are read, if it is for the user's code."""
        if path not in self.listed and path not in self.made and self._is_asking(caller):
            self.listed.add(path)

    def note_sought(self, path: str, caller: FrameType | None) -> None:
        """Note that somebody asks whether there is such a path, if it is for the user's code."""
        if path in self.sought or path in self.made or path.rpartition("/")[0] in self.made:
            return
        if self._is_asking(caller):
            self.sought.add(path)

    def note_made(self, path: str) -> None:
        """Note that a path is made, where there was none."""
        if not _is_there(path):
            self.made.add(path)

    def _is_asking(self, caller: FrameType | None) -> bool:
        """Is it for code of the user's, and neither for gatecert nor to find a module?"""
        frame = caller
        while frame is not None:
            name = frame.f_code.co_filename
            if name.startswith("<frozen importlib"):
                return False
            if self.mine(name) or is_gatecerts(name):
                return self.mine(name)
            frame = frame.f_back
        return False


def watch_reads(mine: Callable[[str], bool]) -> Reads:
    """Watch from now on, until this process ends: call it in a child.

    `mine` says of a source file that it is the user's: libraries ask for variables of the
    machine. Sees what goes through Python; what a library's own C code opens it does not.
    """
    mine = _is_users if mine is is_users else functools.cache(mine)
    reads = Reads(known=frozenset(sys.modules), mine=mine)
    sys.addaudithook(functools.partial(_note, reads))
    _watch_variables(reads)
    _watch_probes(reads)
    return reads


def _note(reads: Reads, event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: it is called for every event of this process."""
    if event == "open":
        if path := _path_of(args[0]):
            reads.note_open(path, args[1], args[2], _caller())
    elif event in _LISTING:
        if folder := _path_of("." if args[0] is None else args[0]):
            reads.note_listed(folder, _caller())
    elif event in _MAKING and (path := _path_of(args[_MAKING[event]])):
        reads.note_made(path)


def _caller() -> FrameType | None:
    """The frame that caused an event; Python opens a script before there is any."""
    return sys._getframe(1).f_back


def _watch_variables(reads: Reads) -> None:
    """`os.environ` and `os.environb` are of one class."""
    environ = type(os.environ)
    ask, every = environ.__getitem__, environ.__iter__
    copying: list[Any] = [None]

    def getitem(self: Any, key: Any) -> Any:
        file, place = _asker()
        if isinstance(key, str | bytes) and place != copying[0] and reads.mine(file):
            reads.variables.add(os.fsdecode(key))
        return ask(self, key)

    def iterate(self: Any) -> Any:
        if not isinstance(sys._getframe(1).f_locals.get("self"), ItemsView):
            copying[0] = _asker()[1]
        return every(self)

    environ.__getitem__ = getitem  # type: ignore[method-assign]
    environ.__iter__ = iterate  # type: ignore[method-assign]


def _watch_probes(reads: Reads) -> None:
    """No event tells of `os.stat` and its like, behind which are `exists`, `is_file` and all
    others that ask whether a path is there. Who watched before sees no more of them."""
    for name, before in _PROBES.items():
        probe = _noting(before, reads)
        setattr(os, name, probe)
        # What looks a function up in these sets would take it for one that can do less.
        for members in (getattr(os, known) for known in _MEMBERSHIPS):
            if before in members:
                members.add(probe)
    accessor = getattr(pathlib, "_NormalAccessor", None)
    if accessor is not None:  # of Python 3.10, which keeps the functions that it found
        accessor.stat = staticmethod(os.stat)


def _noting(probe: Callable[..., Any], reads: Reads) -> Callable[..., Any]:
    @functools.wraps(probe)
    def noted(path: Any, *args: Any, **options: Any) -> Any:
        caller = sys._getframe(1)
        # A path is resolved by a look at every folder above it.
        resolving = caller.f_code.co_name in _RESOLVING
        if options.get("dir_fd") is None and not resolving and (asked := _path_of(path)):
            reads.note_sought(asked, caller)
        return probe(path, *args, **options)

    return noted


def _asker() -> tuple[str, tuple[Any, int]]:
    """The file of the code that asked, past the standard library's own layers, and the
    instruction: one that copies all variables only hands them on."""
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_layer(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, (frame.f_code, frame.f_lasti)


def _is_layer(filename: str) -> bool:
    return filename == os.__file__ or filename.startswith("<frozen")


def _path_of(argument: Any) -> str:
    """The path that a function was given, from the root; "" for what is none, as a number is."""
    if not isinstance(argument, str | bytes | os.PathLike):
        return ""
    path = os.fsdecode(argument)
    if "\0" in path:
        return ""
    try:
        return path if path.startswith("/") else f"{Path.cwd()}/{path}"
    except OSError:  # the working folder is gone
        return ""


def _users(paths: Iterable[str]) -> set[str]:
    """The real paths of those that are no library's."""
    return {_real(path) for path in paths if _is_users(path)}


def _is_there(path: str) -> bool:
    try:
        _PROBES["lstat"](path)
    except (OSError, ValueError):
        return False
    return True


def _makes(path: str, mode: Any, flags: int) -> bool:
    """Does opening it so make the file anew?"""
    if isinstance(mode, str):
        return "w" in mode or (_writes(mode) and not _is_there(path))
    return bool(flags & os.O_TRUNC) or (bool(flags & os.O_CREAT) and not _is_there(path))


def _writes(mode: Any) -> bool:
    return isinstance(mode, str) and any(letter in mode for letter in "wax")


def _is_file(path: str) -> bool:
    return _is_written(path) and Path(path).is_file()


def _is_written(path: str) -> bool:
    """Whether somebody wrote it: neither byte code nor an installer's record of a package in
    development, which pytest reads for its plugins."""
    known = Path(path)
    record = known.parent.suffix in (".egg-info", ".dist-info")
    return known.suffix != ".pyc" and not record
