"""Watch what a gate does in its own process: what it compares, launches, calls and warns of.

    with watch(entry=subject.entry) as watched:
        ...                      # import the user's code and run the gate
    verdict = replace(verdict, evidence=watched.evidence())

Enter it before any module of the user is imported, so that `from torch.testing import
assert_close` binds the watched function. Watched functions return and raise what they always did;
at exit everything is as it was before. Made for the original and for adversaries: it costs too
much for every mutant. Imports no Triton and no pytest.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import ModuleType, TracebackType
from typing import Any

import msgspec
import numpy as np
import torch

from gatecert.gates.evidence import BY_HAND, Compared, Evidence, LaunchInputs, UnequalZip
from gatecert.gates.watching.assertions import assertions_of
from gatecert.gates.watching.comparing import replaced
from gatecert.gates.watching.comparisons import Sides, sides_of
from gatecert.gates.watching.functions import ARRAYS, ASSERTING, VALUES
from gatecert.gates.watching.mending import Mend
from gatecert.gates.watching.mentions import loops_over_comparison
from gatecert.gates.watching.observing import CallObserver, LaunchInputsObserver
from gatecert.gates.watching.origins import NOT_KNOWN, Mended
from gatecert.gates.watching.sights import Sights, Sizes, TestCount
from gatecert.gates.watching.tensor_reads import TensorReads, Trace, dtype_name
from gatecert.gates.wiring.allowances import Allowance, allowance_of
from gatecert.lanes import interpreter
from gatecert.mutants.entry_calls import entry_observed, show_entry

_LARGEST_ERROR = frozenset(("sub", "abs", "max", "amax", "all", "any", "lt", "le", "gt", "ge"))
"""By-hand comparisons of these operations alone hold the largest error against a bound."""


def watch(
    *,
    subject_kernels: frozenset[str] = frozenset(),
    entry: str = "",
    tests: Collection[str] | None = None,
) -> Watch:
    """A context in which evidence is collected.

    `subject_kernels` are the kernels whose launches matter, as `module:qualname`; empty means
    all. `entry` is the subject's, as `module:attribute`: its calls are counted, and what they
    were given is noted, once its module is imported. An adversary shows its own calls. Of the
    gate's tests these are the subject's, and those that call the entry; None means all. What
    others do is left out.
    """
    return Watch(subject_kernels, entry, tests)


class Watch:
    """Collects evidence between entering and leaving it; the methods but the first three are
    for what it puts into the process."""

    def __init__(
        self, subject_kernels: frozenset[str], entry: str, tests: Collection[str] | None = None
    ) -> None:
        self._tests = tests
        self._kernels = subject_kernels
        self._module, _, self._path = entry.partition(":")
        self._calls = CallObserver(self, entry)
        self._contexts = contextlib.ExitStack()
        self._sights = Sights()
        self._reads = TensorReads(self)
        self._test: TestCount | None = None
        self._function: Callable[..., Any] | None = None
        self._quiet = 0
        self._inside = False
        self._process = os.getpid()

    def begin_test(self, nodeid: str, function: Callable[..., Any] | None = None) -> None:
        """A test starts its call phase; `function` is its Python function, where it has one.
        A test that is run again keeps its name, and what it did before."""
        self._test = self._sights.tests.setdefault(nodeid, TestCount(nodeid))
        self._test.runs += 1
        self._test.failed = False
        self._test.noes.clear()
        self._test.generated = hasattr(function, "hypothesis")
        self._test.idle_loop = False
        self._test.always_true = self._test.any_of = self._test.none_beyond = ""
        self._function = function

    def end_test(self, nodeid: str, passed: bool) -> None:
        """The test ended; call it for the last run of a test that was repeated, too."""
        test, self._test = self._sights.tests[nodeid], None
        test.passed = passed and not test.failed
        if not test.passed:
            return
        with contextlib.suppress(Exception):
            test.idle_loop = not test.compared and loops_over_comparison(self._function)
            package = self._module.partition(".")[0]
            said = assertions_of(self._function, package)
            test.always_true, test.any_of, test.none_beyond = said

    def failed(self, nodeid: str) -> None:
        """It, or a part of it, failed: unittest and subtests let no exception out of a test."""
        if nodeid in self._sights.tests:
            test = self._sights.tests[nodeid]
            test.passed, test.failed = False, True

    def evidence(self) -> Evidence:
        """All of it so far; `tally` is left to whoever ran the tests."""
        self._notice_fork()
        return self._sights.evidence(self._is_the_subjects)

    def counts(self, nodeid: str) -> bool:
        """Is it a test of the subject?"""
        test = self._sights.tests.get(nodeid, TestCount(nodeid))
        return self._is_the_subjects(test)

    def __enter__(self) -> Watch:
        enter = self._contexts.enter_context
        enter(replaced(self))
        enter(self._reads)
        enter(interpreter.observed(LaunchInputsObserver(self, self._kernels)))
        enter(entry_observed(self._calls))
        if self._module in sys.modules:
            self._show_entry()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._quiet += 1  # whoever kept a replaced function may go on calling it
        self._contexts.close()

    @property
    def listening(self) -> bool:
        """Whether what happens now is the gate's own doing."""
        return not (self._quiet or self._inside)

    @contextlib.contextmanager
    def quietly(self) -> Iterator[None]:
        """Nothing is noted inside."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    comparing = quietly

    def compared(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], passed: bool
    ) -> None:
        """A comparing function answered."""
        with self.quietly():
            sides = sides_of(name, args, kwargs)
            allowance = self._allowance(sides) if passed else None
            places = frozenset(_place(side) for side in sides.values)
            made = self._reads.origins.made_of(sides.values)
            self._here.add_sides(made)
        one = _compared(name, passed, sides, allowance)
        self._add(msgspec.structs.replace(one, **_mends(made.mended)), places)

    def torch_compared(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], answer: Any
    ) -> None:
        """A comparing function of torch answered; None: it raised."""
        passed = answer is not None and bool(answer if isinstance(answer, bool) else answer.all())
        self.compared(name, args, kwargs, passed)

    def number_read(self, trace: Trace | None, answer: bool | None = None) -> None:
        """A number, or all of them, left a tensor; `answer` where it was a truth value."""
        if self._test is not None:
            self._test.reads += 1
        trace = trace or Trace()
        one = Compared(
            BY_HAND,
            True,
            trace.bound,
            None,
            trace.shapes,
            trace.dtypes,
            ops=trace.ops,
            answer=answer if trace.shapes else None,
            nan=trace.nan,
            **_mends(trace.made_of.mended),
        )
        expected = trace.expected() if trace.expected is not None else None
        if trace.bound and expected is not None and _LARGEST_ERROR.issuperset(trace.ops):
            allowance = self._allowance(Sides((expected, expected), trace.bound, 0.0))
            if allowance is not None:
                one = msgspec.structs.replace(
                    one, wrong_by=allowance.wrong_by, of_default=allowance.of_default
                )
        if trace.shapes:
            self._here.add_sides(trace.made_of)
        if trace.shapes or VALUES in trace.ops:
            self._add(one)
        else:
            self._here.add_compared(one)

    def array_reduced(self, name: str) -> None:
        """One number was made of an array of numpy's."""
        self.number_read(Trace(ops=(name, VALUES)))

    def output_read(self) -> None:
        """What the entry gave back left torch, to be compared who knows how."""
        self._here.add_sides(NOT_KNOWN)

    def array_mended(self, name: str, array: Any, answer: Any, elements: int) -> None:
        """A function of numpy replaced elements of an array for what they were worth."""
        if self._reads.origins.made(array):
            mend = Mend(name, elements) if elements else None
            self._reads.origins.follow(name, (array,), answer, mend)

    def tensor_shown(self) -> None:
        """Text was made of a tensor or of a number."""
        self._here.shown += 1

    def warned(self, message: str) -> None:
        """The gate's code warned."""
        self._here.add_warning(message)
        if self._test is not None:
            self._test.warned += 1

    def assertion_failed(self) -> None:
        """An `assert` of the gate failed."""
        if self._test is not None:
            self._test.asserts_failed += 1

    def text_captured(self) -> None:
        """The gate reads printed text."""
        self._here.captured += 1

    def zipped(self, place: str, lengths: tuple[int, ...]) -> None:
        """The gate's code zipped lists of unequal lengths."""
        self._here.add_zip(UnequalZip(place, lengths))

    def imported(self, module: ModuleType) -> None:
        """A module was executed."""
        if module.__name__ == self._module:
            self._show_entry()

    def launched(self, inputs: LaunchInputs, sizes: Sizes) -> None:
        """A kernel ran; `sizes` are its integers."""
        self._notice_fork()
        self._here.add_launch(inputs)
        self._here.add_extent(inputs, (inputs.programs, sizes))
        if self._test is not None:
            self._test.launches += 1

    def called(self, inputs: LaunchInputs) -> None:
        """The entry is called."""
        self._notice_fork()
        self._inside = True
        self._sights.calls = (self._sights.calls or 0) + 1
        self._sights.add_entry_inputs(inputs)
        if self._test is not None:
            self._test.calls += 1

    def gave_back(self, tensors: Iterable[torch.Tensor]) -> None:
        """The call gave these back."""
        self._reads.origins.given_back(tensors)

    def returned(self, error: BaseException | None, in_place: bool) -> None:
        """The call has ended."""
        self._inside = False
        self._sights.raised += error is not None
        self._sights.in_place += in_place
        if self._test is not None:
            self._test.raised += error is not None

    @property
    def _here(self) -> Sights:
        """What was seen in the test that runs, or outside of tests."""
        return self._sights if self._test is None else self._test.sights

    def _is_the_subjects(self, test: TestCount) -> bool:
        return self._tests is None or test.name in self._tests or test.calls > 0

    def _add(self, one: Compared, places: frozenset[int] = frozenset()) -> None:
        self._notice_fork()
        self._here.add_compared(one)
        if self._test is None:
            return
        if one.function in ARRAYS or one.function == BY_HAND:
            self._test.compared += 1
        else:
            raises = one.function in ASSERTING
            self._test.answered(places, passed=one.passed, raises=raises)

    def _allowance(self, sides: Sides) -> Allowance | None:
        """Not while an adversary is at work: copies of the reference would be left in memory,
        where it looks for them."""
        if sides.atol is None or sides.rtol is None or _adversary_is_at_work():
            return None
        with contextlib.suppress(Exception):
            actual, expected = sides.values
            return allowance_of(actual, expected, sides.atol, sides.rtol)
        return None

    def _show_entry(self) -> None:
        with contextlib.suppress(AttributeError):
            if show_entry(self._module, self._path) and self._sights.calls is None:
                self._sights.calls = 0

    def _notice_fork(self) -> None:
        """What a parent process did is not its child's doing."""
        if os.getpid() != self._process:
            self._process = os.getpid()
            calls = None if self._sights.calls is None else 0
            self._sights = Sights(calls=calls)
            self._test = None


def _compared(name: str, passed: bool, sides: Sides, allowance: Allowance | None) -> Compared:
    known = () if any(shape_of(side) is None for side in sides.values) else sides.values
    return Compared(
        function=name,
        passed=passed,
        atol=sides.atol,
        rtol=sides.rtol,
        shapes=tuple(shape_of(side) or () for side in known),
        dtypes=tuple(dtype_name(side.dtype) for side in known if hasattr(side, "dtype")),
        wrong_by=allowance.wrong_by if allowance else None,
        of_default=allowance.of_default if allowance else None,
        used=allowance.used if allowance else None,
    )


def _mends(mended: Mended) -> dict[str, Any]:
    """The fields of a comparison that tell how an output was mended before it."""
    return {
        "mended": tuple(mend.operation for mend in mended),
        "elements_mended": sum(mend.elements for mend in mended),
    }


def _place(side: Any) -> int:
    """Where the values lie: the same for a tensor and what else shows its memory from the start."""
    with contextlib.suppress(RuntimeError, NotImplementedError):  # of a sparse one
        if isinstance(side, torch.Tensor):
            return int(side.data_ptr())
    return int(side.ctypes.data) if isinstance(side, np.ndarray) else id(side)


def shape_of(side: Any) -> tuple[int, ...] | None:
    """The shape of a tensor, an array or a number; None of anything else."""
    if isinstance(side, bool | int | float | complex):
        return ()
    shape = getattr(side, "shape", None)
    return None if shape is None else tuple(shape)


def _adversary_is_at_work() -> bool:
    adversaries = sys.modules.get("gatecert.mutants.adversaries")
    return adversaries is not None and adversaries.calls() > 0
