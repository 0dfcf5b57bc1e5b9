"""The supervisor's end: start a server, send a request, read events."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from types import TracebackType

from gatecert.encoding import encode
from gatecert.errors import EnvironmentFailure
from gatecert.lanes.cuda.gpu import without_gpus
from gatecert.sandbox.protocol import Event, Failed, Finished, Request, decode_event

_SINGLE_THREADED = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TRITON_INTERPRET": "1",
}
_GOODBYE_S = 10.0


class Server:
    """A running zygote with some libraries in memory, those of them that are installed.

    Start it in the thread that uses it: it dies with that thread.
    """

    def __init__(self, libraries: Iterable[str] = ()) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the server)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gatecert.sandbox.zygote", *libraries],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**without_gpus(os.environ), **_SINGLE_THREADED},
            start_new_session=True,
        )

    def ask(self, request: Request) -> Iterator[Event]:
        """Send a request and yield its events, `Finished` excluded; read them all.

        A server that died says so in a last `Failed`.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(encode(request) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            yield self._post_mortem()
            return
        while line := self._process.stdout.readline():
            event = decode_event(line)
            if isinstance(event, Finished):
                return
            yield event
        yield self._post_mortem()

    def _post_mortem(self) -> Event:
        self._process.wait()
        self._log.seek(0)
        tail = self._log.read().decode("utf-8", "replace").strip().splitlines()
        said = tail[-1] if tail else f"exit status {self._process.returncode}"
        return Failed(f"the sandbox server ended: {said}", EnvironmentFailure.exit_code)

    def close(self) -> None:
        """End the server and everything it started."""
        if self._process.poll() is None:
            # It knows its descendants, whatever sessions they moved to, and its own files.
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GOODBYE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
