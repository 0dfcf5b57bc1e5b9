"""Values of a tensor written out in a case id: `x=2x0,1` is 0, 0, 1."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from gatecert.errors import UsageError

Given = tuple[tuple[str, tuple[float, ...]], ...]
"""Tensor name -> its values, in the order of their indices."""

_NUMBER = r"-?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|inf|nan)"
_RUN = re.compile(rf"(?:(?P<times>[1-9]\d*)x)?(?P<value>{_NUMBER})")
_TENSOR = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<values>\S*)")


def write_given(given: Given) -> str:
    """`:x=2x0,1:w=1` of the values of x and w; "" of none."""
    return "".join(f":{name}={_write(values)}" for name, values in given)


def read_given(case: str, parts: Iterable[str]) -> Given:
    """Read what `write_given` wrote, split at its colons; `case` is for messages.

    Raises:
        UsageError: a part is not of the form `name=value,value`.
    """
    found = []
    for part in parts:
        match = _TENSOR.fullmatch(part)
        if match is None:
            raise UsageError(f"case {case!r}: {part!r} is not of the form tensor=value,value")
        found.append((match["name"], tuple(_read(case, match["values"]))))
    return tuple(found)


def _write(values: Sequence[float]) -> str:
    runs = []
    for text, group in itertools.groupby(map(_text, values)):
        times = len(list(group))
        runs.append(text if times == 1 else f"{times}x{text}")
    return ",".join(runs)


def _text(value: float) -> str:
    text = repr(float(value))
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text


def _read(case: str, text: str) -> Iterable[float]:
    for item in text.split(",") if text else ():
        match = _RUN.fullmatch(item)
        if match is None:
            raise UsageError(f"case {case!r}: {item!r} is neither a number nor a run like 3x0.5")
        yield from itertools.repeat(float(match["value"]), int(match["times"] or 1))
