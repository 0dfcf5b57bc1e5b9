"""Which lines of which files differ from a git revision: git is asked, and changes nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from gatecert.errors import EnvironmentFailure, UsageError

Lines: TypeAlias = tuple[range, ...]
"""Line numbers of the file as it is now, counted from 1."""

WHOLE: Lines = (range(1, sys.maxsize),)
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
# What a person has configured for reading diffs must not change what is read from them here.
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
_BARE = ("--unified=0", "--inter-hunk-context=0")
_PYTHON = ("--", "*.py")


def changed_lines(revision: str, root: Path, paths: Iterable[str]) -> dict[str, Lines]:
    """Lines of `paths` changed since the commit where the current branch left `revision`.

    The working tree counts, and so does a new file, wholly, unless git ignores it. Where lines
    were only removed, the lines on either side count. Unchanged files are left out.

    Raises:
        UsageError: `root` is in no git repository, or the revision is not there to compare with.
        EnvironmentFailure: git is not installed, or failed.
    """
    top = _top(root)
    base = _base(revision, top)
    status = _git(top, *_DIFF, "--name-status", "-z", base, *_PYTHON).split("\0")
    before = _names_before(status)
    untracked = set(
        _git(top, "ls-files", "--others", "--exclude-standard", "-z", *_PYTHON).split("\0")
    )
    found: dict[str, Lines] = {}
    for path in paths:
        name = _name_in(top, path)
        if not name:
            continue
        if name in untracked:
            found[path] = WHOLE
        elif name in before:
            files = dict.fromkeys((f":(top,literal){before[name]}", f":(top,literal){name}"))
            lines = _added(_git(top, *_DIFF, *_BARE, base, "--", *files))
            if lines:
                found[path] = lines
    return found


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


def _added(diff: str) -> Lines:
    found = []
    for start, count in _HUNK.findall(diff):
        first, lines = int(start), int(count or 1)
        # "+9,0": nothing stands where something stood after line 9.
        found.append(range(first, first + lines) if lines else range(first, first + 2))
    return tuple(found)


def _name_in(top: Path, path: str) -> str:
    """The file as git names it, or "" where it lies outside the repository."""
    real = Path(path).resolve()
    return real.relative_to(top).as_posix() if real.is_relative_to(top) else ""


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
