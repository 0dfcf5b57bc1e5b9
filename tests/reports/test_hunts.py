"""A hunt says in words what it found, what it tried, and how to run the witness again."""

from __future__ import annotations

from gatecert.gates.records import Reason, Worst
from gatecert.reports.hunts import hunt_lines
from gatecert.witness.records import (
    Change,
    Hunt,
    HuntEnd,
    NoWitness,
    SetAside,
    Stage,
    Tried,
    Witness,
)

ID = "softmax/k/drop-load-mask/1-aaaaaa"
OWN = "softmax/float32/B=1,N=32/contiguous/normal/seed=0"
CASE = "softmax/float32/B=1,N=33/contiguous/normal/seed=0"


def test_a_witness_names_what_failed_and_where_the_gate_is_blind() -> None:
    tried = Tried(4, HuntEnd.FOUND, {Stage.CALLED: 3, Stage.NEARER: 1}, {"dim N": 4})
    found = Witness(
        CASE,
        OWN,
        (Change("dim N", "32", "33"),),
        Stage.CALLED,
        Reason.VALUES,
        "1 of 33 elements of y are wrong",
        tried,
        Worst("y", (0, 32), 0.5, 1e-6),
    )
    assert hunt_lines(Hunt(ID, "oracle:regular", 0, 6, found, 3.2)) == [
        ID,
        f"  witness: {CASE}",
        "  fails:   values: 1 of 33 elements of y are wrong",
        "  worst:   error 0.5 against allowance 1e-06 at y[0, 32]",
        "  changed: dim N 32 -> 33",
        f"  nearest: {OWN}",
        "  tried:   4 cases outside 6 of oracle:regular under seed 0 in 3 s: 3 that its tags call "
        "for, 1 to bring the witness nearer",
        "  axes:    dim N 4",
        f"  gatecert replay '{CASE}' --mutant '{ID}'",
    ]


def test_a_process_that_died_is_told_without_a_reason() -> None:
    tried = Tried(1, HuntEnd.FOUND)
    found = Witness(CASE, OWN, (), Stage.RANDOM, Reason.NONE, "died of signal 11", tried)
    assert "  fails:   died of signal 11" in hunt_lines(Hunt(ID, "oracle", 0, 6, found))


def test_equal_bits_and_the_end_of_the_budget_are_told() -> None:
    found = NoWitness(Tried(9, HuntEnd.SECONDS, {Stage.RANDOM: 9}, {"dim N": 9}))
    lines = hunt_lines(Hunt(ID, "oracle", 0, 6, found))
    assert lines[1] == (
        "  no witness: outputs are the original's, bit for bit, on all that was tried"
    )
    assert lines[2].endswith(": 9 drawn from the whole domain; it ended with its time")


def test_other_bits_are_told_with_the_largest_error_and_what_was_left_out() -> None:
    aside = (SetAside(CASE, "softmax/original: rejected values: 1 of 33"),)
    tried = Tried(
        9,
        HuntEnd.CASES,
        other_bits=7,
        largest=0.612,
        largest_case=CASE,
        impossible=2,
        set_aside=aside,
        set_asides=3,
    )
    lines = hunt_lines(Hunt(ID, "oracle", 0, 6, NoWitness(tried)))
    assert lines[1] == (
        f"  no witness: other bits on 7 cases, the largest error 0.612 of its allowance on {CASE}"
    )
    assert "  skipped: 2 cases that cannot be made" in lines
    assert lines[-1] == (
        f"  aside:   3 cases, first {CASE}: softmax/original: rejected values: 1 of 33"
    )
