"""What tests do out of sight: they start processes, or read source text and may run it.

A launch in another process, or of a kernel that was made from a copy of the source, is not seen
as a launch of the kernel under test, and a mutant is not in it.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

import msgspec

from gatecert.sandbox.imports import is_users
from gatecert.sandbox.private_tree import users_path


class Deed(msgspec.Struct, frozen=True):
    """Something that was done out of sight: the user's code read the text of a file of source;
    empty: a process was started."""

    source: str = ""


Note = Callable[[Deed], None]

_STARTS = frozenset({"os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.system"})
_PROGRAM = "subprocess.Popen"
_WITHOUT_PYTHON = frozenset(
    {"cc", "gcc", "git", "hostname", "ldconfig", "lscpu", "nvidia-smi", "ptxas", "uname", "which"}
)
"""Programs that launch nothing, and that libraries ask about the machine."""
_STDLIB = os.path.realpath(sysconfig.get_path("stdlib")) + "/"
_listening: list[Note] = []
_hooked = False


@contextlib.contextmanager
def deeds_noted(note: Note) -> Iterator[None]:
    """Hand every deed inside to `note`, from whatever thread; a hook stays, and is idle outside."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_hear)
        _hooked = True
    start, getlines = BaseProcess.start, linecache.getlines

    def noted_start(self: BaseProcess) -> None:
        note(Deed())  # one that is spawned raises no event
        start(self)

    def noted_getlines(filename: str, module_globals: Any = None) -> list[str]:
        _read(filename)  # perhaps from memory: then nothing is opened
        return getlines(filename, module_globals)

    _listening.append(note)
    BaseProcess.start = noted_start  # type: ignore[method-assign]
    linecache.getlines = noted_getlines
    try:
        yield
    finally:
        BaseProcess.start = start  # type: ignore[method-assign]
        linecache.getlines = getlines
        _listening.remove(note)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _listening:
        return
    if event in _STARTS or (event == _PROGRAM and not _is_harmless(args[1])):
        _note(Deed())
    elif event == "open" and isinstance(args[0], str) and args[1] in ("r", "rb", None):
        _read(args[0])


def _read(path: str) -> None:
    if path.endswith(".py") and _is_users_doing():
        _note(Deed(users_path(os.path.realpath(path))))


def _note(deed: Deed) -> None:
    for note in _listening:
        note(deed)


def _is_harmless(command: Any) -> bool:
    words = [command] if isinstance(command, str | bytes | os.PathLike) else command
    program = os.fsdecode(words[0]) if isinstance(words, Sequence) and words else ""
    return program.rpartition("/")[2] in _WITHOUT_PYTHON


def _is_users_doing() -> bool:
    """Is it code of the user's that reads, past Python's own layers, and not by an import?"""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_layer(frame.f_code.co_filename):
        if frame.f_code.co_name == "get_code":
            return False
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename)


def _is_layer(filename: str) -> bool:
    if filename == __file__ or filename.startswith("<frozen"):
        return True
    return filename.startswith(_STDLIB) and "/site-packages/" not in filename
