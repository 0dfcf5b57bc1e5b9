"""The warm process: torch and Triton imported once, one forked server per request.

Run as `python -m gatecert.sandbox.zygote [LIBRARY ...]`; requests on stdin, events on stdout. It
has one thread and never runs a torch operation itself, so that its forks are safe.

It outlives whoever started it, even if that one was killed, by as long as it takes to end every
process that descends from it and to remove their temporary files.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from typing import BinaryIO, NoReturn

from gatecert.encoding import encode
from gatecert.errors import EnvironmentFailure, GatecertError, described
from gatecert.processes import adopt_orphans, die_with_parent, end_children
from gatecert.sandbox.protocol import Event, Failed, Finished, decode_request


def main() -> None:
    """Serve requests until stdin ends."""
    scratch = tempfile.mkdtemp(prefix="gatecert-sandbox-")
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: _end(scratch))
    die_with_parent(signal.SIGTERM)
    os.environ["TMPDIR"] = tempfile.tempdir = scratch
    events = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    try:
        _warm_up(sys.argv[1:])
    except GatecertError as error:
        failed = error
        for _ in sys.stdin.buffer:
            _say(events, Failed(str(failed), int(failed.exit_code)))
            _say(events, Finished(0.0))
        _end(scratch)
    for line in sys.stdin.buffer:
        started = time.monotonic()
        pid = os.fork()
        if pid == 0:
            _serve(line, events)
        status = os.waitpid(pid, 0)[1]
        if status != 0:
            _say(
                events,
                Failed(
                    f"the subject server ended with wait status {status}",
                    int(EnvironmentFailure.exit_code),
                ),
            )
        end_children()
        _say(events, Finished(time.monotonic() - started))
    _end(scratch)


def _end(scratch: str) -> NoReturn:
    """End every descendant, remove their files and leave, whatever this process was doing."""
    end_children()
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)


def _warm_up(libraries: Iterable[str]) -> None:
    gc.disable()  # nothing of what is imported goes away: looking for it takes a tenth of the time
    from gatecert.lanes import interpreter

    interpreter.activate()
    import gatecert.gates.callable_gate
    import gatecert.gates.oracle
    import gatecert.gates.presets.gate
    import gatecert.gates.watching.watch
    import gatecert.sandbox.server  # noqa: F401
    from gatecert.mutants.overlay import note_imports

    # Triton imports the one to describe the first argument of the first launch, numpy the other
    # in its first `unique`: most of the time of a child that launches little.
    for name in ("triton.experimental.gluon", "numpy.ma", *libraries):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)

    note_imports()
    gc.collect()
    gc.freeze()
    gc.enable()


def _serve(line: bytes, events: BinaryIO) -> None:
    from gatecert.sandbox.server import serve

    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with_parent()
        sys.stdin.close()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            serve(decode_request(line), lambda event: _say(events, event))
        except GatecertError as error:
            _say(events, Failed(str(error), int(error.exit_code)))
        except Exception as error:
            _say(
                events,
                Failed(described(error), int(EnvironmentFailure.exit_code)),
            )
        code = 0
    finally:
        os._exit(code)


def _say(events: BinaryIO, event: Event) -> None:
    message = encode(event) + b"\n"
    while message:
        message = message[events.write(message) or 0 :]


if __name__ == "__main__":
    main()
