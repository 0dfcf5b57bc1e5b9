"""Servers that the runs of many tests share. Each request is answered in a fork of its own, so
that no run sees what another one did: to import torch for each anew is most of what a small run
costs."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from gatecert.gates.config import LIBRARIES
from gatecert.mutants.compile_pool import CompilePool, compile_pool
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Event, Request

_OF_NO_RUN = frozenset({"PYTEST_CURRENT_TEST", "TMPDIR", "KMP_INIT_AT_FORK"})
"""Variables that say nothing to a run: torch sets the last one when it is imported."""


class WarmServer(Server):
    """Has in memory what any run asks for, and knows whether it can answer another one."""

    def __init__(self) -> None:
        super().__init__(LIBRARIES["pytest"])
        self._answered = True

    def ask(self, request: Request) -> Iterator[Event]:
        """As a server does."""
        self._answered = False
        yield from super().ask(request)
        self._answered = True

    @property
    def is_ready(self) -> bool:
        """Is it alive, and has it said all that it had to?"""
        return self._answered and self._process.poll() is None


class WarmServers:
    """Stands in for what starts servers. A run under another environment than theirs gets servers
    of its own, as every run does without this."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment: dict[str, str] = {}
        self._idle: list[WarmServer] = []
        self._compilers: dict[int, CompilePool] = {}
        self._owned = ExitStack()

    @contextlib.contextmanager
    def stand_in(self, environment: Mapping[str, str]) -> Iterator[None]:
        """Runs in this process use these servers, under these variables."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            self._environment = _lasting()
            patch.setattr("gatecert.campaign.supervise.Server", self.server)
            patch.setattr("gatecert.campaign.code.compile_pool", self.compilers)
            yield

    @contextlib.contextmanager
    def server(self, libraries: Sequence[str] = ()) -> Iterator[Server]:
        """In place of `gatecert.sandbox.client.Server`."""
        if _lasting() != self._environment:
            with Server(libraries) as fresh:
                yield fresh
            return
        if not self._idle:
            with self._elsewhere():
                self._idle.append(self._owned.enter_context(WarmServer()))
        server = self._idle.pop()
        try:
            yield server
        finally:
            if server.is_ready:
                self._idle.append(server)
            else:
                server.close()

    @contextlib.contextmanager
    def compilers(self, jobs: int, codes: Path | None = None) -> Iterator[CompilePool]:
        """In place of `gatecert.mutants.compile_pool.compile_pool`."""
        if _lasting() != self._environment:
            with compile_pool(jobs, codes) as pool:
                yield pool
            return
        if jobs not in self._compilers:
            with self._elsewhere():
                self._compilers[jobs] = self._owned.enter_context(compile_pool(jobs))
        yield self._compilers[jobs]

    def close(self) -> None:
        """End them all."""
        self._owned.close()

    @contextlib.contextmanager
    def _elsewhere(self) -> Iterator[None]:
        """They outlive the run that starts them, and its folders."""
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self._folder)
            patch.setenv("TMPDIR", str(self._folder))
            patch.setattr(tempfile, "tempdir", str(self._folder))
            yield


def _lasting() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_NO_RUN}
