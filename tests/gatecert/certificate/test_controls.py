"""Claims about controls: the unit is what is launched together, and no verdict is no acceptance."""

from __future__ import annotations

import pytest

from gatecert.campaign.records import SubjectRun
from gatecert.certificate.controls import adversaries_of, control_results, controls_of
from gatecert.gates.records import GateOutcome
from gatecert.mutants.records import Candidate, CandidateKind, Kernel
from gatecert.statistics import clopper_pearson
from tests.runs import run, subject_run, verdict

FORWARD = Kernel("acme.kernels", "forward", "acme/kernels.py", 5)
BACKWARD = Kernel("acme.kernels", "backward", "acme/kernels.py", 25)


def judged(name: str, *outcomes: str, kernels: tuple[Kernel, ...] = (FORWARD,)) -> SubjectRun:
    """A subject with the original's verdict, and one for each of its rewrites."""
    ids = [f"{name}/original", *(f"{name}/benign/{n}" for n in range(len(outcomes) - 1))]
    rewrites = tuple(Candidate(one, CandidateKind.BENIGN, name) for one in ids[1:])
    verdicts = tuple(
        verdict(one, outcome, cases=5) for one, outcome in zip(ids, outcomes, strict=True)
    )
    return subject_run(name, kernels=kernels, controls=rewrites, verdicts=verdicts)


def test_rewrites_of_one_kernel_are_one_trial_and_so_are_subjects_that_share_it() -> None:
    many = judged("a", *["accepted"] * 9)
    assert controls_of(run(many), "oracle").rejected_kernels == clopper_pearson(0, 1)
    same = judged("b", "accepted", "rejected")
    found = controls_of(run(many, same), "oracle")
    assert found.rejected_kernels == clopper_pearson(1, 1)
    assert (found.runs, found.rejected, found.cases) == (11, 1, 55)


def test_kernels_that_are_launched_together_are_another_trial_than_one_of_them_alone() -> None:
    alone = judged("a", "accepted")
    both = judged("b", "rejected", kernels=(BACKWARD, FORWARD))
    again = judged("c", "accepted", kernels=(FORWARD, BACKWARD))
    without = judged("d", "accepted", kernels=())
    found = controls_of(run(alone, both, again, without), "oracle")
    assert found.rejected_kernels == clopper_pearson(1, 3)


@pytest.mark.parametrize(
    "changes", [{"outcome": "error"}, {"outcome": "timeout"}, {"loaded": False}], ids=str
)
def test_a_control_without_a_verdict_is_no_trial_and_is_named(changes: dict[str, object]) -> None:
    part = judged("a", "accepted")
    lost = verdict("a/original", **changes)
    found = controls_of(run(subject_run("a", kernels=part.kernels, verdicts=(lost,))), "oracle")
    assert (found.runs, found.failed, found.rejected) == (1, 1, 0)
    assert found.rejected_kernels == clopper_pearson(0, 0)
    (named,) = found.rejections
    assert named.outcome == ("not loaded" if "loaded" in changes else changes["outcome"])
    results = control_results(run(subject_run("a", verdicts=(lost,))))
    expected = GateOutcome.ERROR if "loaded" in changes else GateOutcome(changes["outcome"])
    assert results["a/original"]["oracle"].outcome is expected


def test_an_adversary_that_was_not_loaded_is_neither_caught_nor_accepted() -> None:
    zeros, nan = (Candidate(f"a/adversary/{n}", CandidateKind.ADVERSARY, "a") for n in ("0", "nan"))
    said = (verdict(zeros.id, "rejected", loaded=False), verdict(nan.id, "accepted"))
    found = adversaries_of(run(subject_run("a", adversaries=(zeros, nan), verdicts=said)), "oracle")
    assert (found.total, found.accepted, found.inconclusive) == (1, 1, 1)
