"""Claims about which tests judge a candidate, and in which order."""

from __future__ import annotations

import random

import pytest

from gatecert.gates.suite.launches import LaunchBook
from gatecert.gates.suite.records import Ending, KnownTest, PytestBaseline
from gatecert.gates.suite.selection import (
    chosen_for,
    in_order,
    owned_tests,
    parts_of,
    under_known_names,
    why_unreached,
)
from gatecert.lanes.records import Launch
from gatecert.mutants.records import Candidate, CandidateKind

PASSED = (Ending.PASSED,) * 3


def known(
    nodeid: str, *kernels: str, cost: int = 1, launches: int = 1, **more: object
) -> KnownTest:
    """A test that launches these kernels of the module `m`."""
    return KnownTest(
        nodeid,
        PASSED,
        kernels=tuple(f"m:{kernel}" for kernel in kernels),
        programs=cost,
        launches=launches,
        **more,  # type: ignore[arg-type]
    )


def mutant(*kernels: str) -> Candidate:
    """A mutant that launches of these kernels of the module `m` can show."""
    names = tuple(f"m:{kernel}" for kernel in kernels)
    return Candidate("c", CandidateKind.MUTANT, "s", kernels=names)


def ids(candidate: Candidate, *tests: KnownTest) -> tuple[str, ...]:
    """Which tests run for the candidate."""
    return chosen_for(candidate, PytestBaseline(tests)).nodeids


BOTH = known("t.py::both", "a", "b")
ONLY_A = known("t.py::only_a", "a")
ONLY_B = known("t.py::only_b", "b")
NONE = known("t.py::none")
FLAKY = known("t.py::flaky", "a", reason="passed 2 of 3 runs on the original (1 failed)")
ALL = (BOTH, ONLY_A, ONLY_B, NONE, FLAKY)


@pytest.mark.parametrize(
    ("kernels", "wanted"),
    [
        (("a",), (BOTH, ONLY_A)),
        (("b",), (BOTH, ONLY_B)),
        (("a", "b"), (BOTH, ONLY_A, ONLY_B)),
        ((), (BOTH, ONLY_A, ONLY_B)),
    ],
)
def test_only_tests_that_launch_the_mutated_kernel_run(
    kernels: tuple[str, ...], wanted: tuple[KnownTest, ...]
) -> None:
    assert ids(mutant(*kernels), *ALL) == tuple(test.nodeid for test in wanted)


def test_a_flaky_test_judges_nobody() -> None:
    for kind in CandidateKind:
        assert FLAKY.nodeid not in ids(Candidate("c", kind, "s"), *ALL)


def test_an_adversary_meets_the_tests_that_launch_nothing_too() -> None:
    assert ids(Candidate("c", CandidateKind.ADVERSARY, "s"), *ALL)[-1] == NONE.nodeid
    assert NONE.nodeid not in ids(Candidate("c", CandidateKind.BENIGN, "s"), *ALL)


def test_where_no_test_launches_anything_all_run() -> None:
    assert ids(mutant("a"), NONE, known("t.py::other")) == ("t.py::none", "t.py::other")


@pytest.mark.parametrize(
    ("kernels", "says"),
    [
        (("a",), ""),
        (("c",), "no test launches m:c"),
        ((), ""),
    ],
)
def test_a_kernel_that_no_test_launches_is_unreached(kernels: tuple[str, ...], says: str) -> None:
    assert why_unreached(mutant(*kernels), PytestBaseline(ALL)) == says


def test_a_kernel_that_only_flaky_tests_launch_is_unreached_and_says_so() -> None:
    said = why_unreached(mutant("a"), PytestBaseline((FLAKY, ONLY_B)))
    assert said == "only tests that are set aside launch m:a"


def test_files_without_a_test_to_run_need_not_be_imported() -> None:
    other = known("other.py::only_b", "b")
    baseline = PytestBaseline((ONLY_A, other))
    assert chosen_for(mutant("a"), baseline).idle_files == {"other.py"}
    assert chosen_for(mutant("b"), baseline).idle_files == {"t.py"}
    assert chosen_for(mutant(), baseline).idle_files == frozenset()


def test_cheap_tests_come_first_and_many_looks_for_the_price_are_cheap() -> None:
    dear = known("t.py::dear", "a", cost=12)
    cheap = known("t.py::cheap", "a", cost=2)
    many = known("t.py::many", "a", cost=12, launches=12)
    assert in_order([dear, cheap, many]) == (many.nodeid, cheap.nodeid, dear.nodeid)


def test_tests_that_compare_come_before_those_that_do_not() -> None:
    silent = known("t.py::silent", "a", cost=1, compares=False)
    assert in_order([silent, known("t.py::dear", "a", cost=9)])[-1] == silent.nodeid


def test_equals_stay_in_the_files_order() -> None:
    tests = [known(f"t.py::test_{name}", "a") for name in ("z", "a", "m")]
    assert in_order(tests) == tuple(test.nodeid for test in tests)


def test_tests_of_one_file_and_class_stay_together() -> None:
    names = ["x/a.py::T::one", "x/a.py::T::two", "x/a.py::plain", "x/b.py::one", "y/a.py::one[::]"]
    tests = [known(name, "a", cost=cost) for cost in (3, 1, 2) for name in _numbered(names, cost)]
    random.Random(0).shuffle(tests)
    order = in_order(tests)
    assert sorted(order) == sorted(test.nodeid for test in tests)
    for prefix in ("x/", "y/", "x/a.py", "x/b.py", "x/a.py::T"):
        places = [place for place, nodeid in enumerate(order) if nodeid.startswith(prefix)]
        assert places == list(range(places[0], places[0] + len(places))), prefix


def _numbered(names: list[str], number: int) -> list[str]:
    return [f"{name}[{number}]" for name in names]


def test_the_parts_that_judge_mutants_are_run_by_themselves_once_each() -> None:
    parts = {part.nodeids for part in parts_of(ALL)}
    assert parts == {
        (BOTH.nodeid, ONLY_A.nodeid, ONLY_B.nodeid, NONE.nodeid),
        (BOTH.nodeid, ONLY_A.nodeid, ONLY_B.nodeid),
        (BOTH.nodeid, ONLY_A.nodeid),
        (BOTH.nodeid, ONLY_B.nodeid),
    }


def test_a_suite_of_one_kernel_is_its_only_part() -> None:
    tests = [ONLY_A, known("t.py::other", "a")]
    assert [part.nodeids for part in parts_of(tests)] == [in_order(tests)]


def test_a_test_that_leans_on_others_of_its_file_joins_whenever_one_of_them_runs() -> None:
    leaning = known("t.py::leaning", leans=True)
    elsewhere = known("u.py::only_a", "a")
    tests = (ONLY_A, ONLY_B, NONE, leaning, elsewhere)
    wanted = (ONLY_A.nodeid, ONLY_B.nodeid, leaning.nodeid)
    assert ids(mutant("a"), *tests) == (*wanted, elsewhere.nodeid)
    assert ids(mutant("b"), *tests) == wanted
    assert why_unreached(mutant("c"), PytestBaseline(tests)) == "no test launches m:c"
    assert ids(mutant("a"), known("v.py::leaning", leans=True), elsewhere) == (elsewhere.nodeid,)


def test_a_kernel_has_one_name_however_pytest_calls_its_module() -> None:
    baseline = PytestBaseline(
        (KnownTest("t", PASSED, kernels=("tests.test_x:k", "lib:k")),),
        files={"tests.test_x": "/p/tests/test_x.py", "lib": "/p/lib.py"},
    )
    named = under_known_names(baseline, {"test_x": "/p/tests/test_x.py"})
    assert named.tests[0].kernels == ("lib:k", "test_x:k")


def launch(kernel: str, programs: int = 1) -> Launch:
    """A launch of a kernel of the module `m`."""
    return Launch(f"m:{kernel}", (programs, 1, 1), (), ())


def test_what_a_shared_fixture_launches_belongs_to_every_test_that_uses_it() -> None:
    launches: list[Launch] = []
    book = LaunchBook(launches)
    with book.test("first", ("reference", "tmp_path")):
        with book.shared_fixture("reference", declared=True):
            launches.append(launch("reference", 50))
        launches += [launch("a", 2), launch("a", 2), launch("a", 3)]
    with book.test("second", ("reference",)):
        launches.append(launch("b"))
    with book.test("third", ()):
        pass
    shares = book.shares()
    assert shares["first"].kernels == ("m:a", "m:reference")
    assert (shares["first"].programs, shares["first"].launches) == (7, 2)
    assert shares["second"].kernels == ("m:b", "m:reference")
    assert shares["third"].kernels == ()


def test_what_no_test_can_be_named_for_belongs_to_all() -> None:
    launches: list[Launch] = []
    book = LaunchBook(launches)
    launches.append(launch("while_collecting"))
    with book.test("first", ()), book.shared_fixture("by_name_at_run_time", declared=False):
        launches.append(launch("unclear"))
    with book.test("second", ()):
        pass
    launches.append(launch("at_the_end"))
    wanted = ("m:at_the_end", "m:unclear", "m:while_collecting")
    assert {share.kernels for share in book.shares().values()} == {wanted}


def test_a_subjects_tests_are_those_that_launch_its_kernels_whether_reliable_or_not() -> None:
    baseline = PytestBaseline(ALL)
    assert owned_tests(["m:a"], baseline) == {BOTH.nodeid, ONLY_A.nodeid, FLAKY.nodeid}
    assert owned_tests(["m:a", "m:b"], baseline) == {test.nodeid for test in ALL} - {NONE.nodeid}
    assert owned_tests(["m:other"], baseline) == frozenset()


def test_a_test_that_leans_on_others_of_its_file_is_of_every_subject_there() -> None:
    leaning = known("t.py::leans", leans=True)
    baseline = PytestBaseline((ONLY_A, leaning, known("u.py::only_b", "b")))
    assert owned_tests(["m:a"], baseline) == {ONLY_A.nodeid, leaning.nodeid}
    assert owned_tests(["m:b"], baseline) == {"u.py::only_b"}


def test_all_tests_are_a_subjects_where_no_launch_is_known() -> None:
    assert owned_tests([], PytestBaseline(ALL)) is None
    assert owned_tests(["m:a"], PytestBaseline((NONE,))) is None
