"""Claims about what is measured of a mutant under gates of every kind, on two small softmaxes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatecert.diagnosis.decide import decide
from gatecert.diagnosis.records import Cause, Evidence, Guard
from gatecert.gates.config import GateConfig
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.sandbox.client import Server
from gatecert.sandbox.protocol import Explained, ExplainRequest, Failed, GateRef
from gatecert.subjects import Subject
from gatecert.witness.records import HuntBudget, Witness
from tests.gatecert.gates.asking import TESTDATA

MODULE = TESTDATA / "kernels_one_block.py"
KERNEL = "kernels_one_block:softmax_kernel"
SHORT_BLOCK = ("LARGEST_BLOCK = 4096", "LARGEST_BLOCK = 32")
SAME_BITS = ("x / tl.sum(x, axis=0)", "(x + 0.0) / tl.sum(x, axis=0)")
ONE_PERCENT = ("y = x / tl.sum(x, axis=0)", "y = 1.01 * x / tl.sum(x, axis=0)")
OTHER_VALUE = ('other=-float("inf")', "other=0.0")
STORE = "    tl.store(y_ptr + row * n_cols + cols, y.to(y_ptr.dtype.element_ty), mask=mask)"
NEXT_ROW = "    tl.store(y_ptr + row * n_cols + n_cols + cols, 0 * cols, mask=mask)"
WRITES_BOTH = (STORE, f"{NEXT_ROW}\n{STORE}")
GATE = """import torch

from kernels_one_block import softmax_kernel


def entry_calls(softmax):
    x = torch.rand(2, 16)
    return torch.allclose(softmax(x), torch.softmax(x, 1), atol=0.1)


def launches(softmax):
    x, y = torch.rand(2, 16), torch.empty(2, 16)
    softmax_kernel[(2,)](x, y, 16, BLOCK=16)
    return torch.allclose(y, torch.softmax(x, 1), atol=0.1)


def idle(softmax):
    return True


if __name__ == "__main__":
    from kernels_one_block import softmax

    raise SystemExit(0 if entry_calls(softmax) else 1)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "gate.py").write_text(GATE)
    return tmp_path


def explained(
    server: Server,
    edit: tuple[str, str],
    gate: str,
    config: GateConfig | None = None,
    root: Path = TESTDATA,
    operation: str | None = "softmax",
    cases: int = 30,
) -> Evidence:
    text = MODULE.read_text()
    assert text.count(edit[0]) == 1
    mutant = Candidate(
        "mutant", CandidateKind.MUTANT, "softmax", {str(MODULE): text.replace(*edit)}
    )
    subject = Subject(
        "softmax",
        "kernels_one_block:softmax",
        operation,
        blocks={"N": (32,)},
        dims={"B": (2,), "N": (8, 16)},
        import_paths=(str(TESTDATA),),
        configs=1,
    )
    request = ExplainRequest(
        subject,
        GateRef(gate, str(root), config),
        (mutant,),
        HuntBudget(300.0, cases),
        kernels=(KERNEL,),
    )
    found = []
    for event in server.ask(request):
        assert not isinstance(event, Failed), event
        if isinstance(event, Explained):
            found.append(event.evidence)
    (evidence,) = found
    return evidence


def function(name: str) -> GateConfig:
    return GateConfig(kind="callable", callable=f"gate:{name}")


def test_a_witness_outside_the_cases_of_a_built_in_gate_names_the_blind_axis(
    server: Server,
) -> None:
    evidence = explained(server, SHORT_BLOCK, "oracle:listed")
    assert evidence.hunt is not None and isinstance(evidence.hunt.found, Witness)
    first = decide(evidence).first
    assert (first.cause, first.axes) == (Cause.UNINFECTED, ("dims:N>BLOCK",))


def test_an_error_that_the_gate_lets_pass_is_told_beside_the_originals_own(
    server: Server, root: Path
) -> None:
    evidence = explained(server, ONE_PERCENT, "mine", function("entry_calls"), root)
    seen = evidence.propagated
    assert decide(evidence).first.cause is Cause.TOLERATED
    assert seen is not None and (seen.calls, seen.beyond_noise) == (1, 1)
    assert seen.error is not None and seen.own_error is not None
    assert seen.error > 1000 * seen.own_error
    assert evidence.infected is not None and evidence.infected.first == KERNEL


def test_calls_in_a_process_of_a_command_are_captured_too(server: Server, root: Path) -> None:
    config = GateConfig(kind="command", command=("python", "gate.py"))
    evidence = explained(server, ONE_PERCENT, "mine", config, root)
    assert (evidence.captured.calls, evidence.captured.kept) == (1, 1)
    assert decide(evidence).first.cause is Cause.TOLERATED


def test_a_gate_that_launches_the_kernel_by_itself_reaches_it(server: Server, root: Path) -> None:
    evidence = explained(server, ONE_PERCENT, "mine", function("launches"), root)
    assert (evidence.captured.calls, evidence.captured.launches) == (0, 1)
    assert evidence.reached is not None and evidence.reached.run
    assert decide(evidence).first.cause is Cause.TOLERATED


def test_a_gate_that_does_nothing_with_the_code_reaches_nothing(server: Server, root: Path) -> None:
    evidence = explained(server, ONE_PERCENT, "mine", function("idle"), root, cases=5)
    first = decide(evidence).first
    assert first.cause is Cause.UNREACHED
    assert "neither calls the entry nor launches its kernels" in first.said


def test_a_mask_that_never_has_a_lane_off_on_the_gates_inputs_is_told(
    server: Server, root: Path
) -> None:
    evidence = explained(server, OTHER_VALUE, "mine", function("entry_calls"), root)
    assert evidence.reached is not None
    assert (evidence.reached.run, evidence.reached.masked) == (True, False)
    assert decide(evidence).first.cause is Cause.UNINFECTED


def test_a_store_to_another_programs_row_is_seen_by_guards_alone(
    server: Server, root: Path
) -> None:
    evidence = explained(server, WRITES_BOTH, "mine", function("entry_calls"), root, cases=4)
    first = decide(evidence).first
    assert first.cause is Cause.UNOBSERVED
    assert Guard.RACE in first.guards


def test_without_an_operation_bits_alone_are_compared(server: Server, root: Path) -> None:
    evidence = explained(server, ONE_PERCENT, "mine", function("entry_calls"), root, operation=None)
    assert evidence.hunt is None
    assert decide(evidence).first.cause is Cause.TOLERATED
    same = explained(server, SAME_BITS, "mine", function("entry_calls"), root, operation=None)
    assert decide(same).first.cause is Cause.NO_WITNESS


def test_what_nothing_shows_has_no_witness_and_no_guard(server: Server, root: Path) -> None:
    evidence = explained(server, SAME_BITS, "mine", function("entry_calls"), root, cases=20)
    assert (evidence.guards, evidence.guards_outside) == ((), ())
    assert decide(evidence).first.cause is Cause.NO_WITNESS


def test_two_explanations_differ_in_their_seconds_alone(server: Server) -> None:
    from gatecert.campaign.explaining import without_seconds

    first, second = (explained(server, SHORT_BLOCK, "oracle:listed") for _ in range(2))
    assert without_seconds(first) == without_seconds(second)
