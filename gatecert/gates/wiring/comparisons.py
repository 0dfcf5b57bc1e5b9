"""Rules on comparisons that are made and say less than they seem to.

Each gives the evidence in a sentence, or None.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

from gatecert.gates.evidence import BY_HAND, Compared, Evidence
from gatecert.gates.watching.functions import ARRAYS
from gatecert.gates.wiring.facts import RIGHT_SHAPES, Facts, compares_values
from gatecert.wording import count, listed

_WITHIN = frozenset(("lt", "le", "eq", "isclose"))
_BEYOND = frozenset(("gt", "ge", "ne", "invert", "logical_not", "bitwise_not"))
_MENDS: Mapping[str, str] = {
    "copy": "copy_",
    "getitem": "leaving out elements by what they hold",
    "setitem": "assigning to elements by what they hold",
}
"""In words, where the operation's name says too little."""


def always_true(facts: Facts) -> str | None:
    """A test passes on wrong values, by a gate that accepts them, and has an assertion that is true
    whatever it is given."""
    for name in (name for name in RIGHT_SHAPES if facts.accepted(name)):
        hollow = [test for test in facts.seen(name).tests if test.passed and test.always_true]
        if hollow:
            tests = listed([test.test for test in hollow])
            return f"{hollow[0].always_true}, and so passes on {name}: {tests}"
    return None


def mended_output(facts: Facts) -> str | None:
    """Wrong values are accepted by comparisons of an output that was mended before, in more
    elements than the original's."""
    usual = _elements_mended(facts.original)
    for name in (name for name in RIGHT_SHAPES if facts.accepted(name)):
        now = _elements_mended(facts.seen(name))
        for mend, elements in now.items():
            if elements > usual[mend]:
                how = f"{_MENDS.get(mend, mend)} mends {count(elements, 'element')} of outputs"
                before = f", {usual[mend]} on the original" if usual[mend] else ""
                return f"on {name} {how} before they are compared{before}"
    return None


def partly_compared(facts: Facts) -> str | None:
    """One wrong element is accepted, zeros are not, and outputs are compared in pieces that leave
    elements out."""
    seen = facts.seen("wrong_element")
    if not facts.accepted("wrong_element") or not facts.rejected("returns_zeros"):
        return None
    if seen.whole or not 0 < seen.elements_compared < seen.elements_given:
        return None
    compared, given = seen.elements_compared, seen.elements_given
    return f"one wrong element passes: {compared} of {count(given, 'element')} are compared"


def nan_passes(facts: Facts) -> str | None:
    """NaN is accepted by a comparison by hand that rejects zeros: it is beyond no bound."""
    name = "returns_nan"
    if not facts.accepted(name) or not facts.rejected("returns_zeros"):
        return None
    if (
        facts.warned(name)
        or any(facts.refusals(name))
        or facts.passed_with_more(name, "asserts_failed")
    ):
        return None
    if always_true(facts) or mended_output(facts):
        return None
    for one in facts.seen(name).compared:
        if one.nan and one.function == BY_HAND:
            return f"an output of NaN passes {', '.join(one.ops)} by hand: it is beyond no bound"
    told = [test.none_beyond for test in facts.seen(name).tests if test.passed]
    if any(told) and _only_numbers(facts.seen(name).compared):
        return f"an output of NaN passes: {next(filter(None, told))}"
    return None


def any_for_all(facts: Facts) -> str | None:
    """One wrong element is accepted where it is asked whether any element is close."""
    if not facts.accepted("wrong_element") or facts.warned("wrong_element"):
        return None
    seen = facts.seen("wrong_element")
    compared = [one for one in seen.compared if compares_values(one)]
    some = [one for one in compared if _is_any_close(one)]
    if some and all(_is_any_close(one) or one.function in ARRAYS for one in compared):
        return f"one wrong element passes; what is asked is {_asked(some)}"
    told = [test.any_of for test in seen.tests if test.passed and test.any_of]
    if told and _only_numbers(compared):
        return f"one wrong element passes: {told[0]}"
    return None


def _only_numbers(compared: Iterable[Compared]) -> bool:
    """Is nothing compared but numbers that were read, out of sight?"""
    return all(math.prod(shape) == 1 for one in compared for shape in one.shapes)


def _elements_mended(evidence: Evidence) -> Counter[str]:
    """By operation, in comparisons that passed."""
    found: Counter[str] = Counter()
    for one in evidence.compared:
        found.update(dict.fromkeys(one.mended, one.elements_mended if one.passed else 0))
    return found


def _is_any_close(one: Compared) -> bool:
    """Is it by hand whether any element is within a bound, and does one say yes?"""
    if one.function != BY_HAND or len(one.shapes) != 2 or one.answer is not True:
        return False
    before = set(itertools.takewhile(lambda op: op != "any", one.ops))
    return one.ops[-1] == "any" and bool(before & _WITHIN) and not before & _BEYOND


def _asked(compared: Iterable[Compared]) -> str:
    return "; ".join(dict.fromkeys(", ".join(one.ops) for one in compared))
