"""What every process that forks children needs; a leaf, like `errors`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(by: signal.Signals = signal.SIGKILL) -> None:
    """Ask the operating system for this signal when the parent of this process ends (Linux)."""
    _prctl(_PR_SET_PDEATHSIG, int(by))


def adopt_orphans() -> None:
    """From now on whoever descends from this process and loses its parent becomes its child,
    whatever session it moved to (Linux)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> set[int]:
    """Children of this process: its own and those it adopted, ended ones included."""
    if not _has_children():
        return set()
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found.update(map(int, (task / "children").read_text(encoding="ascii").split()))
        except OSError:
            return _children_by_search()
    return found


def end_children(but: Collection[int] = (), limit_s: float = 10.0) -> None:
    """Kill every child except those in `but`, and whatever becomes a child by that, until none
    is left or the time is up."""
    deadline = time.monotonic() + limit_s
    while left := children().difference(but):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            _reap(pid, deadline)
        if time.monotonic() > deadline:
            return


def _reap(pid: int, deadline: float) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.0005)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children_by_search() -> set[int]:
    """For kernels that keep no list of children."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                after_name = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2]
                if int(after_name.split()[1]) == os.getpid():
                    found.add(int(folder.name))
    return found


def _prctl(what: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(what, value)
