"""Run one piece of work in a forked child that cannot harm its parent."""

from __future__ import annotations

import contextlib
import enum
import os
import resource
import select
import signal
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from gatecert.errors import described
from gatecert.processes import adopt_orphans, children, die_with_parent, end_children
from gatecert.sandbox.private_tree import restore_tree, use_scratch

_LOG_TAIL_BYTES = 4000
_PYTHON_ERROR = 86
"""Exit status of a child whose work raised: told apart from code that leaves by itself."""


class ChildEnd(str, enum.Enum):
    """How a child ended."""

    ANSWERED = "answered"
    """It wrote its whole answer."""
    DIED = "died"
    """It went away without an answer."""
    TIMEOUT = "timeout"
    """It was killed at its time limit."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """A child's answer, how it ended, what it printed, and how long it took.

    `raised` says that the work ended by a Python exception, not by a signal or an exit.
    """

    end: ChildEnd
    answer: bytes
    log: str
    signal: int
    raised: bool
    seconds: float

    @property
    def last_words(self) -> str:
        """Why it gave no answer: its time limit, its signal or the last line that it printed."""
        if self.end is ChildEnd.TIMEOUT:
            return f"no answer within {self.seconds:.0f} s"
        if self.signal:
            return f"died of signal {self.signal}"
        lines = self.log.strip().splitlines()
        return lines[-1] if lines else "ended without an answer"


def run_in_child(
    work: Callable[[], bytes], *, timeout_s: float, memory_bytes: int = 0
) -> ChildResult:
    """Fork, run `work`, return the bytes it gives.

    The child leads a process group of its own, reads /dev/null and prints into a log. It
    leaves by `os._exit`, so that a corrupted heap cannot spoil an answer already given.
    Whatever it started is killed with it, in whatever session it is, and then the private
    tree in force is as it was before.
    """
    started = time.monotonic()
    adopt_orphans()
    before = children()
    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as log:
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            _be_the_child(work, write_end, log.fileno(), memory_bytes)
        os.close(write_end)
        try:
            chunks, timed_out = _read_until(read_end, pid, started + timeout_s)
        finally:
            os.close(read_end)
            status = _end(pid, before)
        log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        text = log.read().decode("utf-8", "replace")
    answer = b"".join(chunks)
    complete = answer.endswith(b"\n")
    end = ChildEnd.ANSWERED if complete else ChildEnd.TIMEOUT if timed_out else ChildEnd.DIED
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    raised = os.WIFEXITED(status) and os.WEXITSTATUS(status) == _PYTHON_ERROR
    seconds = time.monotonic() - started
    restore_tree()
    return ChildResult(end, answer, text, number, raised, seconds)


def _read_until(read_end: int, pid: int, deadline: float) -> tuple[list[bytes], bool]:
    """What the child answered until it closed the pipe, ended a line or ended itself: others
    that it started may hold the pipe open for long."""
    chunks: list[bytes] = []
    with _end_of(pid) as ended:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return chunks, True
            ready, _, _ = select.select([read_end, *ended], [], [], left)
            if not ready:
                return chunks, True
            if read_end not in ready:
                return chunks, False
            chunk = os.read(read_end, 1 << 16)
            if not chunk:
                return chunks, False
            chunks.append(chunk)
            if chunk.endswith(b"\n"):
                return chunks, False


@contextlib.contextmanager
def _end_of(pid: int) -> Iterator[list[int]]:
    """A file descriptor that becomes readable when the process ends, where there are such."""
    descriptors: list[int] = []
    with contextlib.suppress(OSError, AttributeError):
        descriptors.append(os.pidfd_open(pid))
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _end(pid: int, before: Collection[int]) -> int:
    """Give a finished child a moment, then kill it and all that it left; its wait status.

    Children that were there `before` are somebody else's.
    """
    deadline = time.monotonic() + 0.5
    done, status = os.waitpid(pid, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.001)
        done, status = os.waitpid(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    if not done:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    end_children(but=before)
    return status


def _be_the_child(work: Callable[[], bytes], write_end: int, log: int, memory_bytes: int) -> None:
    code = _PYTHON_ERROR
    try:
        os.setsid()
        die_with_parent()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        _close_all_but(write_end)
        use_scratch()
        if memory_bytes:
            _limit_memory(memory_bytes)
        answer = work() + b"\n"
        while answer:
            answer = answer[os.write(write_end, answer) :]
        code = 0
    except BaseException as error:
        with contextlib.suppress(BaseException):
            os.write(2, f"\n{described(error)}\n".encode())
    finally:
        os._exit(code)


def _close_all_but(kept: int) -> None:
    """Keep code under test away from the pipes that its parents answer on."""
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))


def _limit_memory(extra_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    used = pages * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + extra_bytes, hard))
