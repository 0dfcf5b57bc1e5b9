"""A ratchet fails on what got worse, mutant by mutant, and on nothing else."""

from __future__ import annotations

import json

import pytest

from gatecert.campaign.records import Selection
from gatecert.certificate import Certificate, certify
from gatecert.certificate.ratchet import (
    Held,
    Known,
    Ratchet,
    hold,
    parse_ratchet,
    render_ratchet,
    updated,
)
from gatecert.errors import UsageError
from gatecert.mutants.records import CodeComparison, CodeVerdict
from tests.runs import mutant, run, subject_run, verdict

A, B, C, D = (f"softmax/k/drop-load-mask/{i}-aaaaaa" for i in range(1, 5))
BEFORE = Ratchet({"oracle": Known(survived=(A,), killed=(B, C))})


def certificate(**outcomes: str) -> Certificate:
    """A run of the mutants A to D that are named, each with the outcome given."""
    ids = {"A": A, "B": B, "C": C, "D": D}
    part = subject_run(
        mutants=tuple(mutant(ids[name]) for name in outcomes),
        verdicts=tuple(verdict(ids[name], outcome) for name, outcome in outcomes.items()),
    )
    return certify(run(part))


def held(found: Certificate, ratchet: Ratchet = BEFORE, *, whole: bool = True) -> Held:
    return hold(ratchet, found, whole=whole)


def test_the_same_results_again_hold() -> None:
    again = held(certificate(A="accepted", B="rejected", C="rejected"))
    assert again == Held()
    assert (again.failures, again.remarks) == ((), ())


def test_a_new_survivor_fails() -> None:
    found = held(certificate(A="accepted", B="rejected", C="rejected", D="accepted"))
    assert found.new_survivors == (D,)
    assert found.failures == (f"new survivor, not in the ratchet: {D}",)


def test_a_lost_kill_fails_although_the_rate_rises() -> None:
    found = held(certificate(A="rejected", B="rejected", C="accepted", D="rejected"))
    assert found.failures == (f"lost kill, killed in the ratchet: {C}",)


def test_what_got_better_or_went_away_is_only_mentioned() -> None:
    found = held(certificate(A="rejected", B="rejected", D="rejected"))
    assert (found.now_killed, found.new_kills, found.gone) == ((A,), (D,), (C,))
    assert found.failures == ()
    assert len(found.remarks) == 3


@pytest.mark.parametrize("outcome", ["crashed", "timeout", "error"])
def test_a_kill_without_a_verdict_now_is_mentioned_and_no_failure(outcome: str) -> None:
    found = held(certificate(A="accepted", B=outcome, C="rejected"))
    assert (found.unanswered, found.failures) == ((B,), ())


def test_of_a_part_only_what_ran_is_held() -> None:
    found = held(certificate(D="accepted"), whole=False)
    assert found == Held(new_survivors=(D,))


def test_what_another_gate_did_is_no_measure() -> None:
    other = Ratchet({"tests": Known(killed=(A,))})
    assert held(certificate(A="accepted"), other).new_survivors == (A,)


def test_the_detection_ladder_is_in_no_ratchet() -> None:
    part = subject_run(mutants=(mutant(A, scored=False),), verdicts=(verdict(A),))
    found = certify(run(part))
    assert held(found, Ratchet()) == Held()
    assert updated(Ratchet(), found, whole=True).gates["oracle"] == Known()


def twins(outcome: str) -> Certificate:
    """B has the compiled code of A, and A got the outcome."""
    part = subject_run(
        mutants=(mutant(A), mutant(B)),
        comparisons=(CodeComparison(B, CodeVerdict.DUPLICATE, duplicate_of=A),),
        verdicts=(verdict(A, outcome),),
    )
    return certify(run(part))


def test_a_duplicate_is_known_by_what_became_of_its_twin() -> None:
    ratchet = updated(Ratchet(), twins("accepted"), whole=True)
    assert ratchet.gates["oracle"] == Known(survived=(A, B))
    # A diff holds B alone, which is then a survivor of its own.
    assert held(certificate(B="accepted"), ratchet, whole=False) == Held()
    assert held(certificate(B="accepted"), BEFORE, whole=False).lost_kills == (B,)


def test_a_duplicate_of_a_new_survivor_is_no_second_one() -> None:
    assert held(twins("accepted"), Ratchet()).new_survivors == (A,)


def test_an_update_replaces_what_a_whole_run_knows_and_keeps_other_gates() -> None:
    before = Ratchet({**BEFORE.gates, "tests": Known(killed=(A,))})
    after = updated(before, certificate(A="rejected", D="accepted"), whole=True)
    assert after.gates == {"oracle": Known((D,), (A,)), "tests": Known(killed=(A,))}


def test_an_update_by_a_part_keeps_what_did_not_run() -> None:
    after = updated(BEFORE, certificate(A="rejected", D="accepted"), whole=False)
    assert after.gates["oracle"] == Known((D,), (A, B, C))


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outcome", ["crashed", "timeout", "error"])
def test_a_run_without_a_verdict_does_not_make_an_update_forget(whole: bool, outcome: str) -> None:
    after = updated(BEFORE, certificate(A=outcome, B=outcome, C=outcome), whole=whole)
    assert after.gates == BEFORE.gates


def test_a_mutant_that_was_not_reached_is_neither_held_nor_forgotten() -> None:
    part = subject_run(mutants=(mutant(A), mutant(B)), verdicts=(verdict(B, "rejected"),))
    cut = run(part, selection=Selection(time_budget_s=1.0, not_reached=((A, "oracle"),)))
    assert held(certify(cut), whole=False) == Held()
    assert updated(BEFORE, certify(cut), whole=False).gates == BEFORE.gates


def test_the_file_reads_back_sorted_with_an_id_a_line() -> None:
    mixed = Ratchet({"z": Known(), "oracle": Known(killed=(B, C), survived=(A,))})
    text = render_ratchet(mixed)
    assert parse_ratchet("r.json", text) == mixed
    assert text.count("\n") > 3 + len(json.loads(text)["gates"])
    assert text.index('"oracle"') < text.index('"z"')
    assert all(
        any(line.strip().strip('",') == name for line in text.splitlines()) for name in (A, B)
    )
    assert render_ratchet(parse_ratchet("r.json", text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a ratchet"),
        ('{"gates": {"oracle": {"survivors": []}}}', "survivors"),
        ('{"gates": {}, "format": 2}', "format 2"),
    ],
)
def test_what_is_no_ratchet_is_refused_with_a_way_out(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"r\.json.*{said}.*--update-ratchet"):
        parse_ratchet("r.json", text)
