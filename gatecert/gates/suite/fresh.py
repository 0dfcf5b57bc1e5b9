"""Run pytest in a fresh process, with the overlay installed and proven there.

A process that has used a GPU cannot be forked, and one whose kernels faulted can use it no more:
compiled kernels run in a process for each candidate. `python -m gatecert.gates.suite.fresh` is
that process: it reads a request on stdin and writes the session to a file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from gatecert.encoding import decode, encode
from gatecert.gates.command.elsewhere import Elsewhere
from gatecert.gates.command.run import Command, Ran
from gatecert.gates.suite.request import SessionRequest
from gatecert.gates.suite.session import Session, run_session
from gatecert.lanes.cuda.gpu import lift_memory_limit
from gatecert.sandbox.placing import Placing
from gatecert.sandbox.private_tree import adopt_placing, placing_in_force


class FreshRequest(msgspec.Struct, frozen=True):
    """What the process is asked for, and the file for its answer: there is none before the tests
    begin, and it is empty until they end. `placing` is that of the private tree it runs in."""

    session: SessionRequest
    answer: str
    placing: Placing | None = None


class FreshRun(msgspec.Struct, frozen=True):
    """One session in a process of its own; None where the process ended in the tests, perhaps by a
    `signal`, or `failed` before or after them."""

    session: Session | None
    seen: Elsewhere
    log: str
    signal: int = 0
    failed: bool = False

    @property
    def how_it_ended(self) -> str:
        """In words, where there is no session."""
        if self.signal:
            return f"died of signal {self.signal}"
        lines = self.log.strip().splitlines()
        return lines[-1] if lines else "ended without an answer"


def run_fresh(
    session: SessionRequest,
    files: Mapping[str, str],
    import_paths: tuple[str, ...],
    *,
    interpret: bool,
) -> FreshRun:
    """Run pytest on the overlay `files`; call this in a child, with which the process is ended."""
    if not interpret:
        lift_memory_limit()
    placing = placing_in_force()
    answer = Path(tempfile.mkdtemp(prefix="gatecert-fresh-")) / "session.json"
    command = Command(
        argv=(sys.executable, "-m", "gatecert.gates.suite.fresh"),
        folder=Path(session.rootdir),
        environment={},
        import_paths=import_paths,
        placing=placing,
    )
    request = FreshRequest(session, str(answer), placing)
    ran = command.run(files, timeout_s=None, interpret=interpret, given=encode(request))
    return _outcome(ran, answer)


def _outcome(ran: Ran, answer: Path) -> FreshRun:
    log = ran.stdout + ran.stderr
    body = answer.read_bytes() if answer.is_file() else None
    if body:
        return FreshRun(decode(body, Session), ran.seen, log)
    return FreshRun(None, ran.seen, log, max(0, -(ran.status or 0)), failed=body is None)


def main() -> NoReturn:
    """Do what the request on stdin asks for."""
    request: FreshRequest = decode(sys.stdin.buffer.read(), FreshRequest)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if request.placing is not None:
        adopt_placing(request.placing)
    # What the process puts in force once they are here must lie around what the session does.
    import torch  # noqa: F401
    import triton  # noqa: F401

    answer, partial = Path(request.answer), Path(f"{request.answer}.partial")
    answer.touch()
    try:
        partial.write_bytes(encode(run_session(request.session)))
    except BaseException:
        answer.unlink()
        raise
    partial.replace(answer)
    sys.stdout.flush()
    # Threads that tests left, or a GPU that a fault left, spoil nothing any more.
    os._exit(0)


if __name__ == "__main__":
    main()
