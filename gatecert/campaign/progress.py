"""Who is told how a run is getting on."""

from __future__ import annotations

from typing import Protocol

from gatecert.gates.records import Verdict


class Progress(Protocol):
    """Called from several threads."""

    def stage(self, name: str, total: int) -> None:
        """A stage of `total` steps begins."""
        ...

    def step(self, verdict: Verdict | None = None) -> None:
        """One step is done; in the judging stage with its verdict."""
        ...

    def say(self, line: str) -> None:
        """Something about the stage that ended."""
        ...


class Silent:
    """Tells nobody."""

    def stage(self, name: str, total: int) -> None:
        """Say nothing."""

    def step(self, verdict: Verdict | None = None) -> None:
        """Say nothing."""

    def say(self, line: str) -> None:
        """Say nothing."""
