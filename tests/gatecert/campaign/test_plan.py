"""Claims about plans: what is named as left alone."""

from __future__ import annotations

from gatecert.campaign.plan import PlannedSubject, without_others_kernels
from gatecert.mutants.records import Kernel, Skip
from tests.runs import subject_run


def planned(kernel: str, *skips: Skip) -> PlannedSubject:
    kernels = (Kernel("a", kernel, "a.py", 1),)
    return PlannedSubject(subject_run(kernels=kernels, skipped=skips), {}, (), 0.0)


def names(found: tuple[PlannedSubject, ...]) -> list[list[str]]:
    return [[skip.name for skip in part.run.skipped] for part in found]


def test_a_kernel_that_another_subject_launches_is_not_named_as_left_alone() -> None:
    def unlaunched(name: str) -> Skip:
        return Skip(name, "a.py", 1, "not launched by a:first on its declared domain")

    twice = Skip("a:twice", "a.py", 9, "defined twice")
    first = planned("k", unlaunched("a:other"), unlaunched("a:idle"), twice)
    second = planned("other", unlaunched("a:k"))
    whole = without_others_kernels((first, second), all_are_here=True)
    assert names(whole) == [["a:idle", "a:twice"], []]
    # One alone: nobody knows what the others launch.
    assert names(without_others_kernels((first,), all_are_here=False)) == [["a:twice"]]
