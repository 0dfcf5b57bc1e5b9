"""Which errors are the lane's own. Imports no Triton."""

from __future__ import annotations

import sys

from gatecert.errors import EnvironmentFailure, links


class LaneRefusal(EnvironmentFailure):
    """A kernel asks for something that this lane cannot compute rightly."""


def is_interpreter_failure(error: BaseException) -> bool:
    """Did the error come from inside the interpreter, and not from the launcher's own code?

    Follows causes and contexts, so an error that a launcher raised while it handled one of the
    interpreter's counts as the interpreter's.
    """
    triton_errors = sys.modules.get("triton.runtime.errors")
    raised_by_triton = getattr(triton_errors, "InterpreterError", LaneRefusal)
    return any(isinstance(link, (LaneRefusal, raised_by_triton)) for link in links(error))
