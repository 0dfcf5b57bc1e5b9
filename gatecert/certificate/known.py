"""What is recorded of a gate that accepted a mutant and does not show outputs.

Facts only: what explains the survival is not concluded from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set, Sized

from gatecert.gates.evidence import BY_HAND, Compared, Evidence
from gatecert.gates.records import Verdict
from gatecert.gates.suite.records import KnownTest, PytestBaseline
from gatecert.wording import count, listed

ON_IT = "the verdict on it: "
"""Begins the one fact that is of the mutant, and not of the original."""
_MOST_NAMES = 2


def facts(verdict: Verdict, original: Verdict | None, reach: Set[str]) -> Iterator[str]:
    """A sentence per fact; `reach` are the kernels whose launch runs the mutated code."""
    if verdict.detail:
        yield f"{ON_IT}{verdict.detail}"
    if original is None:
        return
    if original.baseline is not None:
        yield from _of_tests(original.baseline, reach)
    if original.evidence is not None:
        yield from _of_comparisons(original.evidence)


def _of_tests(baseline: PytestBaseline, reach: Set[str]) -> Iterator[str]:
    """Which tests launch the mutated code, as far as that was seen on the original."""
    launching = [test for test in baseline.tests if reach & set(test.kernels)]
    if not launching:
        return
    kernels = ", ".join(sorted(reach))
    yield (
        f"on the original: {len(launching)} of {count(len(baseline.tests), 'test')} "
        f"{'is' if len(launching) == 1 else 'are'} seen to launch {kernels} in this process: "
        f"{_listed(launching)}"
    )

    def of_them(tests: Sized) -> str:
        return f"of the tests that launch {kernels}, {len(tests)}"

    silent = [test for test in launching if not test.compares]
    if silent:
        yield f"{of_them(silent)} compared nothing there: {_listed(silent)}"
    aside = [test for test in launching if test.reason]
    if aside:
        yield f"{of_them(aside)} set aside, which judge no mutant: {_listed(aside)}"
    yield from _out_of_sight(baseline, kernels, reach)


def _out_of_sight(baseline: PytestBaseline, kernels: str, reach: Set[str]) -> Iterator[str]:
    """Tests that may test the mutated code where no mutant is seen."""
    starters = [test for test in baseline.tests if test.is_out_of_sight]
    if starters:
        yield (
            f"of the tests that are not seen to launch {kernels}, {len(starters)} started "
            f"processes, whose launches are not seen, and judge no mutant: {_listed(starters)}"
        )
    homes = {baseline.files.get(kernel.partition(":")[0], "") for kernel in reach} - {""}
    copying = [test for test in baseline.tests if baseline.runs_a_copy(test, homes)]
    if copying:
        yield (
            f"{count(len(copying), 'test')} read the source text of {kernels} and launched kernels "
            f"of another file, where no mutant is: {_listed(copying)}"
        )


def _of_comparisons(evidence: Evidence) -> Iterator[str]:
    """What the gate compares by, over all that it does on the subject's original."""
    found: dict[str, list[Compared]] = {}
    for one in evidence.compared:
        found.setdefault(_manner(one), []).append(one)
    for manner, ones in found.items():
        times = count(sum(one.times for one in ones), "time")
        used = max((one.used for one in ones if one.used is not None), default=None)
        most = "" if used is None else f", where errors used at most {used:.2g} of the allowance"
        yield f"on the original: compares {manner}, {times}{most}"


def _manner(one: Compared) -> str:
    if one.function == BY_HAND:
        after = f" by {', '.join(one.ops)}" if one.ops else ""
        return f"by hand (it gets numbers out of tensors{after} and compares them itself)"
    known = (("atol", one.atol), ("rtol", one.rtol))
    numbers = ", ".join(f"{name} {value:g}" for name, value in known if value is not None)
    return f"by {one.function}" + (f" with {numbers}" if numbers else "")


def _listed(tests: Iterable[KnownTest]) -> str:
    return listed([test.nodeid for test in tests], _MOST_NAMES)
