"""What one lane of a tile holds, as far as syntax tells: a small abstract arithmetic.

An element is a known number or one of the cases of `Lane`. Truth values are 1.0 and 0.0. Data is
taken to be finite, so that zero times data is zero; NaN and what a guard puts in bad lanes are
`POISON`, which a product by zero does not hide.
"""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Callable, Mapping
from typing import TypeAlias


class Lane(enum.Enum):
    """An element that is no known number."""

    DATA = "data"
    """Some finite number."""
    OUTSIDE = "outside"
    """An index past its bound, or an address made from one."""
    POISON = "poison"
    """NaN, or what a guard puts in a lane that nobody may use."""
    KEPT = "kept"
    """What a name held before statements that only one of original and mutant runs."""


Element: TypeAlias = float | Lane

TRUE, FALSE = 1.0, 0.0

SENTINEL = -1e4
"""Numbers at or below this stand in for minus infinity: no datum moves them, `exp` makes them
zero and a maximum passes them over."""

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_NUMBERS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "maximum": max,
    "minimum": min,
}
_FUNCTIONS: Mapping[str, Callable[[float], float]] = {
    "exp": math.exp,
    "exp2": lambda x: math.pow(2.0, x),
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1.0 / math.sqrt(x),
    "abs": abs,
    "fabs": abs,
    "tanh": math.tanh,
    "erf": math.erf,
    "sigmoid": lambda x: 0.5 * (1.0 + math.tanh(0.5 * x)),
    "sin": math.sin,
    "cos": math.cos,
}
_STICKY = frozenset({"+", "-", "*", "//", "/"})
"""Arithmetic that leaves an index outside its bound; `%`, `&` and a minimum bring it back."""


def _number(value: float) -> Element:
    return Lane.POISON if math.isnan(value) else float(value)


def apply_function(name: str, x: Element) -> Element:
    """The function `name` of one element; anything that is not known becomes `DATA`."""
    if isinstance(x, Lane):
        return Lane.POISON if x is Lane.POISON else Lane.DATA
    if name not in _FUNCTIONS:
        return Lane.DATA
    try:
        return _number(_FUNCTIONS[name](x))
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return Lane.DATA


def negate(x: Element) -> Element:
    """Logical not."""
    return x if isinstance(x, Lane) else float(not x)


def both(x: Element, y: Element) -> Element:
    """Logical and: false wins over anything."""
    if FALSE in (x, y):
        return FALSE
    if x == TRUE:
        return y
    return x if y == TRUE else Lane.DATA


def either(x: Element, y: Element) -> Element:
    """Logical or."""
    return negate(both(negate(x), negate(y)))


def select(condition: Element, x: Element, y: Element) -> Element:
    """`tl.where` on one lane."""
    if isinstance(condition, Lane):
        return join(x, y)
    return x if condition else y


def join(x: Element, y: Element) -> Element:
    """Either of the two, one does not know which."""
    if x == y:
        return x
    return Lane.POISON if Lane.POISON in (x, y) else Lane.DATA


def is_infinite(x: Element) -> bool:
    """Whether the element is infinite, or a constant that people write for minus infinity."""
    return not isinstance(x, Lane) and (x == math.inf or x <= SENTINEL)


def yields(name: str, x: Element) -> bool:
    """Whether `maximum` or `minimum` takes its other operand; Triton's pass NaN over."""
    if x is Lane.POISON:
        return True
    return is_infinite(x) and not isinstance(x, Lane) and (x < 0.0) == (name == "maximum")


def _extremum(name: str, x: Element, y: Element) -> Element:
    """`maximum` or `minimum` of two elements."""
    known = not isinstance(x, Lane) and not isinstance(y, Lane)
    if not known and yields(name, x):
        return y
    if not known and yields(name, y):
        return x
    if isinstance(x, Lane) or isinstance(y, Lane):
        return Lane.DATA
    return _NUMBERS[name](x, y)


def _by_infinity(name: str, x: Element, y: Element) -> Element:
    """Arithmetic of one finite but unknown element with a known number.

    A sentinel counts as minus infinity, but keeps its value: with zero it still makes zero.

    Infinity times data keeps its sign: scales are positive, and where they are not it matters
    only that the product is not finite.
    """
    if is_infinite(x) and name in ("+", "-", "*", "/"):
        return x
    if not isinstance(y, Lane) and is_infinite(y):
        return {"+": y, "-": -y, "*": y, "/": 0.0}.get(name, Lane.DATA)
    return Lane.DATA


def apply_binary(name: str, x: Element, y: Element) -> Element:
    """`x name y` for Triton's arithmetic, comparisons, `maximum` and `minimum`."""
    if name in ("maximum", "minimum"):
        return _extremum(name, x, y)
    if Lane.POISON in (x, y):
        return float(name == "!=") if name in _COMPARISONS else Lane.POISON
    if not isinstance(x, Lane) and not isinstance(y, Lane):
        if name in _COMPARISONS:
            return float(_COMPARISONS[name](x, y))
        if name not in _NUMBERS:
            return Lane.DATA
        try:
            return _number(_NUMBERS[name](x, y))
        except (ZeroDivisionError, OverflowError):
            return Lane.DATA
    if name == "*" and 0.0 in (x, y):
        return 0.0
    if name in ("/", "//") and x == 0.0:
        return 0.0
    if (name in ("+", "-") and y == 0.0) or (name in ("*", "/") and y == 1.0):
        return x
    if (name == "+" and x == 0.0) or (name == "*" and x == 1.0):
        return y
    if name == "-" and x is y is Lane.KEPT:  # m - m_new, where the maximum stays as it was
        return 0.0
    if Lane.OUTSIDE in (x, y):
        return Lane.OUTSIDE if name in _STICKY and x != y else Lane.DATA
    return _by_infinity(name, x, y)
