"""Claims about the whole chain: a verdict is about the mutant, and about nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.certificate import certify
from gatecert.gates.records import GateOutcome
from gatecert.mutants.records import CodeVerdict
from tests.e2e.small_runs import corpus_run

PRESETS = ("allclose-one-shape", "kernelbench-v0", "kernelbench", "gpuemu")


def test_with_the_overlay_switched_off_every_mutant_survives(tmp_path: Path) -> None:
    run = corpus_run(tmp_path, gates=("oracle", "allclose-one-shape"), overlay=False)
    (part,) = run.subjects
    ids = {mutant.id for mutant in part.mutants}
    outcomes = [v.outcome for v in part.verdicts if v.candidate in ids]
    assert len(outcomes) >= 20
    assert set(outcomes) == {GateOutcome.ACCEPTED}


@pytest.mark.parametrize("gate", ("oracle", *PRESETS))
def test_an_always_zero_kernel_is_killed_by_every_gate(tmp_path: Path, gate: str) -> None:
    run = corpus_run(tmp_path, gates=(gate,), operators=())
    (part,) = run.subjects
    (zeros,) = [v for v in part.verdicts if v.candidate.endswith("/returns_zeros")]
    assert zeros.outcome is GateOutcome.REJECTED


def test_the_oracle_accepts_the_controls_and_catches_every_adversary(tmp_path: Path) -> None:
    certificate = certify(corpus_run(tmp_path))
    assert certificate.controls.runs >= 3
    assert certificate.controls.distinct >= 1
    assert certificate.controls.rejected == 0
    assert certificate.adversaries.total == 9
    assert certificate.adversaries.accepted == 0


def test_one_and_two_jobs_give_the_same_verdicts(tmp_path: Path) -> None:
    subjects = ("softmax_one_block", "leaky_relu")
    one = corpus_run(tmp_path / "one", subjects, jobs=1)
    two = corpus_run(tmp_path / "two", subjects, jobs=2)
    assert certify(one).results == certify(two).results
    assert len(certify(one).results) >= 20


def test_every_verdict_on_a_mutant_comes_with_proof_that_its_text_was_loaded(
    tmp_path: Path,
) -> None:
    run = corpus_run(tmp_path)
    (part,) = run.subjects
    ids = {mutant.id for mutant in part.mutants}
    assert all(v.loaded for v in part.verdicts if v.candidate in ids)


def test_equivalent_and_unviable_come_from_compiled_code(tmp_path: Path) -> None:
    run = corpus_run(tmp_path)
    (part,) = run.subjects
    assert {c.mutant for c in part.comparisons} == {mutant.id for mutant in part.mutants}
    assert all(c.verdict is not CodeVerdict.UNKNOWN for c in part.comparisons)
    assert sum(c.signatures_compiled for c in part.comparisons) >= len(part.mutants)
