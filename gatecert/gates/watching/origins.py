"""Follow what the entry gives back: which tensors were made of it.

In doubt a comparison counts as one that holds it against something else.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the command names gates without it
    import torch


class Between(enum.Enum):
    """What a comparison is between."""

    OUTPUTS = "outputs"
    """Both sides are made of what the entry gave back."""
    OTHERS = "others"
    """Neither is."""
    MIXED = "mixed"
    """One is; or it is not known."""


class Origins:
    """Remembers, as long as they live, tensors that are made of the entry's outputs."""

    def __init__(self) -> None:
        from torch.utils.weak import WeakIdKeyDictionary

        self._made: Any = WeakIdKeyDictionary()

    def made(self, tensor: torch.Tensor) -> bool:
        """Is it made of an output?"""
        return tensor in self._made

    def given_back(self, tensors: Iterable[torch.Tensor]) -> None:
        """The entry gave these back."""
        for tensor in tensors:
            self._made[tensor] = True

    def follow(self, name: str, given: Any, answer: Any) -> bool:
        """A function of torch was called: note what is made of an output, or written with one.
        True if something else than a tensor was made of one, that may tell its values."""
        tensors = list(tensors_in(given))
        if not any(map(self.made, tensors)):
            return False
        made = list(tensors_in(answer))
        if name == "__setitem__":
            made.append(tensors[0])
        self.given_back(made)
        return not made and name not in _TELLS_NO_VALUES

    def between(self, sides: Iterable[Any]) -> Between:
        """What a comparison of these is between; numbers and arrays may come from anywhere."""
        found = set()
        for side in sides:
            tensors = list(tensors_in(side))
            found |= set(map(self.made, tensors)) if tensors else {True, False}
        return Between.MIXED if len(found) != 1 else _OF_ALL[found.pop()]


_TELLS_NO_VALUES = frozenset({
    "__get__", "__len__", "__hash__", "dim", "element_size", "is_complex", "is_contiguous",
    "is_floating_point", "ndimension", "nelement", "numel", "size", "storage_offset", "stride",
})  # fmt: skip
_OF_ALL = {True: Between.OUTPUTS, False: Between.OTHERS}


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Tensors, those in tuples and lists included."""
    from torch import Tensor

    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
