"""Every error a user can meet, in one tree.

GatecertError
├── UsageError            the command line or gatecert.toml is wrong (exit 1)
├── RequirementNotMet     a `[require]` bound was missed (exit 2)
├── ControlRejected       the gate rejected correct code (exit 3)
├── EnvironmentFailure    baseline, reference, import or Triton version failed (exit 4)
├── NothingScored         no mutant got a verdict, or no kernel was found (exit 5)
└── InternalError         gatecert contradicts itself (exit 70)

Messages say what was wrong, where, and what to do. This module imports nothing of gatecert, so
every folder may import it.
"""

from __future__ import annotations

import difflib
import enum
import traceback
from collections.abc import Iterable, Iterator
from pathlib import PurePath


class ExitCode(enum.IntEnum):
    """What the process says to the shell."""

    MET = 0
    """Everything asked for holds."""
    USAGE = 1
    """The command line or the configuration is wrong."""
    REQUIREMENT_NOT_MET = 2
    """A `[require]` bound was missed."""
    CONTROL_REJECTED = 3
    """The gate rejected code that is correct."""
    ENVIRONMENT_FAILED = 4
    """Baseline, reference or environment failed."""
    NOTHING_SCORED = 5
    """No mutant got a verdict, so the run proves nothing."""
    INTERNAL = 70
    """gatecert contradicts itself: please report it."""


_MOST_MEANT = 3
INTERRUPTED = 130
"""128 + SIGINT, as shells have it: no result, so not in `ExitCode`."""
TERMINATED = 143
"""128 + SIGTERM, as well."""


class GatecertError(Exception):
    """Root of the tree; `exit_code` is what the command line returns."""

    exit_code = ExitCode.INTERNAL


class UsageError(GatecertError):
    """The command line or gatecert.toml is wrong."""

    exit_code = ExitCode.USAGE


class RequirementNotMet(GatecertError):
    """A bound of `[require]` was missed."""

    exit_code = ExitCode.REQUIREMENT_NOT_MET


class ControlRejected(GatecertError):
    """The gate rejected a control."""

    exit_code = ExitCode.CONTROL_REJECTED


class EnvironmentFailure(GatecertError):
    """Baseline, reference, an import or the environment failed."""

    exit_code = ExitCode.ENVIRONMENT_FAILED


class NothingScored(GatecertError):
    """No mutant could be scored."""

    exit_code = ExitCode.NOTHING_SCORED


class InternalError(GatecertError):
    """gatecert contradicts itself."""

    exit_code = ExitCode.INTERNAL


def described(error: BaseException) -> str:
    """`ValueError: why`; of an error without a message, where it was raised."""
    kind, said = type(error).__name__, str(error)
    if said.strip():
        return f"{kind}: {said}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f", in {frames[-1].name} at {_place(frames[-1])}" if frames else ""
    return f"{kind} without a message{where}"


def links(error: BaseException) -> Iterator[BaseException]:
    """The error and all that led to it: causes, and what was being handled when it was raised."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        pending += [link.__cause__, link.__context__]


def did_you_mean(
    name: str, known: Iterable[str], *, cutoff: float = 0.6, otherwise: str = "there are"
) -> str:
    """`did you mean 'x'?` of the known names that begin so, else of the nearest; where none is
    near, all of them: `there are x, y`."""
    known = tuple(known)
    longer = [one for one in known if name and one.startswith(name)]
    near = longer[:_MOST_MEANT] or difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    if not near:
        return f"{otherwise} {', '.join(known)}"
    return f"did you mean {' or '.join(map(repr, near))}?"


def _place(frame: traceback.FrameSummary) -> str:
    """File and line; the folder is of one machine."""
    return f"{PurePath(frame.filename).name}:{frame.lineno}"
