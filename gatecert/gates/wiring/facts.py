"""What the rules of `wiring` ask: of one gate and one subject, all that was seen."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from gatecert.gates.evidence import BY_HAND, Compared, Evidence, LaunchInputs
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.watching.functions import ARRAYS, ASSERTING, VALUES, WHOLE
from gatecert.gates.watching.sights import new_warnings
from gatecert.subjects import Subject

RIGHT_SHAPES = ("returns_zeros", "returns_nan", "wrong_element")
"""Adversaries whose outputs have the original's shapes and dtypes."""
_NOTHING = Evidence()
_STRINGS_DIFFER = re.compile(r"AssertionError: assert ['\"]")
"""How pytest tells of `assert text == other_text`."""


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
        """Launches of the subject's kernels by the original; of all where none is known."""
        mine = tuple(one for one in self.original.launches if one.kernel in self.kernels)
        return mine or self.original.launches

    @property
    def bypassed(self) -> bool:
        """Do tests reach kernels past the entry, so that its calls do not tell what they give?"""
        return any(test.launches and not test.calls for test in self.original.tests)

    def warned(self, name: str) -> list[str]:
        """Warnings on an adversary that the original does not bring about."""
        return new_warnings(self.original.warnings, self.seen(name).warnings)

    def passed_with_more(self, name: str, what: Literal["raised", "warned"]) -> list[str]:
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
        before, after = _refusals(self.original), _refusals(self.seen(name))
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
        if any(test.generated for test in seen.tests) or not self._goes_on_after_a_no(seen):
            return ""
        again = self._compared_again(seen) if name in RIGHT_SHAPES else ""
        return self._tried_again(seen) or again

    def objects_to_text(self) -> bool:
        """Do the messages of its noes hold two strings against each other?"""
        noes = [self.answers[name].detail for name in RIGHT_SHAPES if self.rejected(name)]
        return bool(noes) and all(_STRINGS_DIFFER.match(said) for said in noes)

    def _goes_on_after_a_no(self, seen: Evidence) -> bool:
        """Did a test call the entry more often than on the original, and get more than one no?
        One that calls it again to word its message gets no second."""
        usual = {test.test: test.calls for test in self.original.tests}
        return not seen.tests or any(
            test.said_no > 1 and test.calls > usual.get(test.test, test.calls)
            for test in seen.tests
        )

    def _tried_again(self, seen: Evidence) -> str:
        """A gate that goes on after a first no may want all the noes; only one that calls the
        entry on the same input more often than the original needs tries again."""
        refused = sum(one.times for one in seen.compared if _is_no(one))
        usual, now = _calls_by_input(self.original), _calls_by_input(seen)
        for given, times in now.items():
            if refused > 1 and 0 < usual[given] < times:
                sizes = ", ".join(f"{list(shape)}" for _, shape in given.shapes)
                return (
                    f"the entry was called {times} times on {sizes}, on the original "
                    f"{usual[given]}; {refused} comparisons said no"
                )
        return ""

    def _compared_again(self, seen: Evidence) -> str:
        usual, now = _comparisons(self.original.compared), _comparisons(seen.compared)
        refused = _comparisons(one for one in seen.compared if _is_no(one))
        for what, times in refused.items():
            if times > 1 and 0 < usual[what] < now[what]:
                return f"{what[0]} said no {times} times where the original needs {usual[what]}"
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


def is_elementwise(one: Compared) -> bool:
    """Does a function that knows a tolerance hold every element against it?"""
    known = bool(one.shapes)
    return one.function != BY_HAND and (not known or any(math.prod(s) > 1 for s in one.shapes))


def is_whole(one: Compared) -> bool:
    """Is it a number by hand to which every element of a tensor adds a little?"""
    return one.function == BY_HAND and compares_values(one) and not WHOLE.isdisjoint(one.ops)


def compared_in(evidence: Evidence) -> int:
    """How many comparisons of values there were."""
    return sum(one.times for one in evidence.compared if compares_values(one))


def _is_no(one: Compared) -> bool:
    return not one.passed and one.function not in ARRAYS


def _refusals(evidence: Evidence) -> tuple[int, int]:
    if evidence.tests:
        passed = [test for test in evidence.tests if test.passed]
        raised = sum(test.objected for test in passed)
        return sum(test.said_no for test in passed) - raised, raised
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
