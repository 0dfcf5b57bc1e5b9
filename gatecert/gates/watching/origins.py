"""Follow what the entry gives back: which tensors are made of it, how it was mended on the way,
and how much of it is left.

In doubt a comparison counts as one that holds a whole output against something else.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from gatecert.gates.watching.mending import Mend

if TYPE_CHECKING:  # the command names gates without it
    import torch


Mended: TypeAlias = tuple[Mend, ...]


class Between(enum.Enum):
    """What a comparison is between."""

    OUTPUTS = "outputs"
    """Both sides are made of what the entry gave back."""
    OTHERS = "others"
    """Neither is."""
    MIXED = "mixed"
    """One is; or it is not known."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some elements of an output, which has a number of its own and a size."""

    output: int
    size: int
    elements: int


@dataclass(frozen=True, slots=True)
class Made:
    """How something is made of outputs: the operations that mended one on the way, the piece of one
    that it has been computed from (None: of several, or not known), and whether it is that piece
    itself."""

    mended: Mended = ()
    piece: Piece | None = None
    plain: bool = False


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What the sides of a comparison are made of; `pieces` is empty where a whole output is in it,
    or may be."""

    between: Between = Between.MIXED
    mended: Mended = ()
    pieces: tuple[Piece, ...] = ()


NOT_KNOWN = MadeOf()
"""Of what nobody has followed."""


class Origins:
    """Remembers, as long as they live, tensors and arrays that are made of the entry's outputs."""

    def __init__(self) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self._made: Any = WeakIdKeyDictionary()
        self._outputs = 0

    def made(self, value: Any) -> bool:
        """Is it made of an output?"""
        return self._of(value) is not None

    def plain(self, value: Any) -> bool:
        """Is it an output, or a part of one as it is?"""
        known = self._of(value)
        return known is not None and known.plain

    def mended(self, value: Any) -> Mended:
        """The operations that mended an output on the way to it."""
        known = self._of(value)
        return () if known is None else known.mended

    def piece(self, value: Any) -> Piece | None:
        """The piece of an output that it is computed from, where that is known."""
        known = self._of(value)
        return None if known is None else known.piece

    def given_back(self, tensors: Iterable[torch.Tensor]) -> None:
        """The entry gave these back."""
        for tensor in tensors:
            self._outputs += 1
            size = tensor.numel()
            self._made[tensor] = Made(piece=Piece(self._outputs, size, size), plain=True)

    def follow(
        self, name: str, args: tuple[Any, ...], answer: Any, mend: Mend | None = None
    ) -> bool:
        """A function was called, with all that it was given as `args`: note what is made of an
        output, or written with one. `mend` is how it mends one. True if something else than a
        tensor was made of one, that may tell its values."""
        given = [one for one in map(self._of, values_in(args)) if one is not None]
        if not given:
            return False
        # A mask says which elements, and is none of them.
        operands = args[:1] if name in _BY_INDEX else args
        sources = [one for one in map(self._of, values_in(operands)) if one is not None]
        made = list(values_in(answer))
        target = [args[0]] if name == "__setitem__" else []
        if sources or mend:
            mended = _together(*(one.mended for one in given), (mend,) if mend else ())
            for one in (*made, *target):
                self._made[one] = _next(name, args, sources, mended, _elements(one))
        return not made and not target and name not in _TELLS_NO_VALUES

    def made_of(self, sides: Iterable[Any]) -> MadeOf:
        """What the sides of a comparison are made of; numbers and arrays may come from anywhere."""
        found: set[bool] = set()
        known: list[Made] = []
        for side in sides:
            tensors = list(tensors_in(side))
            found |= set(map(self.made, tensors)) if tensors else {True, False}
            known += [one for one in map(self._of, values_in(side)) if one is not None]
        pieces = [one.piece for one in known if one.piece is not None]
        in_part = len(pieces) == len(known) and all(one.elements < one.size for one in pieces)
        return MadeOf(
            between=Between.MIXED if len(found) != 1 else _OF_ALL[found.pop()],
            mended=_together(*(one.mended for one in known)),
            pieces=tuple(dict.fromkeys(pieces)) if in_part else (),
        )

    def _of(self, value: Any) -> Made | None:
        known: Made | None = self._made.get(value) if _holds_values(value) else None
        return known


_BY_INDEX = frozenset(
    {"__getitem__", "masked_select", "masked_fill", "masked_fill_", "index_select"}
)
_IN_PART = frozenset({
    "__getitem__", "chunk", "diagonal", "narrow", "select", "split", "tensor_split", "unbind",
})  # fmt: skip
_AS_IT_IS = _IN_PART | frozenset({
    "clone", "contiguous", "cpu", "detach", "double", "flatten", "float", "reshape", "squeeze",
    "t", "to", "transpose", "unsqueeze", "view",
})  # fmt: skip
"""Functions that give elements of what they are given."""
_TELLS_NO_VALUES = frozenset({
    "__get__", "__len__", "__hash__", "dim", "element_size", "is_complex", "is_contiguous",
    "is_floating_point", "ndimension", "nelement", "numel", "size", "storage_offset", "stride",
})  # fmt: skip
_OF_ALL = {True: Between.OUTPUTS, False: Between.OTHERS}


def _next(
    name: str, args: tuple[Any, ...], sources: list[Made], mended: Mended, elements: int
) -> Made:
    """What a function makes of these, with so many elements."""
    pieces = {one.piece for one in sources}
    piece = pieces.pop() if len(pieces) == 1 else None
    if piece is not None and piece.elements != elements:
        by_place = name in _IN_PART and not list(values_in(args[1:]))
        smaller = by_place and elements < piece.elements
        piece = replace(piece, elements=elements) if smaller else None
    plain = name in _AS_IT_IS and all(one.plain for one in sources)
    return Made(mended, piece, plain)


def _together(*mended: Mended) -> Mended:
    """Each operation once, with the most elements that it mended."""
    found: dict[str, int] = {}
    for operation, elements in (mend for some in mended for mend in some):
        found[operation] = max(elements, found.get(operation, 0))
    return tuple(Mend(*one) for one in sorted(found.items()))


def values_in(value: Any) -> Iterator[Any]:
    """Tensors and numpy's arrays, those in tuples and lists included."""
    if _holds_values(value):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from values_in(part)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Tensors, those in tuples and lists included."""
    from torch import Tensor

    yield from (one for one in values_in(value) if isinstance(one, Tensor))


def _holds_values(value: Any) -> bool:
    return hasattr(value, "untyped_storage") or _is_array(value)


def _is_array(value: Any) -> bool:
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray")


def _elements(value: Any) -> int:
    return int(value.size if _is_array(value) else value.numel())
