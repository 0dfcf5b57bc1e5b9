"""Records of what an external gate did while it judged, beside what it said.

A verdict says yes or no; whether a yes means anything is read from here. Nothing in a record of
evidence ever changes a verdict.
"""

from __future__ import annotations

import msgspec


class Compared(msgspec.Struct, frozen=True):
    """Equal calls of one comparing function, `times` of them.

    `function` is its public name (`torch.allclose`); `shapes` and `dtypes` are those of the two
    sides in the order of the call; a tolerance is None where the function has none. `passed` is
    what it said, whether or not the gate listened.
    """

    function: str
    passed: bool
    atol: float | None = None
    rtol: float | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    times: int = 1


class LaunchInputs(msgspec.Struct, frozen=True):
    """What the tensors of equal launches of one kernel were like, `times` of them.

    `shapes` are those of the tensor arguments by name. `blocks` are the integer constexprs.
    `negative` says that a floating-point argument held a value below zero.
    """

    kernel: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    dtypes: tuple[str, ...] = ()
    blocks: tuple[tuple[str, int], ...] = ()
    contiguous: bool = True
    negative: bool = False
    programs: int = 1
    times: int = 1


class TestTally(msgspec.Struct, frozen=True):
    """Tests by what became of them in one run of pytest."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    reruns: int = 0
    deselected: int = 0


class Evidence(msgspec.Struct, frozen=True):
    """All that was seen of a gate's run.

    `entry_calls` counts calls of the subject's entry, `entry_raised` those that raised; None
    where nobody could count. `compared_nothing` lists tests that passed without any comparison.
    `warnings` are the messages of distinct warnings. `printed_sha256` hashes what it printed.
    """

    entry_calls: int | None = None
    entry_raised: int | None = None
    compared: tuple[Compared, ...] = ()
    launches: tuple[LaunchInputs, ...] = ()
    tally: TestTally | None = None
    compared_nothing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    printed_sha256: str = ""
