"""Claims about cells: a record beside the verdict that changes nothing and forgets nothing."""

from __future__ import annotations

import pytest

from gatecert.gates.cells import Cell, ObservingGate, pack_cells, unpack_cells
from gatecert.gates.oracle import OracleGate, PreparedOracle
from gatecert.gates.presets.gate import get_preset
from gatecert.gates.records import Reason, Verdict
from gatecert.mutants.records import Candidate, CandidateKind
from gatecert.subjects import Subject
from tests.gatecert.gates import wrong_softmaxes

CANDIDATE = Candidate("candidate", CandidateKind.MUTANT, "s", {})


def prepared(entry: str, dtype: str = "float32") -> PreparedOracle:
    subject = Subject(entry, f"{wrong_softmaxes.__name__}:{entry}", "softmax", dtypes=(dtype,))
    return OracleGate().prepare(subject, seed=0, quick=True)


def seen(entry: str, dtype: str = "float32") -> tuple[Verdict, tuple[Cell, ...]]:
    return prepared(entry, dtype).observe(CANDIDATE)


@pytest.mark.parametrize("entry", ["right", "cached_output", "clears_earlier_output"])
def test_observing_changes_no_verdict(entry: str) -> None:
    verdict, cells = seen(entry)
    assert verdict == prepared(entry).judge(CANDIDATE, stop_at_first=False)
    assert len(cells) == verdict.cases > 3


def test_each_output_is_held_against_the_unrounded_and_the_rounded_reference() -> None:
    _, cells = seen("right", "bfloat16")
    for cell in cells:
        assert [one.rounded_reference for one in cell.run.outputs] == [False, True], cell.case
        assert cell.run.guard is Reason.NONE
        assert not cell.untold
    orders = {sight.order for cell in cells for sight in cell.again}
    assert "reversed" in orders


def test_what_no_comparator_decides_is_told_apart_from_values() -> None:
    verdict, cells = seen("cached_output")
    guards = {cell.case: cell.run.guard for cell in cells}
    assert guards[verdict.case] is Reason.NOT_REPEATABLE
    assert all(cell.run.outputs for cell in cells)


def test_packed_cells_come_back_bit_for_bit() -> None:
    _, cells = seen("right", "float16")
    packed = pack_cells(cells)
    assert unpack_cells(packed) == cells
    assert unpack_cells(b"") == ()


def test_only_the_oracle_records_cells() -> None:
    subject = Subject("right", f"{wrong_softmaxes.__name__}:right", "softmax")
    preset = get_preset("allclose-one-shape").prepare(subject, seed=0, quick=True)
    assert isinstance(prepared("right"), ObservingGate)
    assert not isinstance(preset, ObservingGate)
