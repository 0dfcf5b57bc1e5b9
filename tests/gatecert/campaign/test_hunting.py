"""Claims about which mutants are hunted."""

from __future__ import annotations

import pytest

from gatecert.campaign.hunting import survivors_of
from gatecert.certificate import certify
from gatecert.errors import UsageError
from tests.runs import mutant, run, subject_run, verdict

KILLED, SURVIVED = "softmax/k/drop-load-mask/1-aaaaaa", "softmax/k/drop-load-mask/2-bbbbbb"


def test_survivors_of_the_gate_are_taken_from_its_certificate() -> None:
    part = subject_run(
        mutants=(mutant(KILLED), mutant(SURVIVED)),
        verdicts=(
            verdict("softmax/original", bits="b"),
            verdict(KILLED, "rejected"),
            verdict(SURVIVED, bits="other"),
        ),
    )
    certificate = certify(run(part))
    assert survivors_of(certificate, "oracle") == (SURVIVED,)
    with pytest.raises(UsageError, match="gate 'tests' judged no mutant in this certificate"):
        survivors_of(certificate, "tests")
