"""Who rejects correct code is told so in a sentence, whichever gate is certified."""

from __future__ import annotations

from gatecert.certificate import certify
from gatecert.certificate.doubts import doubt_lines
from gatecert.gates.records import Reason
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.reports.tables import gates_of
from tests.runs import run, subject_run, verdict

CASE = "softmax/float32/B=1,N=33/transposed/normal/seed=0"


def said(**changes: object) -> list[str]:
    """What is said of one gate that rejects the original, and of another that does not."""
    part = subject_run(
        controls=tuple(
            Candidate(f"softmax/benign/{i}", CandidateKind.BENIGN, "softmax") for i in range(3)
        ),
        verdicts=(
            verdict("softmax/original", "rejected", reason=Reason.VALUES, case=CASE, **changes),
            verdict("softmax/original", gate="weak"),
            *(verdict(f"softmax/benign/{i}", "rejected", gate="weak") for i in range(3)),
            verdict("softmax/benign/0", "rejected", **changes),
        ),
    )
    gate = str(changes.get("gate", "oracle"))
    certificate = certify(run(part, gate="weak", gates=("weak", gate)))
    return [line for score in gates_of(certificate) for line in doubt_lines(score)]


def test_an_original_that_the_oracle_rejects_is_told_with_its_case_and_what_it_may_mean() -> None:
    (line,) = [line for line in said() if "'oracle'" in line]
    assert line == (
        f"gate 'oracle' rejects the original of 'softmax' on {CASE} (values), so its kills there "
        "prove nothing: either the kernel is wrong or the declared dtypes and layouts are broader "
        f"than its contract; `gatecert replay '{CASE}' --subject softmax` shows it"
    )


def test_rewrites_of_a_rejected_original_are_no_further_news() -> None:
    assert len([line for line in said() if "'oracle'" in line]) == 1


def test_no_replay_is_offered_of_a_gate_that_it_does_not_know() -> None:
    (line,) = [line for line in said(gate="mine") if "'mine'" in line]
    assert "either the kernel is wrong or the gate is" in line and "replay" not in line


def test_benign_rewrites_that_a_gate_rejects_are_told_in_one_sentence() -> None:
    (line,) = [line for line in said() if "'weak'" in line]
    assert line == (
        "gate 'weak' rejects 3 correct rewrites of kernels: softmax/benign/0, softmax/benign/1 "
        "and 1 more"
    )
