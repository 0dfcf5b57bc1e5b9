"""`gatecert replay --minimise`: start the search, follow it, and keep its best if it is stopped."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import BinaryIO

import msgspec

from gatecert.cli.replay import CHILD_ENV, ReplayAnswer, ReplayRequest
from gatecert.cli.setup import say
from gatecert.errors import EnvironmentFailure, GatecertError, InternalError, UsageError

_GOODBYE_S = 10.0
_SHOWN = 150
"""Characters of a case that are shown while the search goes on."""


class MinimiseRequest(ReplayRequest, frozen=True):
    """A case to shrink, for so many runs of the kernel or seconds of time; None: no bound."""

    budget_runs: int | None = None
    budget_s: float | None = None


class Minimised(msgspec.Struct, frozen=True):
    """The simplest case found that fails for the same reason.

    `case` is its id; where the id would be too long `snapshot` holds the values, and `case` tells
    only what they lie in. `complete` says that no step was left to try; `untried` counts, by dim,
    the smaller sizes that were not run beside the other dims of this case.
    """

    start: str
    case: str
    kept: str
    """The reason, which every step kept."""
    answer: ReplayAnswer
    runs: int
    seconds: float
    complete: bool = False
    untried: dict[str, int] = {}
    snapshot: str = ""


class Step(msgspec.Struct, frozen=True, tag="step"):
    """One more run."""

    runs: int


class Better(msgspec.Struct, frozen=True, tag="better"):
    """A simpler case was found."""

    found: Minimised


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The search came to its end, or to that of its budget."""

    found: Minimised


Event = Step | Better | Ended


def minimise(request: MinimiseRequest, watch: Callable[[Event], None]) -> Minimised:
    """Shrink the request's case in processes of their own.

    An interrupt ends the search and gives the best so far.

    Raises:
        UsageError, EnvironmentFailure: as the child says; the case does not fail; it was
            interrupted before the first run ended.
    """
    best: Minimised | None = None
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gatecert.cli.minimise_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **CHILD_ENV},
            start_new_session=True,
        )
        try:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(msgspec.json.encode(request))
            process.stdin.close()
            for line in process.stdout:
                event = msgspec.json.decode(line, type=Event)
                if not isinstance(event, Step):
                    best = event.found
                watch(event)
            process.wait()
        except KeyboardInterrupt:
            if best is None:
                raise
            say("interrupted: this is the simplest case so far")
            return best
        finally:
            _end(process)
        if best is None or process.returncode:
            raise _failure(process.returncode, _last_line(log))
    return best


def watch_on_stderr(event: Event) -> None:
    """Say each simpler case; a count of runs stands where there is a terminal."""
    shown = sys.stderr.isatty()
    if isinstance(event, Step):
        if shown:
            print(f"\rgatecert: {event.runs} runs", end="", file=sys.stderr, flush=True)
    elif isinstance(event, Better):
        print("\r" if shown else "", end="", file=sys.stderr)
        case = event.found.case
        shown_case = case if len(case) <= _SHOWN else f"{case[:_SHOWN]}..."
        say(f"run {event.found.runs}: {shown_case}")
    elif shown:
        print("\r", end="", file=sys.stderr)


def _failure(code: int, said: str) -> GatecertError:
    kinds = {int(kind.exit_code): kind for kind in (UsageError, InternalError)}
    kind = kinds.get(code, EnvironmentFailure)
    return kind(said or f"the process ended with status {code}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


def _last_line(log: BinaryIO) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
