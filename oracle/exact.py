"""Exact mode: where every intermediate is representable, the output must equal the reference.

Two kinds of operation have it. One that *selects* (a copy, a gather, the place of a maximum)
rounds nothing, whatever its inputs. One that is *linear* sums products of its inputs: on whole
multiples of a quantum every partial sum, in any order, is such a multiple too, and a format of p
significant bits holds all of them up to 2^p quanta. So an element is exact where the sum of the
magnitudes of its terms stays below that, and it must then be the exact result, rounded once.
Elements beyond are judged by the tolerance; how many were exact is counted, never assumed.

CUTLASS's unit tests compare integers so (`test/unit/gemm/device/gemm_testbed_3x.hpp`), CUDA-L2
zeros and ones (`zero_one_correctness_check.py`, where results past 2047 are ignored in silence).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.formats import Array, FloatFormat
from gatecert.oracle.values import EXACT_RECIPES, Allowance

if TYPE_CHECKING:
    from gatecert.oracle.case import Case
    from gatecert.oracle.schema import Operation, Sizes

ACCUMULATOR_BITS = {"float32": 24, "float16": 11, "tf32": 11, "bfloat16": 8}
"""Significant bits of what a kernel sums in, or rounds a step to."""
_LARGEST_INTEGER = 15
"""Sums of its squares soon leave the 11 and 8 bits of a narrow accumulator, and fit fp32 up to
74,000 terms."""
_WIDEST_EXPONENTS = 6
_SMALLEST_QUANTUM = 2.0**-100
"""Far above where fp32 becomes subnormal."""


class Kind(str, enum.Enum):
    """Why an operation is exact."""

    SELECTING = "selecting"
    """Every output value is one of the inputs' or a place: exact on all inputs."""
    LINEAR = "linear"
    """Outputs are sums of products of inputs: exact on multiples of a quantum, up to a size."""


@dataclass(frozen=True, slots=True)
class Exactness:
    """What of an operation is exact.

    `outputs` are those that it holds for and `tensors` the inputs that these come from (none
    named: all), `scalars` the values at which it holds: cases of an exact recipe take them. A
    term is a product of `factors` drawn values, and there are `more_terms` beside the reduction
    length. A linear operation's shadow must be at least the sum of the magnitudes of its terms.
    """

    kind: Kind
    outputs: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    scalars: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    factors: int = 1
    more_terms: int = 0


def selecting() -> Exactness:
    """An operation that moves values and computes none."""
    return Exactness(Kind.SELECTING)


def linear(
    *,
    factors: int = 1,
    more_terms: int = 0,
    outputs: Sequence[str] = (),
    tensors: Sequence[str] = (),
    scalars: Mapping[str, float] = MappingProxyType({}),
) -> Exactness:
    """A sum of products: `linear(factors=2)` is a matrix product. See `Exactness`."""
    named = MappingProxyType(dict(scalars))
    return Exactness(Kind.LINEAR, tuple(outputs), tuple(tensors), named, factors, more_terms)


def allowance(accumulator_bits: int, terms: int, factors: int, fmt: FloatFormat) -> Allowance:
    """What values may be such that sums of `terms` products of `factors` stay exact.

    `magnitude` is the largest integer, `exponents` the width of the range of powers of two; both
    are whole in the input's format. Where even ones are too many, `density` says which part of
    the values may differ from zero: half of what fits, as their number varies.
    """
    room = 2.0**accumulator_bits / max(1, terms)
    if room < 1.0:
        return Allowance(1, 0, (room / 2) ** (1 / factors))
    largest = min(_LARGEST_INTEGER, 2**fmt.precision, _root(room, factors))
    widest = int(math.log2(room)) // factors
    return Allowance(largest, min(_WIDEST_EXPONENTS, widest), 1.0)


def _root(room: float, factors: int) -> int:
    """The largest whole number whose power of `factors` is at most `room`."""
    found = int(room ** (1 / factors)) + 1
    while found**factors > room:
        found -= 1
    return found


def allowance_for(operation: Operation, sizes: Sizes, fmt: FloatFormat) -> Allowance:
    """The allowance of an operation that accumulates in float32."""
    exact = operation.exact
    factors = exact.factors if exact else 1
    terms = operation.reduction_length(sizes) + (exact.more_terms if exact else 0)
    return allowance(ACCUMULATOR_BITS["float32"], terms, factors, fmt)


def pinned_scalars(operation: Operation, recipe: str) -> Mapping[str, float]:
    """The scalars that a case of this recipe must have to be exact."""
    return operation.exact.scalars if operation.exact and recipe in EXACT_RECIPES else {}


def exact_places(
    operation: Operation,
    case: Case,
    exact_inputs: Sequence[Any],
    shadows: Sequence[Array],
    intermediate: str | None,
) -> list[npt.NDArray[np.bool_] | None]:
    """Per output the elements that must be equal, or None where none of them need be.

    `exact_inputs` are in call order and float64; `intermediate` is the declared step in lower
    precision, which narrows what counts as exact.
    """
    names = [spec.name for spec in operation.outputs_of(exact_inputs)]
    exact = operation.exact
    if exact is None or not _applies(exact, case):
        return [None] * len(names)
    limit = math.inf
    if exact.kind is Kind.LINEAR:
        bits = ACCUMULATOR_BITS[intermediate or "float32"]
        quantum = _quantum_of_terms(operation, exact, exact_inputs)
        limit = quantum * 2.0**bits if quantum >= _SMALLEST_QUANTUM else -1.0
    return [
        np.asarray(shadow <= limit) if not exact.outputs or name in exact.outputs else None
        for name, shadow in zip(names, shadows, strict=True)
    ]


def check_exactness(
    operation: Operation,
    case: Case,
    exact_inputs: Sequence[Any],
    output: str,
    reference: npt.NDArray[Any],
    shadow: Array,
    places: npt.NDArray[np.bool_] | None,
) -> None:
    """Exact elements of a linear operation are what sums of its terms can be: whole multiples of
    their quantum, no larger than the sum of the terms' magnitudes, which its shadow is.

    Raises:
        EnvironmentFailure: one is not, so that the operation is not linear, or its shadow is wrong.
    """
    exact = operation.exact
    if exact is None or exact.kind is not Kind.LINEAR or places is None or not places.any():
        return
    sums = np.where(places, reference, 0.0) / _quantum_of_terms(operation, exact, exact_inputs)
    for wrong, why in (
        (sums != np.rint(sums), "is no sum of products of its inputs"),
        (np.where(places, np.abs(reference), 0.0) > shadow * (1 + 2.0**-40), "exceeds its shadow"),
    ):
        if wrong.any():
            at = tuple(int(place) for place in np.argwhere(wrong)[0])
            raise EnvironmentFailure(
                f"operation {operation.name!r} declares exact=linear(factors={exact.factors}), but "
                f"on case {case.id} {output}{list(at)} = {reference[at]} {why} ({shadow[at]})"
            )


def _quantum_of_terms(operation: Operation, exact: Exactness, exact_inputs: Sequence[Any]) -> float:
    named = dict(zip((spec.name for spec in operation.inputs), exact_inputs, strict=True))
    parts = exact.tensors or [s.name for s in operation.tensors if not s.destination]
    given = [named[name] for name in (*parts, *exact.scalars) if named[name] is not None]
    return math.prod(quantum_of(_array(arg)) for arg in given)


def _applies(exact: Exactness, case: Case) -> bool:
    if exact.kind is Kind.LINEAR and case.recipe not in EXACT_RECIPES:
        return False
    given = dict(case.scalars)
    return all(given[name] == value for name, value in exact.scalars.items())


def _array(arg: Any) -> Array:
    return np.asarray(arg.numpy() if isinstance(arg, torch.Tensor) else arg, np.float64)


def quantum_of(values: Array) -> float:
    """The largest power of two, at most 1, that all values are whole multiples of."""
    finite = values[np.isfinite(values) & (values != 0.0)]
    if not finite.size:
        return 1.0
    fraction, exponent = np.frexp(finite)
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    return min(1.0, float(np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min()))
