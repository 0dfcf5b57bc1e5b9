"""Claims about suites whose candidates run in fresh processes, as on a GPU; these interpret."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gatecert.errors import EnvironmentFailure, ExitCode
from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome, Verdict
from gatecert.gates.registry import make_gate
from gatecert.gates.suite.gate import PytestGate
from gatecert.gates.suite.records import KnownTest
from gatecert.lanes.cuda import gpu
from gatecert.mutants.adversaries import adversary_candidates
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Failed, GateRef, Judged, Limits, Prepared, ShardRequest, Task
from gatecert.subjects import Subject
from tests.gatecert.gates.asking import TESTDATA
from tests.gatecert.gates.suites import KERNEL, write

ROOT = Path(__file__).parents[4]
SUITE = """
import os
from pathlib import Path

import torch
from kernels_softmax import softmax

SIZES = [int(size) for size in (Path(__file__).parent / "sizes.txt").read_text().split()]


def check(columns):
    x = torch.linspace(-3, 3, 2 * columns).reshape(2, columns) - 80.0
    torch.testing.assert_close(softmax(x), torch.softmax(x, dim=1))


def test_many():
    for columns in (5, 5, 8):
        check(columns)


def test_one():
    assert os.environ.get("ACME_STRICT", "") == ""
    check(SIZES[0])


def test_launches_nothing():
    assert SIZES
"""
WRONG = KERNEL.replace("x / tl.sum(x, axis=0)", "x * 0.0")
DIES = KERNEL.replace("    y = torch", "    import os\n    os.abort()\n    y = torch")
HANGS = KERNEL.replace("    y = torch", "    import time\n    time.sleep(600)\n    y = torch")
FAILS = KERNEL.replace("tl.exp(", "tl.no_such_function(")
FALLS_BACK = (
    FAILS
    + """

_compiled = softmax


def softmax(x):
    try:
        return _compiled(x)
    except Exception:
        return torch.softmax(x, 1)
"""
)


class Told:
    """What a server said: verdicts by candidate, and notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.verdicts: dict[str, Verdict] = {}
        self.notes: list[str] = []

    def ask(self, server: Server, tasks: list[Candidate], limit_s: float = 120.0) -> None:
        """Judge the candidates; what is known of the original is handed over."""
        known = self.verdicts.get("softmax/original")
        baseline = known.baseline if known is not None else None
        request = ShardRequest(
            Subject("softmax", "kernels_softmax:softmax", import_paths=(str(self.folder),)),
            gates=(GateRef("tests", str(self.folder), TABLE),),
            tasks=tuple(Task(candidate, "tests") for candidate in tasks),
            limits=Limits(factor=0.0, minimum_s=limit_s),
            originals={"tests": known} if known is not None else {},
            baselines={"tests": baseline} if baseline is not None else {},
            modules={"kernels_softmax": str(self.folder / "kernels_softmax.py")},
        )
        for event in server.ask(request):
            assert not isinstance(event, Failed), event.message
            if isinstance(event, Judged):
                self.verdicts[event.verdict.candidate] = event.verdict
            if isinstance(event, Prepared):
                self.notes += event.notes

    @property
    def tests(self) -> dict[str, KnownTest]:
        """Those of the baseline, by name."""
        baseline = self.verdicts["softmax/original"].baseline
        assert baseline is not None
        return {test.nodeid.partition("::")[2]: test for test in baseline.tests}


TABLE = GateConfig("pytest", ("test_softmax.py",), lane="cuda", baseline_runs=2)


def mutant(name: str, folder: Path, text: str) -> Candidate:
    """Of the only kernel."""
    files = {str(folder / "kernels_softmax.py"): text}
    kernels = ("kernels_softmax:softmax_kernel",)
    return Candidate(name, CandidateKind.MUTANT, "softmax", files, kernels=kernels)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """A small project's original, an adversary and mutants, each judged once."""
    folder = tmp_path_factory.mktemp("project")
    texts = {"kernels_softmax.py": KERNEL, "test_softmax.py": SUITE, "sizes.txt": "3\n"}
    found = Told(write(folder, texts))
    entry, path = "kernels_softmax:softmax", str(folder / "kernels_softmax.py")
    adversaries = adversary_candidates("softmax", entry, path, KERNEL)
    zeros = next(one for one in adversaries if one.id.endswith("/returns_zeros"))
    candidates = [Candidate("softmax/original", CandidateKind.ORIGINAL, "softmax"), zeros]
    texts = {"wrong": WRONG, "dies": DIES, "fails": FAILS, "falls_back": FALLS_BACK}
    candidates += [mutant(name, folder, text) for name, text in texts.items()]
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        with Server(("tests.gatecert.gates.suite.fresh_interpreted",)) as server:
            found.ask(server, candidates)
            found.ask(server, [mutant("hangs", folder, HANGS)], limit_s=4.0)
    yield found


def test_the_original_passes_and_what_a_process_costs_is_said(told: Told) -> None:
    verdict = told.verdicts["softmax/original"]
    assert (verdict.outcome, verdict.detail) == (GateOutcome.ACCEPTED, "2 passed")
    assert told.notes[0].startswith("a fresh process for each candidate: ")
    assert verdict.duration_s > 0.5, "it is no fork"


def test_launches_are_recorded_per_test_and_order_the_suite(told: Told) -> None:
    many, one, idle = (
        told.tests[name] for name in ("test_many", "test_one", "test_launches_nothing")
    )
    assert many.kernels == one.kernels == ("kernels_softmax:softmax_kernel",)
    assert (many.launches, one.launches, idle.launches) == (2, 1, 0)
    assert many.programs == 6
    assert idle.kernels == ()
    assert told.verdicts["wrong"].case == "test_softmax.py::test_one", "the cheapest comes first"


def test_a_failed_test_is_a_kill_with_proof_of_the_overlay(told: Told) -> None:
    verdict = told.verdicts["wrong"]
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.loaded
    assert verdict.cases == 1, "it stops there"
    assert (verdict.launches, verdict.kernels) == (1, ("kernels_softmax:softmax_kernel",))


def test_a_process_that_dies_is_no_kill(told: Told) -> None:
    verdict = told.verdicts["dies"]
    assert (verdict.outcome, verdict.signal) == (GateOutcome.CRASHED, 6)
    assert verdict.detail == "died of signal 6"
    assert verdict.loaded


def test_a_failure_of_the_lane_is_no_kill(told: Told) -> None:
    assert told.verdicts["fails"].outcome is GateOutcome.ERROR
    assert "no_such_function" in told.verdicts["fails"].detail


def test_a_launcher_that_falls_back_hides_no_failure_of_the_lane(told: Told) -> None:
    assert told.verdicts["falls_back"].outcome is GateOutcome.ERROR
    assert "no_such_function" in told.verdicts["falls_back"].detail


def test_a_process_that_hangs_is_ended_with_all_that_it_started(told: Told) -> None:
    assert told.verdicts["hangs"].outcome is GateOutcome.TIMEOUT
    assert told.verdicts["hangs"].duration_s < 60.0


def test_an_adversary_is_caught_and_watched(told: Told) -> None:
    verdict = told.verdicts["softmax/adversary/returns_zeros"]
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.evidence is not None
    assert verdict.evidence.entry_calls
    original = told.verdicts["softmax/original"].evidence
    assert original is not None
    assert original.entry_calls == 4
    assert sum(one.times for one in original.compared) == 4
    assert told.verdicts["wrong"].evidence is None


def test_what_the_tests_read_is_known_in_the_users_own_paths(told: Told) -> None:
    reads = told.verdicts["softmax/original"].reads
    assert reads is not None
    assert str(told.folder / "sizes.txt") in reads.files
    assert str(told.folder / "test_softmax.py") in reads.files
    assert "ACME_STRICT" in reads.variables


def test_the_table_chooses_the_lane() -> None:
    for lane, fresh in (("interpreter", False), ("cuda", True)):
        table = msgspec.structs.replace(TABLE, lane=lane, args=())
        gate = make_gate("tests", table, str(TESTDATA))
        assert isinstance(gate, PytestGate)
        assert (gate.fresh, gate.interpret) == (fresh, not fresh)


@pytest.mark.parametrize(
    "table",
    [TABLE, GateConfig("command", command=("python", "run_gate.py"), lane="cuda")],
    ids=["pytest", "command"],
)
def test_without_a_gpu_nothing_is_run_and_another_lane_is_named(
    monkeypatch: pytest.MonkeyPatch, table: GateConfig
) -> None:
    table = msgspec.structs.replace(table, args=())
    monkeypatch.setattr(gpu, "describe_gpu", lambda: "")
    subject = Subject("softmax", "kernels_softmax:softmax", import_paths=(str(TESTDATA),))
    gate = make_gate("tests", table, str(TESTDATA))
    with pytest.raises(EnvironmentFailure, match='lane = "interpreter" runs kernels on') as refused:
        gate.prepare(subject, seed=0, quick=False)
    assert refused.value.exit_code is ExitCode.ENVIRONMENT_FAILED
