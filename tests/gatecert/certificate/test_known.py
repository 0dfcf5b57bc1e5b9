"""The card of a survivor of a suite lists what is recorded, and concludes nothing."""

from __future__ import annotations

from gatecert.certificate import certify
from gatecert.certificate.records import Survivor
from gatecert.diagnosis.records import Cause
from gatecert.gates.evidence import BY_HAND, Compared, Evidence
from gatecert.gates.suite.records import Ending, KnownTest, PytestBaseline
from gatecert.reports.cards import survivor_lines
from tests.runs import mutant, run, subject_run, verdict

ID = "softmax/softmax_kernel/drop-load-mask/1-aaaaaa"
KERNEL = "acme.kernels:softmax_kernel"
EVIDENCE = Evidence(
    compared=(
        Compared("torch.allclose", True, atol=1e-2, rtol=0.0, times=3, used=0.25),
        Compared("torch.allclose", True, atol=1e-2, rtol=0.0, used=0.5),
        Compared(BY_HAND, True, ops=("abs", "max"), times=1),
    )
)


def known(name: str, *kernels: str, **changes: object) -> KnownTest:
    return KnownTest(name, (Ending.PASSED,), kernels=kernels, **changes)  # type: ignore[arg-type]


def survivor(baseline: PytestBaseline | None = None, **said: object) -> Survivor:
    """The only survivor of a suite."""
    gate = {"gate": "tests", "bits": ""}
    original = verdict("softmax/original", baseline=baseline, evidence=EVIDENCE, **gate)
    part = subject_run(
        mutants=(mutant(ID, kernel="softmax_kernel"),),
        verdicts=(
            original,
            verdict(ID, **{**gate, "detail": "2 passed", "kernels": (KERNEL,), **said}),
        ),
    )
    (found,) = certify(run(part, gate="tests", gates=("tests",))).survivors
    return found


def test_tests_that_launch_the_kernel_and_what_they_compare_by_are_named() -> None:
    baseline = PytestBaseline(
        (
            known("test_a.py::test_values", KERNEL),
            known("test_a.py::test_shape", KERNEL, compares=False),
            known("test_a.py::test_luck", KERNEL, reason="flaky"),
            known("test_a.py::test_other", "acme.kernels:other"),
        )
    )
    found = survivor(baseline)
    assert found.reason is Cause.UNEXPLAINED
    assert found.known == (
        "the verdict on it: 2 passed",
        f"on the original: 3 of 4 tests are seen to launch {KERNEL} in this process: "
        "test_a.py::test_values, test_a.py::test_shape and 1 more",
        f"of the tests that launch {KERNEL}, 1 compared nothing there: test_a.py::test_shape",
        f"of the tests that launch {KERNEL}, 1 set aside, which judge no mutant: "
        "test_a.py::test_luck",
        "on the original: compares by torch.allclose with atol 0.01, rtol 0, 4 times, where errors "
        "used at most 0.5 of the allowance",
        "on the original: compares by hand (it gets numbers out of tensors by abs, max and "
        "compares them itself), 1 time",
    )
    assert "  known:   the verdict on it: 2 passed" in survivor_lines(found)


def test_tests_that_do_something_out_of_sight_are_named() -> None:
    baseline = PytestBaseline(
        (
            known("test_a.py::test_smoke", KERNEL, starts=True),
            known("test_a.py::test_fork", starts=True),
            known("test_a.py::test_copy", "made:softmax_kernel", sources=("/acme/kernels.py",)),
            known("test_a.py::test_text", KERNEL, sources=("/acme/kernels.py",)),
        ),
        files={"acme.kernels": "/acme/kernels.py"},
    )
    facts = survivor(baseline).known
    assert (
        f"of the tests that are not seen to launch {KERNEL}, 1 started processes, whose launches "
        "are not seen, and judge no mutant: test_a.py::test_fork"
    ) in facts
    assert (
        f"1 test read the source text of {KERNEL} and launched kernels of another file, where no "
        "mutant is: test_a.py::test_copy"
    ) in facts


def test_a_kernel_that_no_test_launches_is_said_to_be_so() -> None:
    found = survivor(
        PytestBaseline((known("test_a.py::test_other", "acme.kernels:other"),)),
        detail=f"no test launches {KERNEL}",
        launches=0,
    )
    assert found.reason is Cause.UNREACHED
    assert found.known[0] == f"the verdict on it: no test launches {KERNEL}"
    assert not any("to launch" in fact for fact in found.known)


def test_nothing_is_said_where_nothing_is_recorded() -> None:
    part = subject_run(mutants=(mutant(ID),), verdicts=(verdict(ID, bits="", kernels=(KERNEL,)),))
    (found,) = certify(run(part)).survivors
    assert (found.reason, found.known) == (Cause.UNEXPLAINED, ())
