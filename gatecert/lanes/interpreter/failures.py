"""Which errors are the lane's own. Imports no Triton."""

from __future__ import annotations

import sys

from gatecert.errors import EnvironmentFailure, links


class LaneRefusal(EnvironmentFailure):
    """A kernel asks for something that this lane cannot compute rightly."""


class StoppedLaunch(Exception):
    """A launch went out of bounds and was not allowed to go on: what it read as a loop's end or a
    next block may hold it for hours. The log has the finding. No failure of the lane."""


def was_stopped(error: BaseException | None) -> bool:
    """Did the lane stop a launch that had gone out of bounds, whatever a launcher made of it?"""
    return error is not None and any(isinstance(link, StoppedLaunch) for link in links(error))


def is_interpreter_failure(error: BaseException) -> bool:
    """Did the error come from inside the interpreter, and not from the launcher's own code?

    Follows causes and contexts, so an error that a launcher raised while it handled one of the
    interpreter's counts as the interpreter's.
    """
    triton_errors = sys.modules.get("triton.runtime.errors")
    raised_by_triton = getattr(triton_errors, "InterpreterError", LaneRefusal)
    return any(isinstance(link, (LaneRefusal, raised_by_triton)) for link in links(error))
