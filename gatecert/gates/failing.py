"""Which exceptions are no opinion on the code under test. Imports no torch by itself."""

from __future__ import annotations

import sys

from gatecert.lanes.cuda.failures import is_failure_to_run

_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "cannot allocate memory")


def is_no_verdict(error: BaseException | None) -> bool:
    """Is it a failure to run the code at all: import, compilation, memory or the lane?"""
    if error is None:
        return False
    if isinstance(error, (ImportError, SyntaxError, MemoryError)) or is_failure_to_run(error):
        return True
    return _is_out_of_memory(error) or _is_of_the_lane(error)


def _is_out_of_memory(error: BaseException) -> bool:
    """Torch says so by a RuntimeError, on a GPU by one of its own."""
    torch = sys.modules.get("torch")
    if isinstance(error, getattr(torch, "OutOfMemoryError", MemoryError)):
        return True
    words = str(error).lower()
    return isinstance(error, RuntimeError) and any(text in words for text in _OUT_OF_MEMORY)


def _is_of_the_lane(error: BaseException) -> bool:
    failures = sys.modules.get("gatecert.lanes.interpreter.failures")
    return failures is not None and bool(failures.is_interpreter_failure(error))
