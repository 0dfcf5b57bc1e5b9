"""Symbolic tile shapes: tuples of sizes, each the source text of a size.

`("BLOCK_M", "1")` is a column, `()` a scalar. Two different texts count as different sizes, so
shapes that agree here agree for any block sizes. A size that starts with `?` is not in the
source: it belongs to a tile that a function is given.
"""

from __future__ import annotations

from collections.abc import Iterable

Shape = tuple[str, ...]


class ShapeConflict(Exception):
    """Two operands whose shapes cannot be broadcast, or an axis that is not there."""


class Sizes:
    """Which sizes are the same; as long as it is `learning`, what the source combines is.

    A kernel that is right tells by its additions that an unknown size equals a known one. A
    changed kernel is judged by what the right one told, so it starts from a copy that no
    longer learns.
    """

    def __init__(self, known: Sizes | None = None) -> None:
        self._same: dict[str, str] = {} if known is None else dict(known._same)
        self._learning = known is None

    def canonical(self, shape: Shape | None) -> Shape | None:
        """The shape with one name for every size."""
        return None if shape is None else tuple(self._name(size) for size in shape)

    def agree(self, left: str, right: str) -> bool:
        """Whether two sizes are the same."""
        left, right = self._name(left), self._name(right)
        if left == right:
            return True
        for unknown, other in ((left, right), (right, left)):
            if self._learning and unknown.startswith("?"):
                self._same[unknown] = other
                return True
        return False

    def broadcast(self, left: Shape | None, right: Shape | None) -> Shape | None:
        """The shape of an elementwise result; raises `ShapeConflict` if there is none.

        As in NumPy, missing leading dims count as 1.
        """
        if left is None or right is None:
            return None
        rank = max(len(left), len(right))
        left = ("1",) * (rank - len(left)) + left
        right = ("1",) * (rank - len(right)) + right
        result: list[str] = []
        for a, b in zip(left, right, strict=True):
            if "1" not in (a, b) and not self.agree(a, b):
                raise ShapeConflict(f"{left} and {right}")
            result.append(b if a == "1" else a)
        return self.canonical(tuple(result))

    def broadcast_all(self, shapes: Iterable[Shape | None]) -> Shape | None:
        """Like `broadcast`, of any number of operands."""
        result: Shape | None = ()
        for shape in shapes:
            result = self.broadcast(result, shape)
        return result

    def _name(self, size: str) -> str:
        while size in self._same:
            size = self._same[size]
        return size
