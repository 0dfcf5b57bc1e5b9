"""Records of what an external gate did while it judged, beside what it said.

A verdict says yes or no; whether a yes means anything is read from here. Nothing in a record of
evidence ever changes a verdict.
"""

from __future__ import annotations

import msgspec

BY_HAND = "by hand"
"""`Compared.function` where numbers were read out of tensors: the gate compares them itself."""


class Compared(msgspec.Struct, frozen=True):
    """Equal calls of one comparing function, `times` of them.

    `function` is its public name (`torch.allclose`), or `BY_HAND`; `shapes` and `dtypes` are those
    of the two sides in the order of the call; a tolerance is None where the function has none.
    `passed` is what it said, whether or not the gate listened; by hand it says nothing and is
    true. `ops` are then the operations between the two sides and the number that was read; `answer`
    is that number where it was a truth value, and `nan` says that one side alone held NaN. `mended`
    are operations that replaced or left out elements of an output before, for what they were worth,
    and `elements_mended` how many in all of these calls.

    The last three are known where a tolerance was met by floats: `wrong_by`, the share of itself
    by which a typical element may be wrong; `of_default`, its allowance over what
    `torch.testing.assert_close` allows by default; `used`, the largest error over its allowance.
    """

    function: str
    passed: bool
    atol: float | None = None
    rtol: float | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    times: int = 1
    ops: tuple[str, ...] = ()
    answer: bool | None = None
    nan: bool = False
    mended: tuple[str, ...] = ()
    elements_mended: int = 0
    wrong_by: float | None = None
    of_default: float | None = None
    used: float | None = None


class LaunchInputs(msgspec.Struct, frozen=True):
    """What the tensors of equal launches of one kernel were like, `times` of them; or those of
    equal calls of the subject's entry.

    `shapes` are those of the tensor arguments by name. `blocks` are the integer constexprs.
    `negative` says that a floating-point input held a value below zero; None: it had none, or
    it is not known. Of a launch only what it reads and no earlier launch wrote is an input.
    `programs` is None where the kernel does not ask which one it is, `masked` where no access
    has a mask, `longest_loop` where it has no loop but such as constants hold to one turn;
    `masked` says that a lane was masked off.
    """

    kernel: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    dtypes: tuple[str, ...] = ()
    blocks: tuple[tuple[str, int], ...] = ()
    contiguous: bool = True
    negative: bool | None = None
    programs: int | None = None
    masked: bool | None = None
    longest_loop: int | None = None
    times: int = 1


class UnequalZip(msgspec.Struct, frozen=True):
    """The gate's code zipped lists of these lengths at `place` (file:line): it saw the shortest."""

    place: str
    lengths: tuple[int, ...]
    times: int = 1


class WatchedTest(msgspec.Struct, frozen=True):
    """What happened in one test, over all its `runs`.

    `compared` counts comparisons, of which `said_no` failed: `objected` of those by raising. Of
    both, `settled` and `settled_objected` were followed by a comparison of the same that passed;
    `ends_on_yes` says that the last of all did. `asserts_failed` counts `assert` statements that
    failed, as far as pytest has rewritten them.
    `passed` is None where it did not end. `generated` says that a library draws its inputs, and
    draws more of them once one has failed. `idle_loop` says that it passed without the comparison
    that stands in its loop. Of the assertions of a test that passed, `always_true` tells of one
    that holds whatever it is given, `any_of` of one that a single close element satisfies,
    `none_beyond` of one that asks whether none is beyond a bound; each with its place.
    """

    test: str
    passed: bool | None = None
    runs: int = 1
    calls: int = 0
    raised: int = 0
    launches: int = 0
    compared: int = 0
    said_no: int = 0
    objected: int = 0
    settled: int = 0
    settled_objected: int = 0
    ends_on_yes: bool = False
    asserts_failed: int = 0
    warned: int = 0
    generated: bool = False
    idle_loop: bool = False
    always_true: str = ""
    any_of: str = ""
    none_beyond: str = ""


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
    where nobody could count. `entry_in_place` counts those that gave back nothing, or an argument;
    `entry_inputs` are what it was called with. `resized` names kernels that were launched on the
    same shapes in the same blocks, but with other integers or on another grid.
    `compared_nothing` lists tests that passed without reading a value. `warnings` are distinct
    warnings, by `warnings`, `logging` or a printed line that speaks of one. `captured` counts how
    often it read back what was printed in its own process, `shown` how often it made text of a
    tensor or printed a fraction.

    Of comparisons, `between_outputs` counts those of two things made of what the entry gave back,
    `between_others` those of two that were not, and `with_outputs` all others, whatever else read
    an output included. Of those, `whole` had a whole output on a side, for all that is known.
    Outputs that were compared in pieces have `elements_given` elements, `elements_compared` of them
    in a piece.
    """

    entry_calls: int | None = None
    entry_raised: int | None = None
    entry_in_place: int = 0
    entry_inputs: tuple[LaunchInputs, ...] = ()
    compared: tuple[Compared, ...] = ()
    launches: tuple[LaunchInputs, ...] = ()
    resized: tuple[str, ...] = ()
    tally: TestTally | None = None
    tests: tuple[WatchedTest, ...] = ()
    compared_nothing: tuple[str, ...] = ()
    zips: tuple[UnequalZip, ...] = ()
    warnings: tuple[str, ...] = ()
    captured: int = 0
    shown: int = 0
    between_outputs: int = 0
    between_others: int = 0
    with_outputs: int = 0
    whole: int = 0
    elements_given: int = 0
    elements_compared: int = 0
