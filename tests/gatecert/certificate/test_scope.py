"""What a run left out is said, keeps its status, and is in no rate."""

from __future__ import annotations

import msgspec
import pytest

from gatecert.campaign.records import Run, Selection, Status
from gatecert.certificate import Certificate, certify, exit_code, unmet
from gatecert.certificate.records import SelectionSummary
from gatecert.certificate.scope import relative
from gatecert.config import Require
from gatecert.errors import ExitCode
from gatecert.mutants.records import Ignored
from gatecert.operators.records import ObservableBy
from gatecert.statistics import wilson
from gatecert.subjects import Subject
from tests.runs import comparison, mutant, run, subject_run, verdict

A, B, C, D = (f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(1, 5))


def four(selection: Selection | None = None, **changes: object) -> Run:
    """A and B killed, C alive, and D without a verdict."""
    part = subject_run(
        mutants=tuple(mutant(name) for name in (A, B, C, D)),
        verdicts=(verdict(A, "rejected"), verdict(B, "rejected"), verdict(C)),
        **changes,
    )
    return run(part, selection=selection or Selection(), root="/home/team")


def status(certificate: Certificate, name: str) -> Status:
    return certificate.results[name]["oracle"].status


def test_without_a_selection_a_missing_verdict_is_the_environments() -> None:
    found = certify(four())
    assert status(found, D) is Status.INCONCLUSIVE
    assert found.selection == SelectionSummary() and not found.selection.sampled


def test_what_an_interrupted_run_did_not_come_to_was_not_run() -> None:
    found = certify(msgspec.structs.replace(four(), interrupted=True))
    assert status(found, D) is Status.NOT_RUN
    assert found.inconclusive == () and found.mutants.not_run == 1
    assert "1 mutant under oracle: not reached, interrupted" in found.not_tested
    assert not any("interrupted" in line for line in certify(four()).not_tested)


def test_an_interrupted_run_tells_what_failed_from_what_it_did_not_come_to() -> None:
    part = subject_run(mutants=(mutant(A),), verdicts=(verdict(A, "error"),))
    assert status(certify(run(part, interrupted=True)), A) is Status.INCONCLUSIVE


def test_what_is_not_in_the_sample_was_not_run_and_the_rate_gets_wilsons_interval() -> None:
    found = certify(four(Selection(sample=3, sample_of=4, not_sampled=(D,))))
    assert status(found, D) is Status.NOT_RUN
    assert found.mutants.not_run == 1
    assert found.kill_rate == wilson(2, 3)
    assert "1 of 4 mutants, which are not in the sample (--sample)" in found.not_tested


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (
            Selection(sample=3, sample_of=4, not_sampled=(D,)),
            "is unknown (no mutant of it is in the sample), required 100.0%: raise --sample",
        ),
        (
            Selection(time_budget_s=9.0, not_reached=((D, "oracle"),)),
            "is unknown (1 mutant not run), required 100.0%: raise --sample or --time-budget",
        ),
        (Selection(), "is unknown (nothing scored), required 100.0%"),
    ],
)
def test_a_class_that_was_left_out_is_not_called_unscored_without_the_reason(
    selection: Selection, said: str
) -> None:
    mutants = (*map(mutant, (A, B, C)), mutant(D, bug_class="mask-bound"))
    verdicts = tuple(verdict(name, "rejected") for name in (A, B, C))
    found = certify(run(subject_run(mutants=mutants, verdicts=verdicts), selection=selection))
    assert unmet(found, Require(classes={"mask-bound": 1.0})) == [
        f"oracle: class mask-bound {said}"
    ]


def test_what_stands_beside_mutants_by_name_was_not_tested() -> None:
    found = certify(four(Selection(only=2)))
    assert found.selection.only == 2 and not found.selection.sampled
    assert "benign rewrites, adversaries and all mutants but those named (--only)" in (
        found.not_tested
    )


def test_a_gate_that_was_left_out_is_named_with_its_reason() -> None:
    found = certify(msgspec.structs.replace(four(), left_out={"tests": "it fails"}))
    assert found.left_out == {"tests": "it fails"}
    assert "tests, left out: it fails" in found.not_tested
    assert exit_code(found, Require()) is ExitCode.MET


def test_a_sample_of_all_is_a_census() -> None:
    found = certify(four(Selection(sample=4, sample_of=4)))
    assert not found.selection.sampled
    assert found.kill_rate.low is None  # one kernel: no interval


def test_a_timeout_that_nobody_confirmed_counts_as_not_reached() -> None:
    part = subject_run(mutants=(mutant(A),), verdicts=(verdict(A, "timeout"),))
    cut = run(part, selection=Selection(time_budget_s=90.0, not_reached=((A, "oracle"),)))
    found = certify(cut)
    assert status(found, A) is Status.NOT_RUN
    assert found.mutants.timeout == 0 and found.selection.not_reached == 1
    assert f"{A} under oracle: not reached in 90 s (--time-budget)" in found.not_tested


def test_a_mutant_may_be_reached_by_one_gate_alone() -> None:
    part = subject_run(
        mutants=(mutant(A),), verdicts=(verdict(A, "rejected"), verdict(A, gate="weak"))
    )
    chosen = Selection(time_budget_s=90.0, not_reached=((A, "weak"),))
    found = certify(run(part, gates=("oracle", "weak"), selection=chosen))
    assert status(found, A) is Status.KILLED
    assert found.results[A]["weak"].status is Status.NOT_RUN


@pytest.mark.parametrize("code", ["unviable", "equivalent", "duplicate"])
def test_what_is_known_without_running_stays_known(code: str) -> None:
    chosen = Selection(sample=1, sample_of=2, not_sampled=(D,))
    found = certify(four(chosen, comparisons=(comparison(D, code),)))
    assert status(found, D) is Status(code)
    unseen = subject_run(mutants=(mutant(D, observable_by=(ObservableBy.DEVICE,)),))
    assert status(certify(run(unseen, selection=chosen)), D) is Status.NOT_OBSERVABLE


@pytest.mark.parametrize("code", ["viable", "equivalent"])
def test_what_a_person_ignores_is_ignored_whatever_else_is_known(code: str) -> None:
    ignored = (Ignored(C, "the caller pads", "/home/team/acme/k.py", 9),)
    found = certify(four(ignored=ignored, comparisons=(comparison(C, code),)))
    assert status(found, C) is Status.IGNORED
    assert found.results[C]["oracle"].detail == "the caller pads"
    assert found.ignored == (Ignored(C, "the caller pads", "acme/k.py", 9),)
    assert (found.kill_rate.n, found.mutants.ignored) == (2, 1)


def test_a_mutant_that_is_not_planted_is_not_listed_as_ignored() -> None:
    ignored = (Ignored("softmax/k/other/1-ffffff", "gone", "/k.py", 9),)
    assert certify(four(ignored=ignored)).ignored == ()


def test_paths_are_relative_to_the_project_and_no_further() -> None:
    subject = Subject("softmax", "acme:softmax", import_paths=("/home/team/lib", "/home/src"))
    found = run(subject_run(subject=subject), root="/home/team")
    assert relative("/home/team/acme/k.py", found) == "acme/k.py"
    assert relative("/home/src/acme/k.py", found, "acme.k") == "../src/acme/k.py"
    assert relative("/home/team2/k.py", found, "acme.k") == "module:acme.k"
    assert relative("/home/team2/k.py", found) == "k.py"


def test_a_diff_says_what_it_leaves_out() -> None:
    found = certify(four(Selection(since="main")))
    assert "mutants on lines that are as they were at main (--in-diff)" in found.not_tested
