"""Claims about the axes on which a gate is blind."""

from __future__ import annotations

import pytest

from gatecert.diagnosis.axes import blind_axes
from gatecert.oracle.case import Case, parse_case
from gatecert.witness.records import RUNS, Change

OWN = tuple(
    parse_case(f"leaky_relu/float32/B={rows},N={columns}/contiguous/uniform01/slope=0.01/seed=0")
    for rows, columns in ((1, 64), (1, 128))
)


def axis(case: str, change: Change, block: int = 64, own: tuple[Case, ...] = OWN) -> str:
    (found,) = blind_axes(parse_case(case), [change], own, {"N": (block,)})
    assert found.said
    return found.name


@pytest.mark.parametrize(
    ("case", "change", "block", "name"),
    [
        ("B=1,N=65/contiguous/uniform01", Change("dim N", "64", "65"), 64, "dims:N%BLOCK"),
        ("B=1,N=384/contiguous/uniform01", Change("dim N", "64", "384"), 128, "dims:N>BLOCK"),
        ("B=3,N=64/contiguous/uniform01", Change("dim B", "1", "3"), 64, "dims:B>1"),
        ("B=1,N=32/contiguous/uniform01", Change("dim N", "64", "32"), 16, "dims:small"),
        ("B=1,N=96/contiguous/uniform01", Change("dim N", "64", "96"), 32, "dims:N"),
        (
            "B=1,N=64/row_padded:x/uniform01",
            Change("layout", "contiguous", "row_padded:x"),
            64,
            "layout:row_padded",
        ),
        (
            "B=1,N=64/contiguous/normal",
            Change("recipe", "uniform01", "normal"),
            64,
            "values:negative",
        ),
        (
            "B=1,N=64/contiguous/near_zero",
            Change("recipe", "uniform01", "near_zero"),
            64,
            "values:near_zero",
        ),
    ],
)
def test_an_axis_has_the_name_of_what_all_own_inputs_lack(
    case: str, change: Change, block: int, name: str
) -> None:
    assert axis(f"leaky_relu/float32/{case}/slope=0.01/seed=0", change, block) == name


def test_dtypes_scalars_and_runs_are_named_by_themselves() -> None:
    case = "leaky_relu/bfloat16/B=1,N=64/contiguous/uniform01/slope=0.2/seed=0"
    assert axis(case, Change("dtype", "float32", "bfloat16")) == "dtype:bfloat16"
    assert axis(case, Change("scalar slope", "0.01", "0.2")) == "scalar:slope"
    assert axis(case, Change(RUNS, "in turn", "all")) == "runs"
