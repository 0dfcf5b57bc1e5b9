"""Compile servers and the threads that speak to them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import msgspec

from gatecert.errors import EnvironmentFailure
from gatecert.mutants.compile_protocol import (
    CompileReply,
    CompileRequest,
    read_frame,
    write_frame,
)

_SERVER = "gatecert.mutants.compile_server"


class CompilePool:
    """Spreads requests over the servers; made by `compile_pool`."""

    def __init__(self, servers: Sequence[subprocess.Popen[bytes]], log: Path) -> None:
        self._log = log
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for server in servers:
            self._idle.put(server)
        self._threads = ThreadPoolExecutor(len(servers))

    def map(self, requests: Sequence[CompileRequest]) -> Iterator[CompileReply]:
        """Replies in the order of the requests.

        Raises:
            EnvironmentFailure: a server is gone.
        """
        return self._threads.map(self._ask, requests)

    def close(self) -> None:
        """Forget what was not begun yet."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: CompileRequest) -> CompileReply:
        server = self._idle.get()
        try:
            assert server.stdin is not None and server.stdout is not None
            frame = None
            with contextlib.suppress(BrokenPipeError):
                write_frame(server.stdin, msgspec.msgpack.encode(request))  # type: ignore[arg-type]
                frame = read_frame(server.stdout)  # type: ignore[arg-type]
            if frame is None:
                raise EnvironmentFailure(f"the compile server ended: {self._last_words()}")
            return msgspec.msgpack.decode(frame, type=CompileReply)
        finally:
            self._idle.put(server)

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "no message"


@contextlib.contextmanager
def compile_pool(jobs: int, codes: Path | None = None) -> Iterator[CompilePool]:
    """Start `jobs` servers; they are gone at the end, whatever happens.

    Hashes of code are kept in the folder `codes`, by content; without it for this pool alone.
    """
    with tempfile.TemporaryDirectory(prefix="gatecert-compile-") as folder:
        log = Path(folder) / "log"
        servers: list[subprocess.Popen[bytes]] = []
        pool: CompilePool | None = None
        try:
            with log.open("wb") as stderr:
                for _ in range(max(1, jobs)):
                    servers.append(
                        subprocess.Popen(
                            [sys.executable, "-m", _SERVER],
                            env=_environment(folder, codes or Path(folder) / "codes"),
                            stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE,
                            stderr=stderr,
                            start_new_session=True,  # Ctrl-C is the parent's to handle
                        )
                    )
            pool = CompilePool(servers, log)
            yield pool
        finally:
            if pool is not None:
                pool.close()
            for server in servers:
                server.kill()
            for server in servers:
                server.wait()


def _environment(folder: str, codes: Path) -> dict[str, str]:
    """Compile for real, into a private cache, without line numbers in the code."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    package = importlib.util.find_spec("gatecert")
    assert package is not None and package.origin is not None
    home = Path(package.origin).parent.parent
    known = environment.get("PYTHONPATH")
    return environment | {
        "TRITON_CACHE_DIR": str(Path(folder) / "cache"),
        "TRITON_DISABLE_LINE_INFO": "1",
        "GATECERT_CODES": str(codes),
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join([str(home), *([known] if known else [])]),
    }
