"""What a reference or a shadow gives, held against what its operation declares.

A mistake there makes a gate that accepts, or rejects, everything. None of it is the kernel's doing:
all of it is an `EnvironmentFailure`, which no verdict follows from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gatecert.errors import EnvironmentFailure, described
from gatecert.oracle.case import Case
from gatecert.oracle.formats import Array
from gatecert.oracle.ranges import integer_range
from gatecert.oracle.schema import Operation, Reference
from gatecert.oracle.specs import TensorSpec


def ask(
    operation: Operation, what: str, function: Reference, args: Sequence[Any], case: Case
) -> Any:
    """Call a function of the operation; `what` is its name in an error.

    Raises:
        EnvironmentFailure: it raised.
    """
    try:
        return operation.call(function, args)
    except EnvironmentFailure as error:
        raise EnvironmentFailure(f"operation {operation.name!r}: {error}") from error
    except Exception as error:
        raise EnvironmentFailure(
            f"operation {operation.name!r}: its {what} raised {described(error)} on case {case.id}"
        ) from error


def check_results(
    operation: Operation, case: Case, args: Sequence[Any], results: Sequence[Any]
) -> None:
    """Are there as many results as declared, of the declared shapes and kinds?

    Raises:
        EnvironmentFailure: it names the output, what it is and what it has to be.
    """
    specs = operation.outputs_of(args)
    shapes = [tuple(r.shape) if isinstance(r, torch.Tensor) else r for r in results]
    declared = [spec.shape(case.sizes) for spec in specs]
    if shapes != declared:
        shown = [shape if isinstance(shape, tuple) else type(shape).__name__ for shape in shapes]
        raise EnvironmentFailure(
            f"operation {operation.name!r}: its reference returned shapes {shown} on case "
            f"{case.id}, its annotation says {declared}"
        )
    for spec, result in zip(specs, results, strict=True):
        wrong = _wrong_float(result) if spec.is_float else _wrong_integers(spec, case, result)
        if wrong:
            raise EnvironmentFailure(
                f"operation {operation.name!r}: its reference returned {wrong} for {spec.name!r} "
                f"on case {case.id}"
            )


def _wrong_float(result: torch.Tensor) -> str:
    kind = str(result.dtype).removeprefix("torch.")
    if kind == "float64":
        return ""
    if result.is_floating_point():
        return f"{kind}, which rounds as a kernel does; it is to compute in the float64 it is given"
    return f"{kind} where floating-point numbers are declared; return `.double()` of it"


def _wrong_integers(spec: TensorSpec, case: Case, result: torch.Tensor) -> str:
    """Float results stand for integers that a kernel rounds to."""
    kind = spec.dtype(case.dtype)
    values = result.numpy()
    if result.is_floating_point():
        if not np.isfinite(values).all():
            return f"NaN or infinity, which {kind} has not,"
        values = np.rint(values)
    smallest, largest = integer_range(kind)
    beyond = values[(values < smallest) | (values > largest)]
    if not beyond.size:
        return ""
    return (
        f"{int(beyond.flat[0])}, which {kind} cannot hold ({smallest} to {largest}), so that a "
        f"kernel wraps or clamps: narrow the inputs, clamp there too, or declare another kind,"
    )


def check_magnitudes(
    operation: Operation, what: str, case: Case, output: str, magnitudes: Array, reference: Any
) -> None:
    """A shadow is a finite magnitude wherever the reference is finite.

    Raises:
        EnvironmentFailure: it is NaN, infinite or negative somewhere: no error would be too large.
    """
    wrong = np.isfinite(reference) & ~(np.isfinite(magnitudes) & (magnitudes >= 0.0))
    if wrong.any():
        at = tuple(int(place) for place in np.argwhere(wrong)[0])
        raise EnvironmentFailure(
            f"operation {operation.name!r}: its {what} is {magnitudes[at]} at {output}{list(at)} "
            f"on case {case.id}, where the reference is {reference[at]}; it has to be a finite sum "
            "of magnitudes"
        )
