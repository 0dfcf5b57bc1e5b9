"""What a correct kernel must return: the fp64 reference of a case, and its shadows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.answers import ask, check_magnitudes, check_results
from gatecert.oracle.case import Case
from gatecert.oracle.eager import eager_outputs
from gatecert.oracle.exact import check_exactness, exact_places
from gatecert.oracle.formats import Array, format_of, to_float64
from gatecert.oracle.inputs import Inputs
from gatecert.oracle.schema import Operation
from gatecert.oracle.shadows import noise_shadow

UNIT_OF_INTERMEDIATE = {"float16": 2.0**-11, "tf32": 2.0**-11, "bfloat16": 2.0**-8}
"""Roundoff of a declared lower-precision step."""


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """One output of one case.

    `reference` holds unrounded float64 values (int64 for integer outputs that nothing is rounded
    to: those must be equal). `shadow` has the
    reference's shape: the magnitude that one fp32 rounding error acts on; `mid_shadow` the
    same for the declared lower-precision step, whose roundoff is `mid_unit` (0: none).
    `baseline` is what torch itself makes of it in the tested dtype, where that was asked for.
    """

    name: str
    dtype: str
    reference: np.ndarray[Any, Any]
    shadow: Array
    mid_shadow: Array
    mid_unit: float
    reduction_length: int
    contraction: bool
    baseline: Array | None = None
    exact: npt.NDArray[np.bool_] | None = None
    """Elements that must be equal, since no rounding comes before the last (`oracle.exact`)."""

    @property
    def counted(self) -> bool:
        """Whether it is an integer that no rounding can move (an index, a count)."""
        return self.reference.dtype.kind in "iub"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that the output must have."""
        return tuple(self.reference.shape)


@dataclass(frozen=True, slots=True)
class Expected:
    """All outputs of one case, in order."""

    outputs: tuple[ExpectedOutput, ...]


def expect(
    operation: Operation,
    case: Case,
    inputs: Inputs,
    *,
    intermediate: str | None = None,
    baseline: bool = False,
) -> Expected:
    """Compute the reference in float64 from the inputs as rounded to the tested dtype.

    `intermediate` declares a step in lower precision than fp32: `float16`, `bfloat16`,
    `tf32`, or `input` for the case's own dtype (nothing for float32). `baseline` asks for
    torch's own result too.

    Raises:
        EnvironmentFailure: the reference or a shadow raised or gave what it may not
            (`oracle.answers`), or torch cannot compute the operation in the tested dtype.
    """
    results = reference_results(operation, case, inputs)
    made = describe(operation, case, inputs, results, intermediate=intermediate, baseline=baseline)
    args = [_exact(arg) for arg in inputs.args]
    for one in made.outputs:
        for what, shadow in (("shadow", one.shadow), ("mid_shadow", one.mid_shadow)):
            check_magnitudes(operation, what, case, one.name, shadow, one.reference)
        check_exactness(operation, case, args, one.name, one.reference, one.shadow, one.exact)
    return made


def reference_results(operation: Operation, case: Case, inputs: Inputs) -> tuple[torch.Tensor, ...]:
    """What the reference returns for copies of the inputs; raises as `expect`."""
    args = [_exact(arg) for arg in inputs.args]
    results = operation.returned(args, ask(operation, "reference", operation.reference, args, case))
    check_results(operation, case, inputs.args, results)
    return results


def describe(
    operation: Operation,
    case: Case,
    inputs: Inputs,
    results: tuple[torch.Tensor, ...],
    *,
    intermediate: str | None = None,
    baseline: bool = False,
) -> Expected:
    """Float64 results with the magnitudes that rounding acts on where they are right.

    The results need not be those of the reference: a kernel's own have magnitudes too.
    """
    exact = [_exact(arg) for arg in inputs.args]
    step = case.dtype if intermediate == "input" else intermediate
    mid_unit = UNIT_OF_INTERMEDIATE.get(step, 0.0) if step is not None else 0.0
    shadows = _shadows(operation, case, exact, results)
    mids = _mid_shadows(operation, case, exact, results) if mid_unit else [0 * s for s in shadows]
    own = eager_outputs(operation, case.dtype, inputs.args) if baseline else [None] * len(results)
    equal = exact_places(operation, case, exact, shadows, step)
    return Expected(
        tuple(
            ExpectedOutput(
                name=spec.name,
                dtype=spec.dtype(case.dtype),
                reference=_held(result.contiguous().numpy(), spec.dtype(case.dtype)),
                shadow=shadow,
                mid_shadow=mid,
                mid_unit=mid_unit,
                reduction_length=operation.reduction_length(case.sizes),
                contraction=operation.contraction,
                baseline=None if value is None else to_float64(value),
                exact=places,
            )
            for spec, result, shadow, mid, value, places in zip(
                operation.outputs_of(inputs.args), results, shadows, mids, own, equal, strict=True
            )
        )
    )


def _held(reference: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The reference, its values beyond the largest of a format that saturates at that."""
    fmt = format_of(dtype)
    if fmt is None or not fmt.saturates:
        return reference
    held: np.ndarray[Any, Any] = np.clip(reference, -fmt.largest, fmt.largest)
    return held


def _exact(arg: Any) -> Any:
    """A copy in float64 or int64: what a reference writes into reaches no kernel."""
    if not isinstance(arg, torch.Tensor):
        return arg
    wide = torch.float64 if arg.is_floating_point() else torch.int64
    return arg.to(wide, copy=True).contiguous()


def _shadows(
    operation: Operation, case: Case, exact: list[Any], results: tuple[torch.Tensor, ...]
) -> list[Array]:
    if operation.shadow is None:
        return noise_shadow(operation, case, exact, results)
    return _evaluate(operation, case, "shadow", operation.shadow, exact, results)


def _mid_shadows(
    operation: Operation, case: Case, exact: list[Any], results: tuple[torch.Tensor, ...]
) -> list[Array]:
    if operation.mid_shadow is None:
        return [np.abs(to_float64(_finite(result))) for result in results]
    return _evaluate(operation, case, "mid_shadow", operation.mid_shadow, exact, results)


def _evaluate(
    operation: Operation,
    case: Case,
    what: str,
    shadow: Any,
    exact: list[Any],
    results: tuple[torch.Tensor, ...],
) -> list[Array]:
    """A shadow formula on finite parts only: an infinite or NaN input is no rounding error."""
    there = {s.name: part for s, part in zip(operation.outputs_of(exact), results, strict=True)}
    outputs = tuple(
        _finite(there[spec.name]) if spec.name in there else None for spec in operation.outputs
    )
    clean = [_finite(arg) if isinstance(arg, torch.Tensor) else arg for arg in exact]
    y = outputs[0] if len(outputs) == 1 else outputs
    answer = ask(operation, what, lambda *t, **s: shadow(y, *t, **s), clean, case)
    found = operation.returned(exact, answer)
    try:
        return [
            to_float64(torch.as_tensor(part).expand(result.shape))
            for part, result in zip(found, results, strict=True)
        ]
    except (RuntimeError, TypeError, ValueError):
        shapes = [tuple(part.shape) if isinstance(part, torch.Tensor) else part for part in found]
        raise EnvironmentFailure(
            f"operation {operation.name!r}: its {what} returned shapes {shapes} on case {case.id}, "
            f"for results of shapes {[tuple(result.shape) for result in results]}"
        ) from None


def _finite(values: torch.Tensor) -> torch.Tensor:
    if not values.is_floating_point():
        return values
    return torch.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
