"""Shrink the values of a failing case: fewer of them not zero, and those simpler numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import torch

from gatecert.oracle.case import Case
from gatecert.oracle.formats import is_float_format, round_to_dtype, to_float64
from gatecert.oracle.given import Given, write_given
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.minimise import Search
from gatecert.oracle.schema import Operation, TensorSpec

_MOST_VALUES = 1 << 14
"""Cases with more elements keep their recipe."""
_ONE_BY_ONE = 64
"""Tensors with more values that are not zero have them simplified all at once only."""
_PLAIN = (1.0, -1.0, 2.0, -2.0, 0.5)

Values = tuple[float, ...]


def shrink_values(search: Search, operation: Operation) -> None:
    """Write all tensors out and simplify them, until no step succeeds.

    Integers take the least of their range for zero; tensors with an index rule keep their values.
    Those whose values stand in for every recipe (a positive scale) are only rounded: zero may lie
    outside their domain. A case whose values cannot be simpler keeps its recipe.

    Raises:
        BudgetSpent: `search.best` is what was reached.
    """
    drawn = search.best
    written = written_out(operation, drawn)
    if sum(len(values) for _, values in written.given) > _MOST_VALUES or not search.take(written):
        return
    try:
        _shrink_all(search, operation)
    finally:
        if search.best.id == written.id:
            search.best = drawn


def _shrink_all(search: Search, operation: Operation) -> None:
    while True:
        before = search.best.id
        for spec in operation.tensors:
            if spec.name in dict(search.best.given):
                _shrink(search, spec)
        if search.best.id == before:
            return


def written_out(
    operation: Operation, case: Case, held: Mapping[str, torch.Tensor] | None = None
) -> Case:
    """The same inputs with every value in the case: its recipe and seed mean nothing any more."""
    tensors = make_inputs(operation, case, held).tensors
    given = []
    for spec in operation.tensors:
        if spec.name in case.absent or spec.destination:
            continue
        values = to_float64(tensors[spec.name]).ravel()
        dtype = spec.dtype(case.dtype)
        given.append((spec.name, tuple(_shortest(value, dtype) for value in values.tolist())))
    return msgspec.structs.replace(case, recipe="normal", seed=0, given=tuple(given))


def _shrink(search: Search, spec: TensorSpec) -> None:
    if spec.index is not None:
        return  # one value by itself breaks its rule
    if "*" in spec.stand_ins:
        _round(search, spec, free_sign=False)
        return
    zero = 0.0 if spec.is_float or spec.low <= 0 else float(spec.low)
    if search.first(_cases(search.best, spec.name, (_all(search.best, spec.name, zero),))):
        return
    _round(search, spec, free_sign=True)
    _clear(search, spec.name, zero)
    if spec.is_float:
        _simplify(search, spec.name, spec.dtype(search.best.dtype))


def _round(search: Search, spec: TensorSpec, *, free_sign: bool) -> None:
    """Plainer numbers for all values at once; without `free_sign` each keeps its sign."""
    if spec.is_float:
        values = _values(search.best, spec.name)
        rounded = _all_simpler(values, spec.dtype(search.best.dtype), free_sign)
        search.first(_cases(search.best, spec.name, rounded))


def _clear(search: Search, name: str, zero: float) -> None:
    """Zero for whole stretches, then shorter ones, down to single values."""
    length = len(_values(search.best, name))
    stretch = (length + 1) // 2
    while stretch:
        for start in range(0, length, stretch):
            values = _values(search.best, name)
            part = values[start : start + stretch]
            if any(value != zero for value in part):
                cleared = (*values[:start], *[zero] * len(part), *values[start + stretch :])
                search.first(_cases(search.best, name, (cleared,)))
        stretch = stretch // 2


def _simplify(search: Search, name: str, dtype: str) -> None:
    """Plainer numbers, one by one."""
    kept = [at for at, value in enumerate(_values(search.best, name)) if value]
    for at in kept if len(kept) <= _ONE_BY_ONE else ():
        values = _values(search.best, name)
        plainer = (
            (*values[:at], simpler, *values[at + 1 :]) for simpler in _simpler(values[at], dtype)
        )
        search.first(_cases(search.best, name, plainer))


def _all_simpler(values: Values, dtype: str, free_sign: bool) -> Iterator[Values]:
    if free_sign:
        yield tuple(1.0 if value else value for value in values)
    yield tuple(math.copysign(1.0, value) if value else value for value in values)
    for digits in (1, 2, 3):
        yield tuple(_rounded(value, digits, dtype) for value in values)


def _simpler(value: float, dtype: str) -> Iterator[float]:
    """Simpler numbers than this, simplest first."""
    yield from _PLAIN
    for digits in (1, 2, 3):
        yield _rounded(value, digits, dtype)


def _rounded(value: float, digits: int, dtype: str) -> float:
    if not np.isfinite(value):
        return value
    text = float(f"{value:.{digits}g}")
    return text if np.isfinite(round_to_dtype(np.array(text), dtype)) else value


def _cases(case: Case, name: str, proposals: Sequence[Values] | Iterator[Values]) -> Iterator[Case]:
    """Those proposals that are simpler than what the case has."""
    now = _cost(name, _values(case, name))
    for values in proposals:
        if _cost(name, values) < now:
            given: Given = tuple(
                (other, values if other == name else old) for other, old in case.given
            )
            yield msgspec.structs.replace(case, given=given)


def _cost(name: str, values: Values) -> tuple[int, int, int]:
    """Values that are not zero, how much there is to read, and values that are not one either."""
    nonzero = sum(value != 0.0 for value in values)
    other = sum(value not in (0.0, 1.0) for value in values)
    return nonzero, len(write_given(((name, values),))), other


def _values(case: Case, name: str) -> Values:
    return dict(case.given)[name]


def _all(case: Case, name: str, value: float) -> Values:
    return (value,) * len(_values(case, name))


def _shortest(value: float, dtype: str) -> float:
    """The decimal number with fewest digits that rounds to this value of the format."""
    if not is_float_format(dtype) or not np.isfinite(value):
        return float(value)
    for digits in range(1, 17):
        text = float(f"{value:.{digits}g}")
        if float(round_to_dtype(np.array(text), dtype)) == value:
            return text
    return float(value)


__all__ = ["shrink_values", "written_out"]
