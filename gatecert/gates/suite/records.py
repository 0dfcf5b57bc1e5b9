"""Records of a team's suite on the original: what each test did, and which are set aside."""

from __future__ import annotations

import enum
import os
from collections.abc import Set

import msgspec

from gatecert.gates.reads import GateReads


class Ending(str, enum.Enum):
    """How one run of one test ended."""

    PASSED = "passed"
    """It ran and had nothing to object."""
    FAILED = "failed"
    """Pytest says that it failed in its call phase: a positive verdict."""
    ERROR = "error"
    """It could not say anything: set-up, tear-down, import, compiler or interpreter failed."""
    SKIPPED = "skipped"
    """It did not run."""
    XFAILED = "xfailed"
    """It failed, as its `xfail` mark expects."""
    XPASSED = "xpassed"
    """It passed although marked `xfail`, and the mark is not strict."""
    ABSENT = "absent"
    """It was not collected."""


BAD = frozenset({Ending.FAILED, Ending.ERROR})
PASSING = frozenset({Ending.PASSED, Ending.XPASSED})


class RanTest(msgspec.Struct, frozen=True):
    """One test in one session of pytest.

    `kernels` (`module:qualname`) are those launched by it, by its fixtures, or by what all
    tests of the session share. `programs` adds up the grids that it launched itself, `launches`
    counts those of them that differ in arguments or grid.
    """

    nodeid: str
    ending: Ending
    phase: str = ""
    message: str = ""
    kernels: tuple[str, ...] = ()
    programs: int = 0
    launches: int = 0
    starts: bool = False
    """It started another process, where nothing is seen; learned where it is watched."""
    sources: tuple[str, ...] = ()
    """Files whose source text it read itself; learned where it is watched."""


class KnownTest(msgspec.Struct, frozen=True):
    """One test over all runs on the original, the first of them in the file's order.

    `reason` says why it is set aside, and is empty for a test that can be relied on. `compares`
    is False where it passed without comparing anything. `leans` says that it launches nothing
    and depends on what other tests of its file launched; `starts` and `sources` say that it does
    something out of sight: see `RanTest`.
    """

    nodeid: str
    endings: tuple[Ending, ...]
    phase: str = ""
    message: str = ""
    kernels: tuple[str, ...] = ()
    programs: int = 0
    launches: int = 0
    compares: bool = True
    reason: str = ""
    leans: bool = False
    starts: bool = False
    sources: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file that holds it, from pytest's root folder."""
        return self.nodeid.partition("::")[0]

    @property
    def is_out_of_sight(self) -> bool:
        """Does it start processes, and launch nothing in its own?"""
        return self.starts and not self.kernels and not self.leans


class PytestBaseline(msgspec.Struct, frozen=True):
    """A suite on the original: what mutants are judged by, learned once for a whole run.

    `files` maps the modules of launched kernels, as the suite names them, to their files.
    `libraries` are the modules from the standard library and site-packages that the suite
    imports; `under_test` the packages that it tests; `suspect` says that a library may import
    one of these. `proven` are the keys of those choices of tests that hold on the original.
    """

    tests: tuple[KnownTest, ...]
    files: dict[str, str] = {}
    libraries: tuple[str, ...] = ()
    under_test: tuple[str, ...] = ()
    suspect: bool = False
    reads: GateReads = GateReads()
    """What any of its runs read, the names alone."""
    proven: tuple[str, ...] = ()

    def runs_a_copy(self, test: KnownTest, paths: Set[str]) -> bool:
        """Does a test read the source text of one of the files, and launch kernels of another?"""
        real = {os.path.realpath(path) for path in paths}
        if real.isdisjoint(test.sources):
            return False
        homes = (self.files.get(kernel.partition(":")[0], "") for kernel in test.kernels)
        return any(os.path.realpath(home) not in real for home in homes)

    def notes(self) -> tuple[str, ...]:
        """A sentence for every test that is set aside."""
        return tuple(
            f"{test.nodeid} set aside: {test.reason}" for test in self.tests if test.reason
        )
