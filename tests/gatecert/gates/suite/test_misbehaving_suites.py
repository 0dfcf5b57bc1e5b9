"""Claims about pytest suites that misbehave: a kill is still a failed test and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from gatecert.gates.records import GateOutcome
from tests.gatecert.gates.asking import TESTDATA, WRONG, Judge, pytest_gate


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("gate_segfaults", GateOutcome.CRASHED),
        ("gate_runs_out_of_memory", GateOutcome.ERROR),
        ("gate_forks_children", GateOutcome.REJECTED),
        ("gate_changes_directory", GateOutcome.REJECTED),
        ("gate_writes_files", GateOutcome.REJECTED),
        ("gate_seeds_from_time", GateOutcome.REJECTED),
    ],
)
def test_a_misbehaving_suite_gets_the_right_outcome_and_leaves_no_trace(
    judge: Judge, name: str, outcome: GateOutcome
) -> None:
    before = _state()
    verdict = judge("tests", pytest_gate(name), files=WRONG)
    assert verdict.outcome is outcome, verdict.detail
    assert _state() == before
    assert _daemons() == []


def _state() -> dict[str, tuple[int, ...]]:
    """Mode, size and times of everything in the tree that the suites think they work in."""
    states = ((path, path.lstat()) for path in TESTDATA.rglob("*"))
    return {str(p): (s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for p, s in states}


def _daemons() -> list[str]:
    """Command lines of the daemons that gate_forks_children starts."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if command.endswith(b"sleep\x00600\x00"):
                found.append(folder.name)
    return found
