"""The absolute tolerance that kills a mutant on a gate's own inputs and rejects no control."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gatecert.calibration.models import get_model
from gatecert.gates.cells import Cell
from gatecert.gates.records import Reason
from gatecert.oracle.case import parse_case
from gatecert.oracle.formats import FORMATS
from gatecert.remedies.records import Tolerance

_MODEL = get_model("allclose")


def tolerances_of(
    controls: Sequence[Iterable[Cell]], mutant: Iterable[Cell]
) -> tuple[Tolerance, ...]:
    """By dtype, from what each control and the mutant showed on the gate's own inputs. One that
    broke more than values (raised, left its buffers, gave NaN) is not counted."""
    needs = [_needs(cells) for cells in controls]
    found = []
    for dtype, needed in _needs(mutant).items():
        of_controls = [one[dtype] for one in needs if dtype in one]
        if of_controls:
            found.append(
                Tolerance(dtype, FORMATS[dtype].unit, len(of_controls), max(of_controls), needed)
            )
    return tuple(found)


def _needs(cells: Iterable[Cell]) -> dict[str, float]:
    found: dict[str, float] = {}
    for cell in cells:
        dtype = parse_case(cell.case.partition(" ")[0]).dtype
        if cell.run.guard is not Reason.NONE:
            continue
        seen = [one for one in cell.run.outputs if not one.rounded_reference and one.interval]
        needed = max((_MODEL.need(one, dtype) for one in seen), default=0.0)
        found[dtype] = max(found.get(dtype, 0.0), needed)
    return found
