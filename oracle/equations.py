"""Equations between calls of one function, and whether they hold of what it returned.

Both sides of a correct kernel err, each by what its own rounding allows, so the sum of those
allowances is allowed: half a step of the output, and the rounding-interval test's units with the
magnitudes of the kernel's own output. Equality of bits would be too much to ask even where both
sides have one exact answer: launchers choose blocks (and so orders of summation) by sizes, a
matrix product of one row may be summed in another order than that of many, and atomics arrive in
any order. Only integers that are selected are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch

from gatecert.oracle.case import Case
from gatecert.oracle.exact import Kind
from gatecert.oracle.expectation import ExpectedOutput, describe
from gatecert.oracle.formats import Array, format_of, spacing, to_float64
from gatecert.oracle.inputs import Inputs
from gatecert.oracle.schema import Operation, TensorSpec
from gatecert.oracle.tolerance import RoundingInterval, unit

Back: TypeAlias = Callable[[TensorSpec, Array], "Array | None"]
"""An output of one call, laid out as the equation compares it; None: it says nothing of it."""
_TINY = 2.0**-200
_FLOAT64_IN_UNITS = 2.0**-29
"""Roundoff of float64 over that of float32."""


@dataclass(frozen=True, slots=True)
class Call:
    """One set of inputs; `case` has its dims."""

    case: Case
    inputs: Inputs


@dataclass(frozen=True, slots=True)
class Term:
    """A call's outputs in an equation; `factors` by output, 1 where none is given."""

    call: Call
    factor: float = 1.0
    factors: Mapping[str, float] = field(default_factory=dict)
    back: Back = lambda spec, values: values


@dataclass(frozen=True, slots=True)
class Equation:
    """The terms' outputs add up to 0."""

    relation: str
    what: str
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Breach:
    """An equation that does not hold: at how many elements, and where it is worst."""

    relation: str
    what: str
    output: str
    mismatched: int
    compared: int
    index: tuple[int, ...]
    error: float
    allowance: float

    def __str__(self) -> str:
        return (
            f"{self.relation} ({self.what}): {self.mismatched} of {self.compared} elements of "
            f"{self.output} do not agree"
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """How near an equation came to its allowance, and its breach where it went beyond."""

    score: float = 0.0
    breach: Breach | None = None


def read(
    operation: Operation,
    equation: Equation,
    results: Sequence[tuple[torch.Tensor, ...]],
    *,
    comparator: RoundingInterval,
    intermediate: str | None = None,
    in_float64: bool = False,
) -> Reading:
    """Does the equation hold of every output? The first breach counts.

    `results` are each term's outputs, of the right number, shape and dtype. `in_float64` says
    that nothing was rounded to less.
    """
    described = [
        describe(
            operation,
            term.call.case,
            term.call.inputs,
            tuple(torch.from_numpy(to_float64(part)) for part in outputs),
            intermediate=intermediate,
        ).outputs
        for term, outputs in zip(equation.terms, results, strict=True)
    ]
    score = 0.0
    for number, spec in enumerate(operation.outputs_of(equation.terms[0].call.inputs.args)):
        total: Any = 0.0
        steps: Any = 0.0
        units: Any = 0.0
        lone: Any = False
        for term, outputs in zip(equation.terms, described, strict=True):
            made = outputs[number]
            factor = term.factors.get(spec.name, term.factor)
            parts = [
                term.back(spec, part)
                for part in (made.reference, *_slack(operation, comparator, made, in_float64))
            ]
            if parts[0] is None or parts[1] is None or parts[2] is None:
                break  # the equation says nothing of this output
            with np.errstate(invalid="ignore"):
                total = total + factor * parts[0]
            steps = steps + abs(factor) * parts[1]
            units = units + abs(factor) * parts[2]
            lone = lone | np.isnan(parts[0])
        else:
            # Equal infinities differ by NaN; a NaN of its own is never right: inputs are finite.
            error = np.where(np.isnan(total) & ~lone, 0.0, np.abs(total))
            error = np.where(lone, np.inf, error)
            shares = np.maximum(error - steps, 0.0) / np.maximum(units, _TINY)
            score = max(score, float(shares.max(initial=0.0)))
            if score > 1.0:
                return Reading(score, _worst(equation, spec.name, error, steps + units, shares))
    return Reading(score)


def _slack(
    operation: Operation, comparator: RoundingInterval, made: ExpectedOutput, in_float64: bool
) -> tuple[Array, Array]:
    """By how much one output may be off, per element: by its last rounding, and by those before."""
    nothing = np.zeros(made.shape)
    exact = operation.exact
    fmt = format_of(made.dtype)
    if fmt is None and exact is not None and exact.kind is Kind.SELECTING:
        return nothing, nothing
    units = np.asarray(comparator.limit(made) * unit(comparator, made))
    if in_float64:
        return nothing, units * _FLOAT64_IN_UNITS
    finite = np.nan_to_num(made.reference, nan=0.0, posinf=0.0, neginf=0.0)
    step = np.ones(made.shape) if fmt is None else spacing(finite, fmt)
    return np.asarray(step / 2), units


def _worst(
    equation: Equation, output: str, error: Array, allowance: Array, shares: Array
) -> Breach:
    index = np.unravel_index(int(np.argmax(shares)), shares.shape)
    return Breach(
        relation=equation.relation,
        what=equation.what,
        output=output,
        mismatched=int((shares > 1.0).sum()),
        compared=shares.size,
        index=tuple(int(axis) for axis in index),
        error=float(error[index]),
        allowance=float(allowance[index]),
    )
