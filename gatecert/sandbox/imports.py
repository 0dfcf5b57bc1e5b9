"""Whose modules are loaded in this process, and how to forget those of the code under test."""

from __future__ import annotations

import functools
import os
import stat
import sys
import sysconfig
from collections.abc import Collection, Iterable
from pathlib import Path

_LIBRARIES = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) + "/"
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
)
_PACKAGE = Path(__file__).resolve().parents[1]
_GATECERT = tuple(
    f"{folder.resolve()}/"
    for folder in (_PACKAGE, *(path for path in _PACKAGE.iterdir() if path.is_symlink()))
)
"""A checkout has some of its packages behind links."""
_lstat = os.lstat
"""As it is before anybody watches it: what watches asks here whose code it sees."""


def is_users(path: str | None) -> bool:
    """Is it a source file of neither Python, an installed library nor gatecert?

    Some libraries name a `__file__` that is no path: those are not the user's.
    """
    if path is None or not path.startswith("/"):
        return False
    folder, _, name = path.rpartition("/")
    whole = _is_link(path) or name in {"", ".", ".."}
    real = os.path.realpath(path) if whole else f"{_real_folder(folder or '/')}/{name}"
    return not real.startswith((*_LIBRARIES, *_GATECERT))


@functools.cache
def is_gatecerts(filename: str) -> bool:
    """Is it source code of gatecert's?"""
    return filename.startswith(_GATECERT)


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(_lstat(path).st_mode)
    except (OSError, ValueError):
        return False


@functools.cache
def _real_folder(folder: str) -> str:
    """Asked for thousands of modules in some hundred folders."""
    return os.path.realpath(folder)


def forget_user_modules(before: Collection[str], overlaid: Iterable[str]) -> None:
    """Drop modules imported since `before` that belong to the code under test.

    A server that has imported a user's reference has imported the package around it, kernels
    included; a candidate's child must import that package anew to see its overlay. The
    reference itself lives on in the operation that holds it. `overlaid` are the files that
    candidates replace: their packages are forgotten even where they are installed libraries.
    """
    new = {name: module for name, module in sys.modules.items() if name not in before}
    files = {name: getattr(module, "__file__", None) for name, module in new.items()}
    replaced = {str(Path(path).resolve()) for path in overlaid}
    packages = {
        name.partition(".")[0]
        for name, path in files.items()
        if isinstance(path, str) and str(Path(path).resolve()) in replaced
    }
    for name, path in files.items():
        if is_users(path) or name.partition(".")[0] in packages:
            del sys.modules[name]
