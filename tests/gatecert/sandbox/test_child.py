"""Claims about children: they answer, die or time out, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from gatecert.sandbox.child import ChildEnd, run_in_child


def test_an_answer_comes_back_whole() -> None:
    result = run_in_child(lambda: b"x" * 1_000_000, timeout_s=10)
    assert result.end is ChildEnd.ANSWERED
    assert result.answer == b"x" * 1_000_000 + b"\n"


def test_what_the_child_prints_is_kept_as_its_log() -> None:
    def work() -> bytes:
        os.write(1, b"to stdout ")
        os.write(2, b"to stderr")
        return b"done"

    assert run_in_child(work, timeout_s=10).log == "to stdout to stderr"


def test_an_exception_is_a_death_with_its_message_in_the_log() -> None:
    def work() -> bytes:
        raise ValueError("no such thing")

    result = run_in_child(work, timeout_s=10)
    assert result.end is ChildEnd.DIED
    assert result.signal == 0
    assert "ValueError: no such thing" in result.log


def test_a_signal_is_told_apart_from_an_exit() -> None:
    def work() -> bytes:
        os.kill(os.getpid(), signal.SIGSEGV)
        return b""

    result = run_in_child(work, timeout_s=10)
    assert (result.end, result.signal) == (ChildEnd.DIED, signal.SIGSEGV)


def test_a_hanging_child_is_killed_at_its_limit() -> None:
    def work() -> bytes:
        time.sleep(60)
        return b""

    result = run_in_child(work, timeout_s=0.3)
    assert result.end is ChildEnd.TIMEOUT
    assert result.seconds < 5


def test_a_grandchild_does_not_outlive_the_child(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def work() -> bytes:
        grandchild = subprocess.Popen(["sleep", "60"])
        note.write_text(str(grandchild.pid))
        return b"left one behind"

    assert run_in_child(work, timeout_s=10).end is ChildEnd.ANSWERED
    assert _gone(int(note.read_text()))


def test_a_grandchild_of_a_hanging_child_is_killed_too(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def work() -> bytes:
        grandchild = subprocess.Popen(["sleep", "60"])
        note.write_text(str(grandchild.pid))
        time.sleep(60)
        return b""

    assert run_in_child(work, timeout_s=1.0).end is ChildEnd.TIMEOUT
    assert _gone(int(note.read_text()))


def test_a_daemon_that_left_the_group_and_the_session_does_not_outlive_the_child(
    tmp_path: Path,
) -> None:
    note = tmp_path / "pid"

    def work() -> bytes:
        _start_daemon(note)
        return b"left a daemon behind"

    assert run_in_child(work, timeout_s=10).end is ChildEnd.ANSWERED
    assert _gone(int(note.read_text()))


def test_a_child_that_died_is_not_waited_for_because_its_daemon_holds_the_pipe(
    tmp_path: Path,
) -> None:
    note = tmp_path / "pid"

    def work() -> bytes:
        _start_daemon(note)
        os._exit(3)

    result = run_in_child(work, timeout_s=20)
    assert result.end is ChildEnd.DIED
    assert result.seconds < 10
    assert _gone(int(note.read_text()))


def test_children_that_were_there_before_are_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"]) as mine:
        run_in_child(lambda: b"done", timeout_s=10)
        assert mine.poll() is None
        mine.kill()


def test_memory_beyond_the_limit_is_an_error_of_the_child_alone() -> None:
    def work() -> bytes:
        return bytes(len(bytearray(1 << 30)))

    result = run_in_child(work, timeout_s=20, memory_bytes=64 << 20)
    assert result.end is ChildEnd.DIED
    assert "MemoryError" in result.log


def _start_daemon(note: Path) -> None:
    """A grandchild in a session of its own, which holds all that it inherited."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note.write_text(str(os.getpid()))
            os.write(write_end, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(read_end, 1)


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
