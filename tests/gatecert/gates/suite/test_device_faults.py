"""Claims about errors of a GPU in tests: a fault is no kill, and what cannot run says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.config import GateConfig
from gatecert.gates.records import GateOutcome
from tests.gatecert.gates.asking import Judge, mutated

FAULT = "CUDA error: an illegal memory access was encountered"
SUITE = """
import pytest
import torch
from kernels_softmax import softmax


def compare(columns):
    x = torch.linspace(-3, 3, columns).reshape(1, columns)
    try:
        assert torch.allclose(softmax(x), torch.softmax(x, dim=1)), "not a softmax"
    except RuntimeError as error:
        pytest.fail(f"it raised {error}")


def test_one():
    compare(1)


def test_three():
    compare(3)
"""


def raising(error: str, columns: int = 1) -> dict[str, str]:
    """A softmax that raises on inputs of so many columns."""
    raises = f"    if x.shape[1] == {columns}:\n        raise {error}\n"
    return mutated("    x = x.contiguous()\n", f"{raises}    x = x.contiguous()\n")


@pytest.fixture
def gate(tmp_path: Path) -> GateConfig:
    """A suite whose tests catch what the kernel raises, and fail of their own."""
    (tmp_path / "test_softmax.py").write_text(SUITE)
    return GateConfig("pytest", rootdir=str(tmp_path), baseline_runs=1)


def test_a_fault_counts_as_a_death_and_ends_the_session(judge: Judge, gate: GateConfig) -> None:
    files = raising(f'RuntimeError("{FAULT}")')
    verdict = judge("tests", gate, files=files, stop_at_first=False)
    assert verdict.outcome is GateOutcome.CRASHED
    assert verdict.case == "test_softmax.py::test_one"
    assert FAULT in verdict.detail
    assert verdict.cases == 0, "the other test does not run"


def test_a_test_that_failed_before_the_fault_has_said_no(judge: Judge, gate: GateConfig) -> None:
    files = raising(f'RuntimeError("{FAULT}")', columns=3)
    wrong = {name: text.replace("x / tl.sum", "x * 0.5 / tl.sum") for name, text in files.items()}
    verdict = judge("tests", gate, files=wrong, stop_at_first=False)
    assert verdict.outcome is GateOutcome.REJECTED
    assert verdict.case == "test_softmax.py::test_one"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ('RuntimeError("Triton Error [CUDA]: invalid argument")', GateOutcome.REJECTED),
        ('ValueError("CUDA error: an illegal memory access")', GateOutcome.REJECTED),
        ('MemoryError("CUDA")', GateOutcome.ERROR),
    ],
)
def test_what_is_no_fault_is_judged_as_ever(
    judge: Judge, gate: GateConfig, error: str, outcome: GateOutcome
) -> None:
    assert judge("tests", gate, files=raising(error)).outcome is outcome
