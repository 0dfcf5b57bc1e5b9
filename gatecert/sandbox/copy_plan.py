"""What of a project is copied, linked or left out when gates get a copy of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gatecert.errors import EnvironmentFailure, UsageError
from gatecert.results_folder import is_results

_LIMIT_BYTES = 512 << 20
_SMALL_BYTES = 1 << 20
"""Of files above a root: larger ones are linked."""
_MB = 1 << 20
LEFT_OUT = frozenset(
    {
        *(".git", ".hg", ".svn", "__pycache__"),
        *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".import_linter_cache"),
    }
)
"""Names of caches and of repositories' data."""
_LINKED = frozenset({"node_modules", ".tox", ".nox"})
_ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
_OUR_TEMPORARY = ("gatecert-run-", "gatecert-sandbox-", "gatecert-compile-")


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands at one place of the copy: a folder, a file or a link, and what it is made of."""

    kind: str
    source: str

    def make(self, path: str) -> None:
        """Make it."""
        if self.kind == "folder":
            folder = Path(path)
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(OSError):
                shutil.copystat(self.source, folder)
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)
        elif self.kind == "file":
            shutil.copy2(self.source, path, follow_symlinks=False)
        else:
            Path(path).symlink_to(self.source)


def outermost(roots: Iterable[str]) -> list[str]:
    """Real paths of the folders, those left out that lie below another."""
    real = sorted({os.path.realpath(root) for root in roots if Path(root).is_dir()})
    return [one for one in real if not any(_is_below(one, other) for other in real)]


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def repository_of(root: str) -> str:
    """The nearest folder at or above a root that holds `.git`; else the root itself."""
    for folder in (root, *map(str, Path(root).parents)):
        if os.path.lexists(f"{folder}/.git"):
            return folder
    return root


def plan_copy(
    tree: str, roots: Sequence[str], bases: Sequence[str], exclude: frozenset[str]
) -> Iterator[tuple[str, Entry]]:
    """Every place of the copy and what stands there, folders before what is in them."""
    planned: dict[str, Entry] = {}
    for root in roots:
        for above in reversed(Path(root).parents):
            planned.setdefault(tree + str(above).rstrip("/"), Entry("folder", str(above)))
        planned[tree + root] = Entry("folder", root)
        sizes: dict[str, int] = {}
        for entry in _below(root, exclude):
            planned[tree + entry.path] = found = _entry_of(entry, tree, exclude, roots)
            if found.kind == "file":
                top = entry.path[len(root) :].lstrip("/").partition("/")[0]
                sizes[top] = sizes.get(top, 0) + entry.stat(follow_symlinks=False).st_size
                _check_size(root, sizes)
    for root, base in zip(roots, bases, strict=True):
        for folder in map(str, Path(root).parents):
            if folder == base or _is_below(folder, base):
                for entry in _sorted(folder):
                    if not is_left_out(entry):
                        planned.setdefault(tree + entry.path, _beside(entry))
    yield from planned.items()


def _below(folder: str, exclude: frozenset[str]) -> Iterator[os.DirEntry[str]]:
    for entry in _sorted(folder):
        if is_left_out(entry):
            continue
        yield entry
        if entry.is_dir(follow_symlinks=False) and not _is_used_in_place(entry, exclude):
            yield from _below(entry.path, exclude)


def _sorted(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise EnvironmentFailure(
            f"{folder} cannot be copied for the gate to work on ({error.strerror}); name it in "
            "exclude of the gate's table to use it in place"
        ) from None


def is_left_out(entry: os.DirEntry[str]) -> bool:
    """Is it in no copy: a cache, a repository's data, our own results, or no file at all?"""
    if entry.name in LEFT_OUT or entry.name.startswith(_OUR_TEMPORARY):
        return True
    if entry.is_symlink():
        return False
    if entry.is_dir():
        return is_results(Path(entry.path))
    return not entry.is_file()


def _is_used_in_place(entry: os.DirEntry[str], exclude: frozenset[str]) -> bool:
    if entry.name in _LINKED or entry.path in exclude:
        return True
    return entry.is_dir(follow_symlinks=False) and any(
        os.path.lexists(f"{entry.path}/{mark}") for mark in _ENVIRONMENT_MARKS
    )


def _entry_of(
    entry: os.DirEntry[str], tree: str, exclude: frozenset[str], roots: Sequence[str]
) -> Entry:
    if _is_used_in_place(entry, exclude):
        return Entry("link", entry.path)
    if entry.is_symlink():
        link = Path(entry.path)
        target = str(link.readlink())
        place = os.path.normpath(link.parent / target)
        if not any(place == root or _is_below(place, root) for root in roots):
            return Entry("link", place)
        return Entry("link", tree + target if target.startswith("/") else target)
    return Entry("folder" if entry.is_dir() else "file", entry.path)


def _beside(entry: os.DirEntry[str]) -> Entry:
    if entry.is_file(follow_symlinks=False) and entry.stat().st_size <= _SMALL_BYTES:
        return Entry("file", entry.path)
    return Entry("link", entry.path)


def _check_size(root: str, sizes: dict[str, int]) -> None:
    if sum(sizes.values()) <= _LIMIT_BYTES:
        return
    largest = sorted(sizes.items(), key=lambda pair: -pair[1])[:3]
    named = ", ".join(f"{name} (over {size // _MB} MB)" for name, size in largest)
    raise UsageError(
        f"a gate runs in a private copy of {root}, which holds more than {_LIMIT_BYTES // _MB} MB: "
        f"{named}; name what need not be copied in exclude of the gate's table, as in "
        f"exclude = ['{root}/{largest[0][0]}'], and it is read in place"
    )
