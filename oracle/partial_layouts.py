"""Which tensors alone take a layout, so that one read by another's strides is seen."""

from __future__ import annotations

from collections import Counter

from gatecert.oracle.layouts import moves
from gatecert.oracle.schema import Operation, Sizes


def parts_of(operation: Operation, layout: str, sizes: Sizes) -> tuple[str, ...]:
    """The sets of arguments (`b`, `q+v`) that take turns to have the layout alone.

    Tensors of one rank are numbered; a set holds those with a 1 in one binary digit, or those
    without. So the sets of all digits part every pair of tensors of one rank that the layout
    moves. None where it moves no such pair.
    """
    numbers: dict[str, int] = {}
    ranks: Counter[int] = Counter()
    for spec in operation.tensors:
        takes = spec.may_share_rows or layout != "expanded"
        if takes and moves(layout, spec.shape(sizes)):
            numbers[spec.name] = ranks[len(spec.dims)]
            ranks[len(spec.dims)] += 1
    digits = (max(ranks.values(), default=1) - 1).bit_length()
    return tuple(
        "+".join(name for name, number in numbers.items() if number >> digit & 1 == value)
        for value in (1, 0)
        for digit in range(digits)
    )


class PartialLayouts:
    """Deals the sets out per dtype: first those that part every pair, then every second time."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._dealt: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self._whole_last: dict[tuple[str, str], bool] = {}

    def deal(self, layout: str, dtype: str, sizes: Sizes) -> str:
        """The layout of the next case: as it is, or with the arguments that alone take it."""
        parts = parts_of(self._operation, layout, sizes)
        if not parts:
            return layout
        turn = self._dealt[dtype, parts]
        whole = turn >= len(parts) // 2 and not self._whole_last.get((dtype, layout), False)
        self._whole_last[dtype, layout] = whole
        if whole:
            return layout
        self._dealt[dtype, parts] += 1
        return f"{layout}:{parts[turn % len(parts)]}"


__all__ = ["PartialLayouts", "parts_of"]
