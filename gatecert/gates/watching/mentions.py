"""Read from a test's code whether it would compare something in a loop."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from gatecert.mutants.overlay import nested_codes
from gatecert.sandbox.imports import is_users

_COMPARE = frozenset({
    "allclose", "isclose", "equal", "assert_close", "assert_allclose", "array_equal",
    "assert_array_equal", "assert_array_almost_equal", "assert_almost_equal", "assertTrue",
    "assertAlmostEqual", "approx",
})  # fmt: skip
_MOST_FUNCTIONS = 50


def loops_over_comparison(function: Callable[..., Any] | None) -> bool:
    """Does it, or a function of the user's that it names, have a loop and a comparison?"""
    codes = [code for found in reached(function) for code in nested_codes(found.__code__)]
    compares = any(_COMPARE.intersection(code.co_names) for code in codes)
    loops = any(step.opname == "FOR_ITER" for code in codes for step in dis.get_instructions(code))
    return compares and loops


def reached(function: Callable[..., Any] | None) -> Iterator[FunctionType]:
    """A function, and those of the user's that it names, directly or through others."""
    found = [_plain(function)]
    seen: set[FunctionType] = set()
    for one in found:  # grows on the way
        if one is None or one in seen or len(seen) > _MOST_FUNCTIONS:
            continue
        seen.add(one)
        yield one
        for code in nested_codes(one.__code__):
            for name in code.co_names:
                other = _plain(one.__globals__.get(name))
                if other is not None and is_users(other.__code__.co_filename):
                    found.append(other)


def _plain(value: Any) -> FunctionType | None:
    """The function beneath wrappers, Hypothesis's included."""
    inner = getattr(getattr(value, "hypothesis", None), "inner_test", value)
    if not isinstance(inner, FunctionType):
        return None
    unwrapped = inspect.unwrap(inner)
    return unwrapped if isinstance(unwrapped, FunctionType) else None
