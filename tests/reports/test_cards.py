"""A card says in words what is known of one mutant."""

from __future__ import annotations

import pytest

from gatecert.campaign.records import Status
from gatecert.certificate import certify
from gatecert.certificate.records import Result, Survivor
from gatecert.gates.records import Reason, Worst
from gatecert.reports.cards import result_line, survivor_lines, worst_element
from tests.runs import mutant, run, subject_run, verdict

ID = "softmax/k/drop-load-mask/1-aaaaaa"
CASE = "softmax/float32/B=1,N=33/contiguous/normal/seed=0"


def survivor(bits: str) -> Survivor:
    """The only survivor of an oracle that saw these bits, and `b` of the original."""
    worst = Worst("out", (0, 3), 1.5e-4, 2.0e-4)
    said = verdict(ID, bits=bits, worst=worst, case=CASE)
    part = subject_run(
        mutants=(mutant(ID),), verdicts=(verdict("softmax/original", bits="b"), said)
    )
    (found,) = certify(run(part)).survivors
    return found


def test_the_error_of_equal_outputs_is_called_the_originals_own() -> None:
    own = "the original's own rounding: the outputs are equal, bit for bit"
    (worst,) = (line for line in survivor_lines(survivor("b")) if "worst:" in line)
    assert worst.endswith(f"error 0.00015 against allowance 0.0002 at out[0, 3], {own}")
    assert own not in "".join(survivor_lines(survivor("other")))


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (Result(Status.EQUIVALENT), "compiled code is the original's for every signature"),
        (
            Result(Status.EQUIVALENT, case=CASE),
            f"run all the same, it was accepted, closest to its allowance on {CASE}",
        ),
        (Result(Status.EQUIVALENT, detail="3 passed"), "run all the same: 3 passed"),
        (
            Result(Status.UNREPORTED, detail="touched memory"),
            "oracle: unreported: touched memory",
        ),
        (
            Result(Status.EQUIVALENT, Reason.VALUES, "3 differ", CASE),
            f"run all the same, it was rejected: values: 3 differ, on {CASE}",
        ),
        (
            Result(Status.KILLED, Reason.VALUES, "3 differ", CASE),
            f"oracle: killed: values: 3 differ, on {CASE}",
        ),
        (
            Result(Status.SURVIVED, case=CASE),
            f"oracle: survived: closest to its allowance on {CASE}",
        ),
        (
            Result(Status.DUPLICATE, same_as=ID),
            f"oracle: duplicate: its compiled code is that of {ID}",
        ),
        (Result(Status.NOT_OBSERVABLE), "oracle: not observable: by its label, this lane cannot"),
        (Result(Status.IGNORED, detail="by design"), "oracle: ignored: by design"),
        (Result(Status.INCONCLUSIVE), "oracle: inconclusive"),
    ],
)
def test_a_status_is_put_in_words(result: Result, says: str) -> None:
    assert says in result_line("oracle", result)


def test_an_error_without_a_size_is_said_to_have_none() -> None:
    worst = Worst("out", (1, 2), None, 0.5)
    assert worst_element(worst) == "error not finite against allowance 0.5 at out[1, 2]"
