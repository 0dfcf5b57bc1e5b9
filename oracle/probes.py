"""Questions put to an operation before a gate rests on it: each can show that it lies.

A reference that draws numbers, a second formulation that disagrees, a claim of exactness that does
not hold, results that say nothing, a tolerance that lets anything pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.answers import ask, check_results
from gatecert.oracle.case import Case
from gatecert.oracle.comparators import Comparator, judge
from gatecert.oracle.exact import Kind
from gatecert.oracle.expectation import Expected, ExpectedOutput, expect, reference_results
from gatecert.oracle.formats import format_of, round_to
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.schema import Operation
from gatecert.oracle.tolerance import growth_factor

_FLOAT64_UNIT = 2.0**-53
_ROUNDINGS = 64
"""How many roundings in float64 two formulations may be apart, for each magnitude."""
_FLOOR = 2.0**-125


def check_operation(operation: Operation, case: Case) -> None:
    """Put the questions that one case answers.

    Raises:
        EnvironmentFailure: the operation is not what it declares.
    """
    inputs = make_inputs(operation, case)
    first = reference_results(operation, case, inputs)
    _check_repeats(operation, case, first, reference_results(operation, case, inputs))
    if operation.second is not None:
        _check_second(operation, case, inputs)
    if operation.exact is not None and operation.exact.kind is Kind.SELECTING:
        _check_selecting(operation, case, inputs, first)


def check_it_can_fail(
    operation: Operation,
    prepared: Sequence[tuple[Case, Inputs, Expected]],
    comparators: Sequence[Comparator],
) -> None:
    """Some case must say something of each output, and reject one that is twice too large.

    Raises:
        EnvironmentFailure: all values are NaN on finite inputs, or nothing is rejected.
    """
    for name in dict.fromkeys(one.name for *_, made in prepared for one in made.outputs):
        seen = [
            (case, inputs, one, comparator)
            for (case, inputs, made), comparator in zip(prepared, comparators, strict=True)
            for one in made.outputs
            if one.name == name and one.reference.size
        ]
        finite = [one for _, inputs, one, _ in seen if _is_finite(inputs)]
        if finite and all(np.isnan(one.reference.astype(np.float64)).all() for one in finite):
            raise EnvironmentFailure(
                f"operation {operation.name!r}: its reference is NaN in every place of {name!r} on "
                f"each of {len(finite)} cases with finite inputs"
            )
        scaled = [(one, comparator) for _, _, one, comparator in seen if _is_scalable(one)]
        if scaled and all(judge(by, one, _doubled(one)).passed for one, by in scaled):
            raise EnvironmentFailure(
                f"operation {operation.name!r}: {name!r} may be twice too large on each of "
                f"{len(scaled)} cases, so that anything passes: its shadow is too large. It is the "
                "sum of the magnitudes that rounding acts on, in units of the output; without one, "
                "noise on the reference stands for it"
            )


def _check_repeats(
    operation: Operation,
    case: Case,
    first: tuple[torch.Tensor, ...],
    again: tuple[torch.Tensor, ...],
) -> None:
    for spec, one, two in zip(operation.outputs, first, again, strict=False):
        if not torch.equal(torch.nan_to_num(one), torch.nan_to_num(two)):
            raise EnvironmentFailure(
                f"operation {operation.name!r}: two calls of its reference on case {case.id} gave "
                f"other values of {spec.name!r}; it may depend on its arguments alone, and draws "
                "random numbers from a Seed()"
            )


def _check_second(operation: Operation, case: Case, inputs: Inputs) -> None:
    assert operation.second is not None
    made = expect(operation, case, inputs)
    args = [
        arg.to(torch.float64 if arg.is_floating_point() else torch.int64, copy=True)
        if isinstance(arg, torch.Tensor)
        else arg
        for arg in inputs.args
    ]
    answer = ask(operation, "second formulation", operation.second, args, case)
    found = operation.returned(inputs.args, answer)
    check_results(operation, case, inputs.args, found)
    for one, result in zip(made.outputs, found, strict=True):
        second = result.detach().double().numpy()
        growth = growth_factor("linear", one.reduction_length)
        allowed = _ROUNDINGS * _FLOAT64_UNIT * growth * (one.shadow + np.abs(second)) + _FLOOR
        with np.errstate(invalid="ignore"):
            apart = np.abs(one.reference - second)
        same = (one.reference == second) | (np.isnan(one.reference) & np.isnan(second))
        wrong = ~same & ~(apart <= allowed)
        if wrong.any():
            at = tuple(int(place) for place in np.argwhere(wrong)[0])
            raise EnvironmentFailure(
                f"operation {operation.name!r}: its reference and its second formulation disagree "
                f"on case {case.id}: {one.name}{list(at)} is {one.reference[at]} and {second[at]}"
            )


def _check_selecting(
    operation: Operation, case: Case, inputs: Inputs, results: tuple[torch.Tensor, ...]
) -> None:
    assert operation.exact is not None
    there = [0.0]
    for tensor in inputs.tensors.values():
        if tensor.is_floating_point():
            there += tensor.double().flatten().tolist()
    for spec, result in zip(operation.outputs_of(inputs.args), results, strict=True):
        named = not operation.exact.outputs or spec.name in operation.exact.outputs
        if not named or not result.is_floating_point() or not spec.is_float:
            continue
        made = ~np.isin(np.nan_to_num(result.numpy()), np.nan_to_num(np.array(there)))
        if made.any():
            at = tuple(int(place) for place in np.argwhere(made)[0])
            raise EnvironmentFailure(
                f"operation {operation.name!r} declares exact=selecting(), but {spec.name}"
                f"{list(at)} = {float(result[at])} on case {case.id} is none of its inputs"
            )


def _is_finite(inputs: Inputs) -> bool:
    return all(
        bool(tensor.isfinite().all())
        for tensor in inputs.tensors.values()
        if tensor.is_floating_point() and tensor.element_size() > 1
    )


def _is_scalable(one: ExpectedOutput) -> bool:
    """Is it a float with some value that can be doubled?"""
    fmt = format_of(one.dtype)
    if fmt is None:
        return False
    size = np.abs(one.reference)
    return bool(((size > fmt.smallest_normal) & (size < fmt.largest / 4)).any())


def _doubled(one: ExpectedOutput) -> torch.Tensor:
    fmt = format_of(one.dtype)
    assert fmt is not None
    return torch.from_numpy(round_to(2.0 * one.reference, fmt)).to(torch.float64)
