"""Where a store that lost its bound writes: past the buffer, or over rows of its own program."""

from __future__ import annotations

from gatecert.operators.facts.values import Conjunct, ConjunctKind, Value, add_sums


def overwrites_own_rows(pointer: Value, term: Conjunct) -> bool:
    """Whether lanes past the bound land on elements that an earlier turn has written.

    So it is where a program stores several rows, `rows * n + cols`, and a loop walks `cols`
    below `n`: the last tile runs on into the first of the next row. Where the next row is
    another program's, the order of programs decides, and this is False.
    """
    if term.kind is not ConjunctKind.BOUND or not term.placed:
        return False
    tiles = {name for name, _ in term.placed}
    turns = {addend for addend, _ in term.addends if "@" in addend and addend not in tiles}
    rows = {name for name, _ in pointer.placed} - tiles
    rest = dict(add_sums(pointer.sum, term.addends, -1))
    if not turns or tiles & rest.keys() or turns & rest.keys():
        return False
    return any(
        addend in (f"({factor}*{term.bound})", f"({term.bound}*{factor})")
        for addend in rest
        for factor in _factors(addend, term.bound)
        if any(row in factor for row in rows)
    )


def _factors(addend: str, bound: str) -> tuple[str, ...]:
    """What a product holds before and after the bound."""
    inner = addend.removeprefix("(").removesuffix(")")
    return inner.removesuffix(f"*{bound}"), inner.removeprefix(f"{bound}*")
