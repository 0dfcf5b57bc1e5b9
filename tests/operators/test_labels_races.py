"""Labels of atomic-to-plain: who shares an address with whom."""

from __future__ import annotations

import pytest

from gatecert.operators.records import ObservableBy, Reveal
from tests.operators import arithmetic

PROGRAMS = ((ObservableBy.RACE,), (Reveal.SEVERAL_PROGRAMS,))
LANES = ((ObservableBy.VALUES,), (Reveal.REPEATED_INDICES,))
BOTH = ((ObservableBy.VALUES, ObservableBy.RACE), (Reveal.REPEATED_INDICES,))
OWN = ((), ())

PARAMETERS = "x_ptr, y_ptr, N, stride, stride_n, B: tl.constexpr, C: tl.constexpr"
ROW = "row = tl.program_id(0)"
TILE = "cols = tl.program_id(0) * B + tl.arange(0, B)"
LANE = "cols = tl.arange(0, B)"


def kernel(*lines: str) -> str:
    return arithmetic.kernel(*lines, parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # A cell of its own for each program, or for each lane of each program.
        ((ROW, "tl.atomic_add(y_ptr + row, 1.0)"), OWN),
        ((ROW, "tl.atomic_add(y_ptr + row * stride, 1.0)"), OWN),
        ((ROW, LANE, "tl.atomic_add(y_ptr + row.to(tl.int64) * stride + cols, 1.0)"), OWN),
        ((TILE, "tl.atomic_add(y_ptr + cols, 1.0, mask=cols < N)"), OWN),
        (
            (
                "rows = (tl.program_id(0) * B + tl.arange(0, B))[:, None]",
                "cols = (tl.program_id(1) * C + tl.arange(0, C))[None, :]",
                "y_ptr += rows * stride",
                "tl.atomic_max(y_ptr + cols * stride_n, 1.0)",
            ),
            OWN,
        ),
        (
            (
                "batch, head = tl.program_id(0) // N, tl.program_id(0) % N",
                "tl.atomic_add(y_ptr + batch * stride + head * stride_n, 1.0)",
            ),
            OWN,
        ),
        # Columns of a row, tile by tile.
        (
            (
                ROW,
                "for start in range(0, N, B):",
                "    cols = start + tl.arange(0, B)",
                "    tl.atomic_add(y_ptr + row * stride + cols, 1.0, mask=cols < N)",
            ),
            OWN,
        ),
        # One cell, or one row, for all programs or for some.
        (("tl.atomic_add(y_ptr, 1.0)",), PROGRAMS),
        ((ROW, "tl.atomic_add(y_ptr, row)"), PROGRAMS),
        ((LANE, ROW, "tl.atomic_add(y_ptr + cols, row)"), PROGRAMS),
        ((ROW, "part = tl.program_id(1)", "tl.atomic_min(y_ptr + row, part)"), PROGRAMS),
        ((ROW, "tl.atomic_add(y_ptr + row // N, 1.0)"), PROGRAMS),
        ((ROW, "tl.atomic_add(y_ptr + row % N, 1.0)"), PROGRAMS),
        ((ROW, "tl.atomic_add(y_ptr + row // N * stride + row % B, 1.0)"), PROGRAMS),
        # Tiles that overlap: by a tap, by a step shorter than the tile.
        ((TILE, "for t in range(N):", "    tl.atomic_add(y_ptr + cols + t, 1.0)"), PROGRAMS),
        ((ROW, LANE, "tl.atomic_add(y_ptr + row * C + cols, 1.0)"), PROGRAMS),
        ((ROW, LANE, "tl.atomic_add(y_ptr + row + cols, 1.0)"), PROGRAMS),
        # An index from memory may name one cell twice, in one program or in two.
        ((ROW, "i = tl.load(x_ptr + row)", "tl.atomic_add(y_ptr + i * stride, 1.0)"), PROGRAMS),
        ((TILE, "i = tl.load(x_ptr + cols)", "tl.atomic_add(y_ptr + i, 1.0)"), BOTH),
        ((LANE, ROW, "tl.atomic_add(y_ptr + row * stride + cols % C, 1.0)"), LANES),
    ],
)
def test_an_update_shows_where_others_share_its_address(
    lines: tuple[str, ...], expected: tuple[object, object]
) -> None:
    ((site, _),) = arithmetic.sites("atomic-to-plain", kernel(*lines))
    assert (site.observable_by, site.reveal) == expected


def test_a_plain_update_keeps_mask_and_lines_and_drops_the_order_of_memory() -> None:
    lines = (
        TILE,
        "tl.atomic_add(",
        "    y_ptr + cols,",
        "    tl.load(x_ptr + cols), sem='relaxed',",
        "    mask=cols < N,",
        ")",
    )
    ((_, changed),) = arithmetic.sites("atomic-to-plain", kernel(*lines))
    old = "tl.load(y_ptr + cols, mask=cols < N, other=0.0)"
    assert changed == ["tl.store(", f"{old} + tl.load(x_ptr + cols),"]


def test_an_update_by_method_is_planted_too() -> None:
    ((_, changed),) = arithmetic.sites(
        "atomic-to-plain", kernel(ROW, "(y_ptr + row).atomic_add(1.0, mask=row < N)")
    )
    assert changed == [
        "tl.store((y_ptr + row), tl.load((y_ptr + row), mask=row < N, other=0.0) + 1.0,"
        " mask=row < N)"
    ]
