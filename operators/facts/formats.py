"""Number formats of a kernel's values, as Triton's rules of promotion have them."""

from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_BF16_BITS = 8


class Format(enum.Enum):
    """What a number is held in."""

    PYTHON = "python"
    """A number known when the kernel is compiled; it takes on the other operand's format."""
    INTEGER = "integer"
    """An integer or a truth value."""
    FP16 = "fp16"
    """float16."""
    BF16 = "bf16"
    """bfloat16."""
    WIDE = "wide"
    """float32 or float64."""
    POINTER = "pointer"
    """An address."""


Formats = frozenset[Format]
"""All that a value may be held in; empty while nothing is known yet."""

HALVES: Formats = frozenset({Format.FP16, Format.BF16})
WIDE: Formats = frozenset({Format.WIDE})
INTEGER: Formats = frozenset({Format.INTEGER})
PYTHON: Formats = frozenset({Format.PYTHON})
POINTER: Formats = frozenset({Format.POINTER})
ANY: Formats = frozenset(Format) - POINTER
TENSOR_NUMBER: Formats = frozenset({Format.INTEGER, Format.WIDE})
"""What an assigned number or a runtime scalar is: an integer or a float32."""


def _pair(a: Format, b: Format, divides: bool) -> Formats:
    both = {a, b}
    if Format.POINTER in both:
        return POINTER
    if Format.PYTHON in both:
        (other,) = both - {Format.PYTHON} or {Format.PYTHON}
        if other in HALVES and divides:
            return WIDE
        return TENSOR_NUMBER if other is Format.INTEGER else frozenset({other})
    if Format.WIDE in both or divides:
        return WIDE
    if Format.FP16 in both:
        return frozenset({Format.FP16})
    # A bfloat16 keeps to itself: with an integer it becomes a float32.
    return frozenset(both) if len(both) == 1 else WIDE


def named(name: str, element: Format) -> Formats:
    """The formats of a type's name; one that is not spelled out may be any."""
    if name.startswith(("int", "uint")):
        return INTEGER
    if name in ("float32", "float64"):
        return WIDE
    exact = {"float16": Format.FP16, "bfloat16": Format.BF16, "element_ty": element}.get(name)
    return TENSOR_NUMBER | {element} if exact is None else frozenset({exact})


def fits_halves(value: float | None) -> bool:
    """Whether both 16-bit formats hold a number exactly."""
    if value is None or math.isnan(value):
        return False
    if value == 0.0 or math.isinf(value):
        return True
    if not (math.frexp(value)[0] * 2**_BF16_BITS).is_integer():
        return False
    try:
        return bool(struct.unpack("e", struct.pack("e", value))[0] == value)
    except OverflowError:
        return False


class Loss(enum.IntEnum):
    """How a value after a change of formats differs from the value before."""

    NONE = 0
    ONCE = 1
    """It is the right value rounded to 16 bits."""
    SOME = 2
    """It is rounded otherwise."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a value may be held in before a change and after it, and the loss that it brings."""

    pairs: frozenset[tuple[Format, Format]] = frozenset()
    loss: Loss = Loss.NONE

    @property
    def after(self) -> Formats:
        """The formats after the change."""
        return frozenset(after for _, after in self.pairs)

    @property
    def narrower(self) -> bool:
        """Whether the change may make a 16-bit value of a float32."""
        return any(before is Format.WIDE and after in HALVES for before, after in self.pairs)

    def __or__(self, other: Held) -> Held:
        return Held(self.pairs | other.pairs, max(self.loss, other.loss))

    def lossy(self, loss: Loss) -> Held:
        """The same formats with another loss."""
        return Held(self.pairs, loss)

    def becomes(self, after: Formats) -> Held:
        """The same value in other formats after the change."""
        return Held(frozenset((b, a) for b, _ in self.pairs for a in after), self.loss)

    def both(self, change: Callable[[Format], Formats]) -> Held:
        """Formats before and after replaced alike."""
        pairs = (zip(change(b), change(a), strict=True) for b, a in self.pairs)
        return Held(frozenset(pair for few in pairs for pair in few), self.loss)


def same(formats: Formats) -> Held:
    """A value that a change does not touch."""
    return Held(frozenset((f, f) for f in formats))


def combined(parts: Sequence[Held], divides: bool = False) -> Held:
    """The formats in which values are combined; nothing is lost."""
    pairs = parts[0].pairs
    for part in parts[1:]:
        pairs = frozenset(
            pair
            for b, a in pairs
            for other_b, other_a in part.pairs
            for pair in _product(_pair(b, other_b, divides), _pair(a, other_a, divides))
        )
    return Held(pairs)


def _product(before: Formats, after: Formats) -> Iterable[tuple[Format, Format]]:
    """What is undecided alike is decided alike."""
    if before == after:
        return [(f, f) for f in before]
    return [(b, a) for b in before for a in after]


def worst(parts: Iterable[Held]) -> Loss:
    """The loss of arithmetic that loses nothing itself."""
    return Loss.SOME if any(p.loss for p in parts) else Loss.NONE
