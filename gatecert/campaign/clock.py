"""Where the time of a run goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gatecert.campaign.spending import Spending


class Clock:
    """Adds up where the time goes."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self.spending = Spending()
        """What the processes of judged candidates spent, all jobs together."""

    @property
    def seconds(self) -> dict[str, float]:
        """By part, rounded to milliseconds."""
        parts = {name: round(seconds, 3) for name, seconds in self._seconds.items()}
        return parts | self.spending.seconds

    def add(self, name: str, seconds: float) -> None:
        """Time that was spent on a part."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The time of the block is the part's."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.add(name, time.monotonic() - started)
