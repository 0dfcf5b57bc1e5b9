"""Which lines of which files differ from a git revision: git is asked, and changes nothing.

Git is asked for what a file held; the lines are compared here. A diff of git's own leaves out
what attributes, the index or a submodule hide, and counts lines as git does, not as Python.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from gatecert.errors import EnvironmentFailure, UsageError

Lines: TypeAlias = tuple[range, ...]
"""Line numbers of the file as it is now, counted from 1."""

WHOLE: Lines = (range(1, sys.maxsize),)
# What a person has configured for reading diffs must not change what is read from them here.
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
_PYTHON = ("--", "*.py")


def changed_lines(revision: str, root: Path, paths: Iterable[str]) -> dict[str, Lines]:
    """Lines of `paths` changed since the commit where the current branch left `revision`.

    The working tree counts, and so does a new file, wholly. Where lines were only removed, the
    lines on either side count. A submodule is compared with the commit that it was at. Unchanged
    files are left out, and those of `beyond_git`.

    Raises:
        UsageError: `root` is in no git repository, or the revision is not there to compare with.
        EnvironmentFailure: git is not installed, or failed.
    """
    top = _top(root)
    base = _base(revision, top)
    before = _names_before(_git(top, *_DIFF, "--name-status", "-z", base, *_PYTHON).split("\0"))
    paths = list(paths)
    beyond = set(beyond_git(root, paths))
    found: dict[str, Lines] = {}
    for path in paths:
        if path in beyond:
            continue
        old = _text_before(top, base, before, Path(path).resolve())
        new = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
        lines = WHOLE if old is None else differing_lines(old.split("\n"), new.split("\n"))
        if lines:
            found[path] = lines
    return found


def beyond_git(root: Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` of which git can say nothing: outside the repository of `root`, as
    installed packages are, or ignored there and not tracked."""
    top = _top(root)
    return [path for path in paths if not _is_kept(top, Path(path).resolve())]


def differing_lines(old: Sequence[str], new: Sequence[str]) -> Lines:
    """The lines of `new` that are not in `old`, and those beside what is no longer there."""
    found = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for what, _, _, first, end in matcher.get_opcodes():
        if what == "delete":
            found.append(range(first, first + 2))
        elif what != "equal":
            found.append(range(first + 1, end + 1))
    return tuple(found)


def check_revision(revision: str, root: Path) -> None:
    """Ask git for the revision, before anything slow is done.

    Raises:
        UsageError: `root` is in no git repository, or the revision is not there to compare with.
        EnvironmentFailure: git is not installed.
    """
    _base(revision, _top(root))


def deleted_files(revision: str, root: Path) -> tuple[Path, ...]:
    """Python files of the repository that are gone since that commit; a renamed one is not.

    Raises:
        UsageError, EnvironmentFailure: as `changed_lines`.
    """
    top = _top(root)
    listing = ("--name-only", "--diff-filter=D", "-z", _base(revision, top), *_PYTHON)
    names = _git(top, *_DIFF, *listing).split("\0")
    return tuple(top / name for name in names if name)


def _top(root: Path) -> Path:
    done = _ask(root, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise UsageError(
            f"--in-diff: {root} is in no git repository that git reads "
            f"({_last_line(done.stderr)}); run it in a checkout, or leave --in-diff out"
        )
    return Path(done.stdout.rstrip("\n")).resolve()


def _base(revision: str, top: Path) -> str:
    commit = _ask(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit.returncode:
        raise UsageError(
            f"--in-diff: git knows no revision {revision!r} here; `git fetch` it, or in CI check "
            "out with the whole history (fetch-depth: 0)"
        )
    base = _ask(top, "merge-base", commit.stdout.strip(), "HEAD")
    if base.returncode:
        raise UsageError(
            f"--in-diff: {revision!r} and HEAD have no common commit here; if the clone is "
            "shallow, check out with the whole history (fetch-depth: 0)"
        )
    return base.stdout.strip()


def _names_before(status: list[str]) -> dict[str, str]:
    """Changed files by name, each with the name that it had; deleted ones are left out."""
    names: dict[str, str] = {}
    fields = iter(status)
    for letter in fields:
        if letter[:1] in ("R", "C"):
            old = next(fields)
            names[next(fields)] = old
        elif letter:
            name = next(fields)
            if letter != "D":
                names[name] = name
    return names


def _text_before(top: Path, base: str, before: Mapping[str, str], real: Path) -> str | None:
    """What the file held at the commit; None where it was not there."""
    home = _home(real)
    commit, name = base, real.relative_to(home).as_posix()
    if home == top:
        name = before.get(name, name)
    else:
        # The commit that the submodule was at.
        place = home.relative_to(top).as_posix()
        commit = _ask(top, "rev-parse", "--verify", "--quiet", f"{base}:{place}").stdout.strip()
    shown = _ask(home, "cat-file", "blob", f"{commit}:{name}")
    # Without a commit the name alone would mean the index.
    return shown.stdout if commit and not shown.returncode else None


def _is_kept(top: Path, real: Path) -> bool:
    if not real.is_relative_to(top):
        return False
    home, name = _home(real), str(real)
    tracked = not _ask(home, "ls-files", "--error-unmatch", "--", name).returncode
    return tracked or _ask(home, "check-ignore", "--quiet", "--", name).returncode == 1


def _home(real: Path) -> Path:
    """The top of the repository that the file is in: a submodule's own, where it is in one."""
    return Path(_git(real.parent, "rev-parse", "--show-toplevel").rstrip("\n")).resolve()


def _git(folder: Path, *arguments: str) -> str:
    done = _ask(folder, *arguments)
    if done.returncode:
        raise EnvironmentFailure(
            f"--in-diff: `git {arguments[0]}` failed in {folder}: {_last_line(done.stderr)}"
        )
    return done.stdout


def _ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            # A diff would else refresh the index, which is a file of the user's.
            ["git", "-C", str(folder), "-c", "diff.autoRefreshIndex=false", *arguments],
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise EnvironmentFailure("--in-diff: git is not installed") from None


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]
