"""Claims about the decision table: each row gives the causes that docs/survivors.md says."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from gatecert.diagnosis.decide import TABLE, Facts, causes_of, decide
from gatecert.diagnosis.records import (
    BlindAxis,
    Captured,
    Cause,
    Evidence,
    Guard,
    GuardSeen,
    Propagated,
    Reached,
)
from gatecert.gates.records import Reason
from gatecert.witness.records import (
    Change,
    Hunt,
    HuntEnd,
    NoWitness,
    Stage,
    Tried,
    Witness,
)

TRIED = Tried(40, HuntEnd.CASES, {Stage.ONE_AXIS: 40})
WITNESS = Hunt(
    "m",
    "g",
    0,
    3,
    Witness(
        "softmax/float32/B=1,N=65/contiguous/normal/seed=0",
        "softmax/float32/B=1,N=64/contiguous/normal/seed=0",
        (Change("dim N", "64", "65"),),
        Stage.ONE_AXIS,
        Reason.VALUES,
        "",
        TRIED,
    ),
)
NONE = Hunt("m", "g", 0, 3, NoWitness(TRIED))
RUN, NOT_RUN = Reached(4, True), Reached(4, False)
SAME = Propagated(4)
ROUNDING = Propagated(4, differing=2)
WRONG = Propagated(4, differing=2, beyond_noise=1, error=0.5, own_error=1e-7)
BOUNDS = (GuardSeen(Guard.BOUNDS, "1 lane"),)
RACE = (GuardSeen(Guard.RACE, "reversed", "softmax/float32/B=2,N=5/contiguous/normal/seed=0"),)


def evidence(**known: object) -> Evidence:
    """Evidence of a gate whose calls were seen."""
    usual = {"captured": Captured(4, 4), "reached": RUN, "propagated": SAME, "hunt": NONE}
    return Evidence("m", "g", **{**usual, **known})  # type: ignore[arg-type]


ROWS = [
    (Evidence("m", "g", Captured(why_none="it is no Python")), (Cause.UNEXPLAINED,)),
    (
        evidence(reached=NOT_RUN, hunt=WITNESS, witness_passes=True),
        (Cause.UNREACHED, Cause.TOLERATED),
    ),
    (evidence(reached=NOT_RUN, hunt=WITNESS), (Cause.UNREACHED,)),
    (evidence(reached=NOT_RUN, guards_outside=RACE), (Cause.UNREACHED, Cause.UNOBSERVED)),
    (evidence(reached=NOT_RUN), (Cause.UNREACHED,)),
    (
        evidence(propagated=WRONG, hunt=WITNESS, witness_passes=False),
        (Cause.TOLERATED, Cause.UNINFECTED),
    ),
    (evidence(propagated=WRONG, hunt=WITNESS), (Cause.TOLERATED,)),
    (evidence(hunt=WITNESS, witness_passes=True), (Cause.UNINFECTED, Cause.TOLERATED)),
    (evidence(propagated=ROUNDING, hunt=WITNESS), (Cause.UNINFECTED,)),
    (evidence(guards=BOUNDS), (Cause.UNOBSERVED,)),
    (evidence(guards_outside=RACE), (Cause.UNOBSERVED, Cause.UNINFECTED)),
    (evidence(propagated=ROUNDING), (Cause.NO_WITNESS,)),
]


def test_every_row_has_a_case_here() -> None:
    assert [causes for _, causes in ROWS] == [row.causes for row in TABLE]


@pytest.mark.parametrize(("seen", "causes"), ROWS, ids=["+".join(c) for _, c in ROWS])
def test_evidence_gives_its_causes(seen: Evidence, causes: tuple[Cause, ...]) -> None:
    assert tuple(one.cause for one in decide(seen).causes) == causes


def test_all_facts_have_causes_and_a_mutant_with_a_witness_is_never_without_one() -> None:
    three = (True, False, None)
    for seen, reached, noise, witness, passes, here, elsewhere in itertools.product(
        (True, False), three, three, (True, False), three, (True, False), (True, False)
    ):
        facts = Facts(seen, reached, noise, witness, passes, here, elsewhere)
        causes = causes_of(facts)
        assert causes
        assert not (seen and witness and Cause.NO_WITNESS in causes), facts


def test_the_sentence_of_a_tolerated_error_holds_both_errors() -> None:
    assert "0.5, the original's 1e-07" in decide(evidence(propagated=WRONG)).first.said


def test_the_sentence_of_an_uninfected_mutant_names_the_axis_and_both_values() -> None:
    blind = BlindAxis("dims:N%BLOCK", "N is always a multiple of 64; it is 65 there")
    first = decide(evidence(hunt=WITNESS, blind=(blind,))).first
    assert first.axes == ("dims:N%BLOCK",)
    assert blind.said in first.said


def test_guards_that_see_it_are_named_once_each() -> None:
    first = decide(evidence(guards=(*BOUNDS, *BOUNDS, *RACE))).first
    assert first.guards == (Guard.BOUNDS, Guard.RACE)


def test_a_search_that_found_nothing_says_how_much_it_tried_and_from_which_seed() -> None:
    assert "40 cases tried (40 one_axis; seed 0)" in decide(evidence()).first.said


def test_the_page_has_the_table_row_by_row() -> None:
    page = (Path(__file__).parents[3] / "docs" / "survivors.md").read_text(encoding="utf-8")
    names = Facts.__struct_fields__
    said = {True: "yes", False: "no", None: ""}
    rows = [
        " | ".join(
            (
                *(said[row.when.get(name)] for name in names),
                ", ".join(cause.value for cause in row.causes),
            )
        )
        for row in TABLE
    ]
    head = f"{' | '.join(f'`{name}`' for name in names)} | causes"
    lines = [f"| {head} |", "|---" * (len(names) + 1) + "|", *(f"| {row} |" for row in rows)]
    assert "\n".join(lines) in page
