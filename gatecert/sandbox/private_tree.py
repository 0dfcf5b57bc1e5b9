"""A copy of the user's project for gates to run in, since a gate may do anything to its files.

The copy mirrors absolute paths below one temporary folder, so that a path in a message becomes
the user's own when that folder's name is cut off. Below each root everything is copied, with
these exceptions: caches, repositories' data and gatecert's own results are left out; virtual
environments and what the user excludes are links to the originals. Above a root, up to the
top of its repository, files are copied and folders are links, so that configuration files are
found where they are expected.

A process moves into the copy by its working folder, `sys.path`, finders and environment
(`placing`). Landlock or a mount namespace would also hold a gate that writes to an absolute path
of its own making, but they exist on some machines only, and a verdict may not depend on them.

After every child the copy is compared with what it was, and put right where it differs. Every
copy lies in the temporary folder of the process that serves it, and goes with that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TypeAlias

from gatecert.errors import EnvironmentFailure
from gatecert.sandbox.copy_plan import LEFT_OUT, outermost, plan_copy, repository_of
from gatecert.sandbox.placing import Placing

_NAMED_IN_NOTE = 3

Mark: TypeAlias = tuple[str | int, ...]
"""What tells whether a file, folder or link is still what it was."""


class PrivateTree:
    """The copy, and what is needed to keep it as it is."""

    def __init__(self, folder: str, roots: Sequence[str], exclude: Iterable[str] = ()) -> None:
        self.scratch = f"{folder}/tmp"
        """Where temporary files of children go; emptied after each."""
        bases = [repository_of(root) for root in roots]
        self.placing = Placing(f"{os.path.realpath(folder)}/tree", tuple(bases))
        self._entries = dict(plan_copy(self.placing.tree, roots, bases, frozenset(exclude)))
        Path(self.scratch).mkdir()
        for path, entry in self._entries.items():
            try:
                entry.make(path)
            except OSError as error:
                raise EnvironmentFailure(
                    f"{entry.source} cannot be copied for the gate to work on "
                    f"({error.strerror}); name it in exclude of the gate's table to use it in place"
                ) from None
        self._marks = _marks_below(self.placing.tree)
        self._changed: set[str] = set()

    def restore(self) -> None:
        """Put right whatever is not as it was, and empty the scratch folder."""
        _empty(self.scratch)
        now = _marks_below(self.placing.tree)
        if now == self._marks:
            return
        for path in {**self._marks, **now}:
            if now.get(path) != self._marks.get(path):
                _remove(path)
                if LEFT_OUT.isdisjoint(path.split("/")):
                    self._changed.add(self.placing.unplace(path))
        for path, entry in self._entries.items():
            if not os.path.lexists(path):
                entry.make(path)
        self._marks = _marks_below(self.placing.tree)

    def notes(self) -> tuple[str, ...]:
        """What a user should know of what gates did to the files since this was asked last."""
        paths = sorted(self._changed)
        self._changed.clear()
        if not paths:
            return ()
        named = ", ".join(paths[:_NAMED_IN_NOTE])
        more = f" and {len(paths) - _NAMED_IN_NOTE} more" if len(paths) > _NAMED_IN_NOTE else ""
        return (f"it changes files ({named}{more}): every candidate starts from a clean copy",)


_IN_FORCE: ContextVar[PrivateTree | None] = ContextVar("private_tree", default=None)
_PLACING: ContextVar[Placing | None] = ContextVar("placing", default=None)
"""That of the tree in force; also in a process that only works in one."""


@contextlib.contextmanager
def private_tree(roots: Iterable[str], exclude: Iterable[str] = ()) -> Iterator[PrivateTree]:
    """A private copy of the folders, in force inside; its files are gone at the end.

    Raises:
        UsageError: there is too much to copy.
        EnvironmentFailure: a file cannot be read.
    """
    folder = tempfile.mkdtemp(prefix="shard-")
    try:
        in_place = {os.path.realpath(path) for path in exclude}
        copied = [root for root in outermost(roots) if root not in in_place]
        tree = PrivateTree(folder, copied, in_place)
        token, placed = _IN_FORCE.set(tree), _PLACING.set(tree.placing)
        try:
            yield tree
        finally:
            _IN_FORCE.reset(token)
            _PLACING.reset(placed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def restore_tree() -> None:
    """Put the tree in force right, if there is one."""
    tree = _IN_FORCE.get()
    if tree is not None:
        tree.restore()


def use_scratch() -> None:
    """From now on this process puts temporary files where the tree in force empties them."""
    tree = _IN_FORCE.get()
    if tree is not None:
        os.environ["TMPDIR"] = tempfile.tempdir = tree.scratch


def tree_notes() -> tuple[str, ...]:
    """As `PrivateTree.notes`, of the tree in force."""
    tree = _IN_FORCE.get()
    return () if tree is None else tree.notes()


def adopt_placing(placing: Placing) -> None:
    """This process works in the tree of another one, which alone puts it right: from now on paths
    can be told as the user knows them."""
    _PLACING.set(placing)


def placing_in_force() -> Placing | None:
    """Where the copies lie, if there is a tree in force."""
    return _PLACING.get()


def users_path(path: str) -> str:
    """A path as the user knows it."""
    placing = _PLACING.get()
    return path if placing is None else placing.unplace(path)


def is_lasting(path: str) -> bool:
    """Is it a file that the user has, and not one that a gate wrote into its private copy or its
    scratch folder, or has removed?"""
    tree = _IN_FORCE.get()
    if tree is not None and path.startswith(f"{tree.scratch}/"):
        return False
    return Path(path).is_file() and Path(users_path(path)).is_file()


def _marks_below(folder: str) -> dict[str, Mark]:
    """The state of every path below, links not followed, folders before what is in them."""
    marks: dict[str, Mark] = {}
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    marks[entry.path] = _mark(entry)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except OSError:  # unreadable now: its mode has changed, so it is made anew
            continue
    return marks


def _mark(entry: os.DirEntry[str]) -> Mark:
    found = entry.stat(follow_symlinks=False)
    if stat.S_ISDIR(found.st_mode):
        # Its times change when a file comes and goes again.
        return ("folder", found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return ("link", str(Path(entry.path).readlink()))
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return ("file", found.st_mode, found.st_size, found.st_ino, *times)


def _empty(folder: str) -> None:
    if os.path.lexists(folder) and not Path(folder).is_dir():
        _remove(folder)
    Path(folder).mkdir(exist_ok=True)
    for path in Path(folder).iterdir():
        _remove(str(path))


def _remove(path: str) -> None:
    """Remove a file, a link or a whole folder, writable or not."""
    if not os.path.lexists(path):
        return
    if Path(path).is_symlink() or not Path(path).is_dir():
        Path(path).unlink()
        return
    for folder, folders, _ in os.walk(path):
        for place in (Path(folder), *(Path(folder, name) for name in folders)):
            if not place.is_symlink():
                with contextlib.suppress(OSError):
                    place.chmod(stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
