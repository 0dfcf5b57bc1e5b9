"""Claims about the whole chain: a verdict is about the mutant, and about nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatecert.campaign.records import Run
from gatecert.certificate import certify
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome
from gatecert.mutants.adversaries import ADVERSARIES
from gatecert.mutants.records import Candidate, CandidateKind, CodeVerdict
from gatecert.operators.registry import get_operator
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import GateRef, Judged, ShardRequest, Task
from gatecert.subjects import Subject
from tests.e2e.commands import ROOT
from tests.e2e.small_runs import corpus_run
from tests.warm import WarmServers

PRESETS = ("allclose-one-shape", "kernelbench-v0", "kernelbench", "gpuemu")
TESTDATA = ROOT / "tests" / "testdata"
OPERATORS = tuple(
    get_operator(name)
    for name in (
        *("drop-load-mask", "drop-store-mask", "dropped-factor", "dropped-mask-term"),
        *("swapped-mask-bound", "mask-bound-off-by-one", "wrong-pad-value"),
    )
)
"""Where a score of mutants is enough."""


@pytest.fixture(scope="module")
def softmax_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One whole run on one subject, shared by the claims that only read it."""
    return corpus_run(tmp_path_factory.mktemp("softmax"), quick=False)


@pytest.fixture(scope="module")
def server(warm_servers: WarmServers) -> Iterator[Server]:
    """A warm server; each request is answered by a fork of its own."""
    with warm_servers.server() as server:
        yield server


def test_with_the_overlay_switched_off_every_mutant_survives(tmp_path: Path) -> None:
    gates = ("oracle", "allclose-one-shape")
    run = corpus_run(tmp_path, gates=gates, operators=OPERATORS, overlay=False)
    (part,) = run.subjects
    ids = {mutant.id for mutant in part.mutants}
    outcomes = [v.outcome for v in part.verdicts if v.candidate in ids]
    assert len(outcomes) >= 20
    assert set(outcomes) == {GateOutcome.ACCEPTED}


def test_an_always_zero_kernel_is_killed_by_every_gate(tmp_path: Path) -> None:
    gates = ("oracle", *PRESETS)
    run = corpus_run(tmp_path, gates=gates, operators=(get_operator("missing-max-subtraction"),))
    (part,) = run.subjects
    zeros = {v.gate: v.outcome for v in part.verdicts if v.candidate.endswith("/returns_zeros")}
    assert zeros == dict.fromkeys(gates, GateOutcome.REJECTED)


@pytest.mark.parametrize(
    "ref",
    [
        *(GateRef(name, str(TESTDATA)) for name in ("oracle", *PRESETS)),
        GateRef("tests", str(TESTDATA), GateConfig(kind="pytest", args=("gate_compares.py",))),
        GateRef(
            "function", str(TESTDATA), GateConfig(kind="callable", callable="gate_compares:gate")
        ),
    ],
    ids=lambda ref: ref.name,
)
def test_an_exception_raised_inside_the_interpreter_is_never_a_kill(
    server: Server, ref: GateRef
) -> None:
    path = TESTDATA / "kernels_softmax.py"
    text = path.read_text().replace("x = tl.exp(", "x = tl.no_such_function(")
    assert "no_such_function" in text
    broken = Candidate("broken", CandidateKind.MUTANT, "softmax", {str(path): text})
    subject = Subject(
        "softmax", "kernels_softmax:softmax", "softmax", import_paths=(str(TESTDATA),)
    )
    request = ShardRequest(subject, (ref,), (Task(broken, ref.name),), quick=True)
    (judged,) = [event for event in server.ask(request) if isinstance(event, Judged)]
    assert judged.verdict.outcome is GateOutcome.ERROR
    assert "no_such_function" in judged.verdict.detail


def test_one_and_two_jobs_give_the_same_verdicts(tmp_path: Path) -> None:
    subjects = ("softmax_one_block", "leaky_relu")
    one = certify(corpus_run(tmp_path / "one", subjects, operators=OPERATORS, jobs=1))
    two = certify(corpus_run(tmp_path / "two", subjects, operators=OPERATORS, jobs=2))
    assert one.results == two.results
    assert len(one.results) >= 15


def test_the_oracle_accepts_the_controls_and_catches_every_adversary(softmax_run: Run) -> None:
    certificate = certify(softmax_run)
    assert certificate.controls.runs >= 4
    assert (certificate.controls.distinct or 0) >= 1
    assert certificate.controls.rejected == 0
    assert certificate.adversaries.total == len(ADVERSARIES)
    assert certificate.adversaries.accepted == 0


def test_every_verdict_on_a_mutant_comes_with_proof_that_its_text_was_loaded(
    softmax_run: Run,
) -> None:
    (part,) = softmax_run.subjects
    ids = {mutant.id for mutant in part.mutants}
    assert all(v.loaded for v in part.verdicts if v.candidate in ids)


def test_every_mutant_of_a_kernel_was_compiled(softmax_run: Run) -> None:
    (part,) = softmax_run.subjects
    assert {c.mutant for c in part.comparisons} == {mutant.id for mutant in part.mutants}
    in_launchers = {mutant.id for mutant in part.mutants if mutant.in_launcher}
    on_host = {c.mutant for c in part.comparisons if c.verdict is CodeVerdict.HOST}
    assert on_host == in_launchers
    assert len(in_launchers) < len(part.mutants)
    assert all(c.verdict is not CodeVerdict.UNKNOWN for c in part.comparisons)
    assert all(c.signatures_compiled for c in part.comparisons if c.mutant not in on_host)
