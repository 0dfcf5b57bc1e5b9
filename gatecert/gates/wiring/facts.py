"""What the rules of `wiring` ask: of one gate and one subject, all that was seen."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gatecert.gates.evidence import BY_HAND, Compared, Evidence, LaunchInputs, WatchedTest
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.watching.functions import ARRAYS, ASSERTING, BOUNDS, VALUES, WHOLE
from gatecert.gates.watching.sights import new_warnings
from gatecert.subjects import Subject
from gatecert.wording import times

RIGHT_SHAPES = ("returns_zeros", "returns_nan", "wrong_element")
"""Adversaries whose outputs have the original's shapes and dtypes."""
_NOTHING = Evidence()
_TEXTS_DIFFER = re.compile(
    r"AssertionError: (assert )?(['\"])((?!\2).)*(\d\.\d|[\s,\[(])|DocTestFailure$"
)
"""How pytest and unittest tell of `assert text == other_text`, and doctest of its own, where the
text has more than a word: a digest is none."""


@dataclass(frozen=True, slots=True)
class Facts:
    """`original` is the evidence of a run that the gate accepted; `answers` are its verdicts on
    the adversaries, by the adversary's name; `kernels` are the subject's."""

    subject: Subject
    original: Evidence
    answers: Mapping[str, Verdict]
    kernels: frozenset[str] = frozenset()

    def accepted(self, *names: str) -> bool:
        """Was one of these adversaries accepted?"""
        return any(self._said(name, GateOutcome.ACCEPTED) for name in names)

    def rejected(self, name: str) -> bool:
        """Was the adversary rejected, positively?"""
        return self._said(name, GateOutcome.REJECTED)

    def seen(self, name: str) -> Evidence:
        """The evidence of an adversary's run; empty where it has none."""
        answer = self.answers.get(name)
        return (answer.evidence if answer is not None else None) or _NOTHING

    @property
    def watched(self) -> tuple[str, ...]:
        """Adversaries that were judged, whatever came of it, and watched."""
        return tuple(
            name
            for name, answer in self.answers.items()
            if answer.evidence is not None and (self.accepted(name) or self.rejected(name))
        )

    @property
    def fooled(self) -> tuple[str, ...]:
        """Adversaries that were accepted, and watched."""
        return tuple(name for name in self.watched if self.accepted(name))

    @property
    def launches(self) -> tuple[LaunchInputs, ...]:
        """Launches of the subject's kernels by the original; of all where none is known. A suite
        may import their module under another name."""
        launches = self.original.launches
        if not self.kernels:
            return launches
        names = {_qualname(kernel) for kernel in self.kernels}
        mine = tuple(one for one in launches if one.kernel in self.kernels)
        return mine or tuple(one for one in launches if _qualname(one.kernel) in names)

    @property
    def bypassed(self) -> bool:
        """Do tests reach kernels past the entry, so that its calls do not tell what they give?"""
        return any(test.launches and not test.calls for test in self.original.tests)

    def warned(self, name: str) -> list[str]:
        """Warnings on an adversary that the original does not bring about."""
        return new_warnings(self.original.warnings, self.seen(name).warnings)

    @property
    def decided(self) -> frozenset[str]:
        """Tests that fail on wrong values in the right shapes: where one of them passes, what it
        decides by was content, whatever else said no."""
        return frozenset(
            test.test
            for name in RIGHT_SHAPES
            for test in self.seen(name).tests
            if test.passed is False
        )

    def passed_with_more(
        self, name: str, what: Literal["raised", "warned", "asserts_failed"]
    ) -> list[str]:
        """Tests that passed on an adversary with more of something than on the original."""
        usual = {test.test: getattr(test, what) for test in self.original.tests}
        return [
            test.test
            for test in self.seen(name).tests
            if test.passed and getattr(test, what) > usual.get(test.test, 0)
        ]

    def refusals(self, name: str) -> tuple[int, int]:
        """Comparisons that said no on an adversary and did not matter, beyond those that say so
        on the original: by what they return, and by raising. Where there are no tests that may
        pass beside one that fails, the adversary must have been accepted."""
        if not self.seen(name).tests and not self.accepted(name):
            return 0, 0
        before = _refusals(self.original, self.decided)
        after = _refusals(self.seen(name), self.decided)
        return max(0, after[0] - before[0]), max(0, after[1] - before[1])

    def retried(self, name: str) -> str:
        """How a test was run again on an adversary because it had failed; "" if none was."""
        seen = self.seen(name)
        if seen.tally is not None and seen.tally.reruns:
            return f"{seen.tally.reruns} reruns of failed tests"
        runs = {test.test: test.runs for test in self.original.tests}
        for test in seen.tests:
            if test.runs > runs.get(test.test, test.runs):
                return f"{test.test} ran {test.runs} times, on the original {runs[test.test]}"
        if any(test.generated for test in seen.tests):
            return ""
        if name == "returns_last_output" and (how := self._saved_by_a_second_call(seen)):
            return how
        if self._fails_after_a_yes() or not self._goes_on_after_a_no(seen):
            return ""
        again = self._compared_again(seen) if name in RIGHT_SHAPES else ""
        return self._tried_again(seen) or again

    def objects_to_text(self) -> bool:
        """Do the messages of its noes hold two texts against each other?"""
        noes = [self.answers[name].detail for name in RIGHT_SHAPES if self.rejected(name)]
        return bool(noes) and all(_TEXTS_DIFFER.search(said) for said in noes)

    def _with_more_calls(self, seen: Evidence) -> list[WatchedTest]:
        usual = {test.test: test.calls for test in self.original.tests}
        return [test for test in seen.tests if test.calls > usual.get(test.test, test.calls)]

    def _goes_on_after_a_no(self, seen: Evidence) -> bool:
        """Did a test call the entry more often than on the original, and get more than one no?
        One that calls it again to word its message gets no second."""
        return not seen.tests or any(test.said_no > 1 for test in self._with_more_calls(seen))

    def _saved_by_a_second_call(self, seen: Evidence) -> str:
        """The last call's output is right when the same is asked again. So a test that calls
        again, passes for it, and fails where every call is wrong tries again until it passes."""
        failed = {
            test.test
            for name in RIGHT_SHAPES
            for test in self._with_more_calls(self.seen(name))
            if test.passed is False
        }
        usual = {test.test: test.calls for test in self.original.tests}
        for test in self._with_more_calls(seen):
            if test.passed and test.test in failed:
                return (
                    f"{test.test} called the entry {times(test.calls)}, on the original "
                    f"{times(usual[test.test])}, and passed"
                )
        return ""

    def _fails_after_a_yes(self) -> bool:
        """Does a test call again only to find out what is wrong: does it fail although the second
        call's output, which then was the right one, was found so?"""
        again = self._with_more_calls(self.seen("returns_last_output"))
        return any(test.passed is False and test.said_no > 0 and test.ends_on_yes for test in again)

    def _tried_again(self, seen: Evidence) -> str:
        """A gate that goes on after a first no may want all the noes; only one that calls the
        entry on the same input more often than the original needs tries again."""
        refused = sum(one.times for one in seen.compared if _is_no(one))
        usual, now = _calls_by_input(self.original), _calls_by_input(seen)
        for given, calls in now.items():
            if refused > 1 and 0 < usual[given] < calls:
                sizes = ", ".join(f"{list(shape)}" for _, shape in given.shapes)
                return (
                    f"the entry was called {calls} times on {sizes}, on the original "
                    f"{usual[given]}; {refused} comparisons said no"
                )
        return ""

    def _compared_again(self, seen: Evidence) -> str:
        usual, now = _comparisons(self.original.compared), _comparisons(seen.compared)
        refused = _comparisons(one for one in seen.compared if _is_no(one))
        for what, noes in refused.items():
            if noes > 1 and 0 < usual[what] < now[what]:
                return f"{what[0]} said no {noes} times where the original needs {usual[what]}"
        return ""

    def _said(self, name: str, outcome: GateOutcome) -> bool:
        answer = self.answers.get(name)
        return answer is not None and answer.loaded and answer.outcome is outcome


def compares_values(one: Compared) -> bool:
    """Does it hold values against others, rather than look at one side alone?"""
    return one.function != BY_HAND or len(one.shapes) == 2 or VALUES in one.ops


def only_reads(one: Compared) -> bool:
    """Are its values read as Python's numbers, and nothing else done with them in sight?"""
    return one.function == BY_HAND and len(one.shapes) != 2 and set(one.ops) == {VALUES}


def is_empty(one: Compared) -> bool:
    """Has a side no element?"""
    return any(0 in shape for shape in one.shapes)


def is_elementwise(one: Compared) -> bool:
    """Does a function that knows a tolerance hold every element against it?"""
    known = bool(one.shapes)
    return one.function != BY_HAND and (not known or any(math.prod(s) > 1 for s in one.shapes))


def is_whole(one: Compared) -> bool:
    """Is it a number by hand to which every element of a tensor adds a little?"""
    if one.function != BY_HAND or not compares_values(one):
        return False
    return any(op in WHOLE for op in itertools.takewhile(lambda op: op not in BOUNDS, one.ops))


def is_share(one: Compared) -> bool:
    """Is it by hand the share of elements that are close?"""
    counts = list(itertools.dropwhile(lambda op: op not in BOUNDS, one.ops))
    return one.function == BY_HAND and ("mean" in counts or {"sum", "div"} <= set(counts))


def compared_in(evidence: Evidence) -> int:
    """How many comparisons of values there were."""
    return sum(one.times for one in evidence.compared if compares_values(one))


def _qualname(kernel: str) -> str:
    return kernel.partition(":")[2]


def _is_no(one: Compared) -> bool:
    return not one.passed and one.function not in ARRAYS


def _refusals(evidence: Evidence, decided: frozenset[str]) -> tuple[int, int]:
    if evidence.tests:
        passed = [test for test in evidence.tests if test.passed and test.test not in decided]
        raised = sum(test.objected - test.settled_objected for test in passed)
        return sum(test.said_no - test.settled for test in passed) - raised, raised
    noes = [one for one in evidence.compared if _is_no(one)]
    raised = sum(one.times for one in noes if one.function in ASSERTING)
    return sum(one.times for one in noes) - raised, raised


def _calls_by_input(evidence: Evidence) -> Counter[LaunchInputs]:
    """Calls on inputs of the same shapes and dtypes."""
    found: Counter[LaunchInputs] = Counter()
    for one in evidence.entry_inputs:
        found[LaunchInputs(one.kernel, one.shapes, one.dtypes)] += one.times
    return found


def _comparisons(
    compared: Iterator[Compared] | tuple[Compared, ...],
) -> Counter[tuple[str, object]]:
    found: Counter[tuple[str, object]] = Counter()
    for one in compared:
        found[one.function, one.shapes] += one.times
    return found
