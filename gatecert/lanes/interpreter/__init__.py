"""Lane `interpreter`: Triton's CPU interpreter, corrected, guarded and recorded.

Call `activate()` first, in a process that compiles nothing, and import the kernels after it.
Importing this package imports no Triton.

What it does not model: races inside a program and missing barriers, warps and stages, contraction
of `a * b + c`, the order of a GPU's reductions, approximate division and transcendentals. Programs
run one by one, first to last, unless `scheduled` in another order or interleaved. `tl.dot` is
`ieee` unless the kernel or TRITON_F32_DEFAULT names a precision; `tf32`, where named, rounds the
operands. fp8 casts saturate, as on Hopper. Inline assembly, `tl.dot_scaled`, fp8e4b15 and
`tl.atomic_poll` are refused.
"""

from gatecert.lanes.interpreter.activation import activate
from gatecert.lanes.interpreter.failures import LaneRefusal, is_interpreter_failure, was_stopped
from gatecert.lanes.interpreter.fresh_memory import repeatable_memory
from gatecert.lanes.interpreter.guards import FindingLog, guarded, poisoned, scheduled
from gatecert.lanes.interpreter.kernels import is_kernel
from gatecert.lanes.interpreter.launches import arguments_shown, dry_run, observed, recording, tuned
from gatecert.lanes.interpreter.order import ProgramOrder
from gatecert.lanes.interpreter.selftest import self_test
from gatecert.lanes.interpreter.stopwatch import timed

__all__ = [
    "FindingLog",
    "LaneRefusal",
    "ProgramOrder",
    "activate",
    "arguments_shown",
    "dry_run",
    "guarded",
    "is_interpreter_failure",
    "is_kernel",
    "observed",
    "poisoned",
    "recording",
    "repeatable_memory",
    "scheduled",
    "self_test",
    "timed",
    "tuned",
    "was_stopped",
]
