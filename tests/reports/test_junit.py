"""JUnit XML is valid, and passed means killed."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from gatecert.campaign.records import Run, Selection
from gatecert.certificate import certify
from gatecert.lanes.records import Finding, FindingKind
from gatecert.mutants.records import Ignored
from gatecert.operators.records import ObservableBy
from gatecert.reports.junit import render_junit
from tests.runs import comparison, mutant, run, subject_run, typical_run, verdict

ID = "softmax/k/drop-load-mask/1-aaaaaa"


def parsed(found: Run) -> ET.Element:
    return ET.fromstring(render_junit(certify(found)))


def case(found: Run, name: str = "drop-load-mask/1-aaaaaa") -> ET.Element:
    (only,) = [c for c in parsed(found).iter("testcase") if c.get("name") == name]
    return only


def one(outcome: str = "accepted", code: str = "viable", **changes: object) -> Run:
    """A run of one mutant."""
    detail = "died of signal 11"
    return run(
        subject_run(
            mutants=(mutant(ID, **changes),),
            comparisons=(comparison(ID, code),),
            verdicts=(verdict(ID, outcome, detail=detail),),
        )
    )


def test_a_suite_is_a_subject_and_a_case_a_mutant() -> None:
    suites = parsed(typical_run())
    assert suites.get("name") == "gatecert oracle"
    assert [s.get("name") for s in suites] == ["softmax", "gelu"]
    softmax = suites[0]
    assert (softmax.get("tests"), softmax.get("failures")) == ("5", "1")
    assert (softmax.get("errors"), softmax.get("skipped")) == ("0", "3")
    assert {c.get("classname") for c in softmax} == {"softmax.k"}
    assert suites.get("tests") == "6"


def test_killed_passes() -> None:
    assert list(case(one("rejected"))) == []


def test_a_survivor_is_a_failure_with_its_diff() -> None:
    (failure,) = case(one())
    assert (failure.tag, failure.get("type")) == ("failure", "survived")
    assert failure.get("message") == "survived: the load has no mask (unexplained)"
    assert "+    x = tl.load(p)" in (failure.text or "")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("error", "inconclusive"), ("crashed", "crashed"), ("timeout", "timeout")],
)
def test_no_verdict_that_counts_is_an_error_and_never_a_pass(outcome: str, status: str) -> None:
    (error,) = case(one(outcome))
    assert (error.tag, error.get("type")) == ("error", status)
    assert "died of signal 11" in (error.get("message") or "")


def test_what_touched_foreign_memory_while_the_gate_passed_is_no_error() -> None:
    found = Finding(FindingKind.STORE_OUT_OF_BOUNDS, "acme.kernels:k", "o_ptr", 1, 64)
    part = subject_run(
        mutants=(mutant(ID),), verdicts=(verdict(ID, gate="tests", findings=(found,)),)
    )
    (skipped,) = case(run(part, gate="tests", gates=("tests",)))
    assert skipped.tag == "skipped"
    said = "unreported: touched memory out of bounds (store, 1 lane on o_ptr), and the gate passed"
    assert (skipped.get("message") or "").startswith(said)


@pytest.mark.parametrize("code", ["equivalent", "unviable", "duplicate"])
def test_what_its_code_excludes_is_skipped(code: str) -> None:
    (skipped,) = case(one(code=code))
    assert skipped.tag == "skipped"
    assert (skipped.get("message") or "").startswith(code)


def test_what_the_lane_cannot_show_is_skipped() -> None:
    (skipped,) = case(one(observable_by=(ObservableBy.DEVICE,)))
    assert (skipped.tag, skipped.get("message")) == (
        "skipped",
        "not_observable: only device would show it",
    )


def test_what_a_person_ignores_is_skipped_with_the_reason() -> None:
    ignored = (Ignored(ID, "the caller pads", "k.py", 7),)
    (skipped,) = case(run(subject_run(mutants=(mutant(ID),), ignored=ignored)))
    assert (skipped.tag, skipped.get("message")) == ("skipped", "ignored: the caller pads")


def test_what_was_not_run_is_skipped() -> None:
    chosen = Selection(sample=1, sample_of=2, not_sampled=(ID,))
    (skipped,) = case(run(subject_run(mutants=(mutant(ID),)), selection=chosen))
    assert (skipped.tag, skipped.get("message")) == ("skipped", "not_run")


def test_a_surviving_rung_of_the_ladder_is_no_failure() -> None:
    (skipped,) = case(one(scored=False))
    assert skipped.tag == "skipped"


def test_a_failed_subject_a_rejected_control_and_an_accepted_adversary_fail() -> None:
    found = typical_run()
    (error,) = case(found, "original")
    assert (error.tag, error.get("type")) == ("error", "failed")
    weak = run(*found.subjects, gate="weak", gates=("weak", "oracle"))
    (rejected,) = case(weak, "blocks")
    assert rejected.tag == "failure" and "correct code: rejected" in (rejected.get("message") or "")
    (accepted,) = case(weak, "zeros")
    assert accepted.tag == "failure" and "no gate may" in (accepted.get("message") or "")


def test_markup_and_control_characters_leave_the_document_valid() -> None:
    diff = '-    x = "<a>&]]>"\n+    y = "\x00\x1b\ufffe é"\n'
    (failure,) = case(one(diff=diff, detail='<b> & "c" \x07'))
    assert failure.get("message") == 'survived: <b> & "c" \ufffd (unexplained)'
    assert '-    x = "<a>&]]>"' in (failure.text or "")
    assert '+    y = "\ufffd\ufffd\ufffd é"' in (failure.text or "")
