"""The algebra of changed values: powers of a factor E, multiples of a term M = log E."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


class Form(enum.Enum):
    """How a changed value relates to the right one, for a factor E or a term M = log E."""

    UNKNOWN = "unknown"
    """Not computed yet."""
    ZERO = "zero"
    """Zero: any scale leaves it as it is."""
    INFINITE = "infinite"
    """Infinite: any scale or offset leaves it as it is."""
    SCALED = "scaled"
    """Right value times E^degree; degree 0 is unchanged."""
    SHIFTED = "shifted"
    """Right value plus degree * M."""
    OTHER = "other"
    """Anything else: wrong."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change; equal ones may be added, opposite ones cancel."""

    form: Form
    degree: float = 0.0

    @property
    def harmless(self) -> bool:
        """Whether the value is what it should be."""
        return self.form in (Form.ZERO, Form.INFINITE) or (
            self.form is Form.SCALED and self.degree == 0.0
        )


_CONSTANT = frozenset({Form.UNKNOWN, Form.ZERO, Form.INFINITE})
UNKNOWN = Change(Form.UNKNOWN)
ZERO = Change(Form.ZERO)
INFINITE = Change(Form.INFINITE)
SAME = Change(Form.SCALED)
OTHER = Change(Form.OTHER)
SCALED = Change(Form.SCALED, 1.0)
SHIFTED = Change(Form.SHIFTED, 1.0)


def scaled(degree: float) -> Change:
    """Right value times E^degree."""
    return Change(Form.SCALED, _clean(degree))


def shifted(degree: float) -> Change:
    """Right value plus degree * M."""
    degree = _clean(degree)
    return SAME if degree == 0.0 else Change(Form.SHIFTED, degree)


def _clean(degree: float) -> float:
    return float(round(degree)) if math.isclose(degree, round(degree), abs_tol=1e-6) else degree


def added(left: Change, right: Change, sign: float) -> Change:
    """The change of a sum (sign 1) or a difference (sign -1)."""
    for special in (UNKNOWN, INFINITE):
        if special in (left, right):
            return special
    if Form.SHIFTED in (left.form, right.form):
        degrees = [
            c.degree if c.form is Form.SHIFTED else 0.0 if c.harmless else math.nan
            for c in (left, right)
        ]
        total = degrees[0] + sign * degrees[1]
        return OTHER if math.isnan(total) else shifted(total)
    if ZERO in (left, right):
        return right if left == ZERO else left
    return left if left == right else OTHER


def joined(*changes: Change) -> Change:
    """The change of a value that is one of several."""
    forms = {c.form for c in changes}
    distinct = {c for c in changes if c.form not in _CONSTANT}
    if len(distinct) > 1 or (Form.SHIFTED in forms and Form.ZERO in forms):
        return OTHER
    if distinct:
        return distinct.pop()
    if Form.ZERO in forms and Form.INFINITE in forms:
        return SAME
    return ZERO if Form.ZERO in forms else INFINITE if Form.INFINITE in forms else UNKNOWN


def compared(both: Change) -> Change:
    """A comparison of values that changed alike says what it said before."""
    return both if both == UNKNOWN else OTHER if both.form is Form.OTHER else SAME


def opaque(parts: list[Change]) -> Change:
    """The change of a function of which nothing is known."""
    if UNKNOWN in parts:
        return UNKNOWN
    return SAME if all(p.harmless for p in parts) else OTHER
