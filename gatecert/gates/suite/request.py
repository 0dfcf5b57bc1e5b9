"""What one run of pytest is asked to do, in whatever process it runs."""

from __future__ import annotations

import msgspec

from gatecert.gates.suite.seeds import JUDGING_SEED
from gatecert.gates.suite.selection import Choice


class SessionRequest(msgspec.Struct, frozen=True):
    """`pytest *args` in `rootdir`.

    All tests run in pytest's order, or those of `choice` in its own. `watched` collects evidence
    of what the subject's `tests` do, and those that call its `entry` (None: all do); it costs
    time. `repeatable` memory that nobody initialised holds the same values in every run.
    Generators that all share start from `seed`.
    """

    args: tuple[str, ...]
    rootdir: str
    stop_at_first: bool = False
    choice: Choice | None = None
    watched: bool = False
    entry: str = ""
    tests: frozenset[str] | None = None
    repeatable: bool = True
    seed: int = JUDGING_SEED
