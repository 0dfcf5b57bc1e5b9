"""Claims about the lines that say why a mutant survived."""

from __future__ import annotations

from gatecert.certificate import certify
from gatecert.certificate.records import GateScore, Survivor
from gatecert.diagnosis.records import (
    Captured,
    Cause,
    Evidence,
    Guard,
    GuardSeen,
    Infected,
    Propagated,
    Reached,
)
from gatecert.reports.tables import gates_of
from gatecert.reports.why import evidence_lines, limit_line, reasons_line, why_lines
from tests.runs import mutant, run, subject_run, verdict

ID = "softmax/k/drop-load-mask/1-aaaaaa"
OTHER = "softmax/k/drop-load-mask/2-bbbbbb"
EVIDENCE = Evidence(
    ID,
    "oracle",
    Captured(5, 0, 4, 1),
    Reached(6, True, False),
    Infected(6, 2, "acme:k"),
    Propagated(4),
    guards=(GuardSeen(Guard.RACE, "other results reversed"),),
)


def survivor(*explanations: Evidence) -> Survivor:
    """The only survivor, with what was measured of it."""
    part = subject_run(
        mutants=(mutant(ID),),
        verdicts=(verdict("softmax/original", bits="b"), verdict(ID, bits="b", margin=0.25)),
        explanations=explanations,
    )
    (found,) = certify(run(part)).survivors
    return found


def test_what_was_measured_decides_the_reason() -> None:
    assert survivor().reason is Cause.UNINFECTED
    assert survivor(EVIDENCE).reason is Cause.UNOBSERVED


def test_evidence_of_another_gate_is_none() -> None:
    other = Evidence(ID, "another", EVIDENCE.captured, EVIDENCE.reached, guards=EVIDENCE.guards)
    assert survivor(other).because == ()


def test_evidence_that_shows_nothing_leaves_the_reason_as_it_was() -> None:
    blind = Evidence(ID, "oracle", Captured(why_none="it is no Python"))
    found = survivor(blind)
    assert found.reason is Cause.UNINFECTED
    assert found.because[0].cause is Cause.UNEXPLAINED


def test_the_gates_own_margin_is_added() -> None:
    evidence = survivor(EVIDENCE).evidence
    assert evidence is not None and evidence.allowed == 0.25


def test_every_stage_has_a_line() -> None:
    assert list(evidence_lines(EVIDENCE)) == [
        "5 calls of the entry, 4 run again, 1 too many to keep",
        "the changed line ran with no lane ever masked off, in 6 launches",
        "2 of 6 launches left other bits in their tensors, first of acme:k",
        "0 of 4 calls gave other bits",
    ]


def test_the_first_cause_stands_alone_and_others_are_named() -> None:
    outside = GuardSeen(Guard.BOUNDS, "1 lane", "softmax/float32/B=1,N=3/contiguous/normal/seed=0")
    elsewhere = Evidence(
        ID, "oracle", Captured(1, 0, 1), Reached(1, True), guards_outside=(outside,)
    )
    first, second, *_ = why_lines(survivor(elsewhere))
    assert first.startswith("  why:     no result shows it")
    assert second.startswith("  also:    uninfected: ")
    assert why_lines(survivor()) == []


def test_the_limit_counts_the_graded_constants_of_the_survivors_kernel() -> None:
    rungs = [
        mutant("softmax/k/wrong-constant/1", scored=False, variant="x1.001"),
        mutant("softmax/k/wrong-constant/2", scored=False, variant="x1.0001"),
        mutant("softmax/other/wrong-constant/3", scored=False, variant="x1.001"),
    ]
    part = subject_run(
        mutants=tuple(rungs),
        verdicts=(
            verdict("softmax/original"),
            verdict(rungs[0].id, "rejected"),
            verdict(rungs[1].id),
            verdict(rungs[2].id),
        ),
    )
    (score,) = gates_of(certify(run(part)))
    line = limit_line("acme.kernels:k", score)
    assert line.endswith("x1.0001 0/1, x1.001 1/1")
    assert limit_line("acme.kernels:none", score) == ""


def test_reasons_are_counted_in_their_order_where_survivors_were_explained() -> None:
    def score(*explanations: Evidence) -> GateScore:
        part = subject_run(
            mutants=(mutant(ID), mutant(OTHER)),
            verdicts=(
                verdict("softmax/original", bits="b"),
                verdict(ID, bits="b"),
                verdict(OTHER, bits="other"),
            ),
            explanations=explanations,
        )
        (found,) = gates_of(certify(run(part)))
        return found

    assert reasons_line(score(EVIDENCE)) == "1 tolerated, 1 unobserved"
    assert reasons_line(score()) == ""
