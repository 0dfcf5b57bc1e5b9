"""Metamorphic checks: relations between outputs for related inputs. They need no reference.

Every relation is an equation, `sum(factor * back(f(inputs))) = 0`, over calls of one function: a
kernel, or the reference itself (`oracle.equations` says what is allowed). The idea is Chen, Cheung
and Yiu's (Metamorphic testing, HKUST-CS98-01, 1998); DeepREL (FSE 2022) relates functions of a
library to each other so.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.case import Case
from gatecert.oracle.dims import size_of_dim
from gatecert.oracle.equations import Back, Call, Equation, Term, read
from gatecert.oracle.formats import Array
from gatecert.oracle.inputs import Inputs, lay_out, make_inputs
from gatecert.oracle.schema import Operation, SizeSpec, TensorSpec
from gatecert.oracle.streams import Stream
from gatecert.oracle.tolerance import RoundingInterval

_SHIFT = 128.0
"""Its exponential is beyond float32, and that of its negative below."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A kind of relation; `equations(operation, call)` has one for each that is declared."""

    name: str
    summary: str
    equations: Callable[[Operation, Call], Iterator[Equation]]


def _symmetry(operation: Operation, call: Call) -> Iterator[Equation]:
    for dim in operation.relations.symmetric.split():
        order = np.argsort(Stream(f"{call.case.id}#order {dim}").uniform((call.case.sizes[dim],)))
        where = np.argsort(order)  # index v is now at where[v]

        def back(spec: TensorSpec, values: Array, dim: str = dim, where: Any = where) -> Array:
            for axis in _axes(spec, dim):
                values = values.take(where, axis=axis)
            return values

        def change(
            spec: TensorSpec, values: torch.Tensor, dim: str = dim, moved: Any = (order, where)
        ) -> torch.Tensor:
            for axis in _axes(spec, dim):
                values = values.index_select(axis, torch.from_numpy(moved[0]))
            if not spec.is_float and spec.high == dim:
                named = values != spec.marker if spec.marker is not None else values >= 0
                values = torch.where(named, torch.from_numpy(moved[1])[values.clamp(min=0)], values)
            return values

        yield _same("symmetry", f"indices of {dim} change places", call, operation, change, back)


def _independence(operation: Operation, call: Call) -> Iterator[Equation]:
    for dim in operation.relations.independent.split():
        size = call.case.sizes[dim]
        if size < 2:
            continue
        # The last one: tails are there.
        at = size - 1

        def change(spec: TensorSpec, values: torch.Tensor, dim: str = dim) -> torch.Tensor:
            for axis in _axes(spec, dim):
                values = values.narrow(axis, values.shape[axis] - 1, 1)
            return values

        def part(spec: TensorSpec, values: Array, dim: str = dim, at: int = at) -> Array | None:
            axes = _axes(spec, dim)
            for axis in axes:
                values = values.take([at], axis=axis)
            return values if axes else None

        alone = _changed(operation, call, change, {dim: 1})
        what = f"index {at} of {dim} alone"
        yield Equation("independence", what, (Term(alone), Term(call, -1.0, back=part)))


def _padding(operation: Operation, call: Call) -> Iterator[Equation]:
    for dim, value in operation.relations.padded.items():
        size = call.case.sizes[dim]
        more = size // 2 + 3

        def change(
            spec: TensorSpec,
            values: torch.Tensor,
            dim: str = dim,
            more: int = more,
            value: float = value,
        ) -> torch.Tensor:
            for axis in _axes(spec, dim):
                shape = [*values.shape]
                shape[axis] = more
                fill = value if spec.is_float else 0
                values = torch.cat([values, torch.full(shape, fill, dtype=values.dtype)], axis)
            return values

        def back(spec: TensorSpec, values: Array, dim: str = dim, size: int = size) -> Array:
            for axis in _axes(spec, dim):
                values = values.take(range(size), axis=axis)
            return values

        what = f"{more} more of {dim}, filled with {value:g}"
        longer = _changed(operation, call, change, {dim: size + more})
        yield Equation("padding", what, (Term(longer, back=back), Term(call, -1.0)))


def _shift(operation: Operation, call: Call) -> Iterator[Equation]:
    shifted = operation.relations.shifted
    if not shifted:
        return
    by = _SHIFT if zlib.crc32(call.case.id.encode()) % 2 else -_SHIFT

    def far(spec: TensorSpec, values: torch.Tensor) -> torch.Tensor:
        return (values.double() + by).to(values.dtype) if spec.name in shifted else values

    def near(spec: TensorSpec, values: torch.Tensor) -> torch.Tensor:
        # Exactly the shifted values less the constant: they are multiples of a larger step.
        moved = far(spec, values).double() - by
        return moved.to(values.dtype) if spec.name in shifted else values

    what = f"{by:g} added to {', '.join(shifted)}"
    here, there = _changed(operation, call, near), _changed(operation, call, far)
    yield Equation("shift", what, (Term(there), Term(here, -1.0)))


def _scaling(operation: Operation, call: Call) -> Iterator[Equation]:
    for scaling in operation.relations.scalings:
        if scaling.additive:
            continue

        def double(
            spec: TensorSpec, values: torch.Tensor, taken: tuple[str, ...] = scaling.tensors
        ) -> torch.Tensor:
            return 2 * values if spec.name in taken else values

        factors = {
            spec.name: -(2.0 ** scaling.degrees.get(spec.name, 1)) for spec in operation.outputs
        }
        twice = _changed(operation, call, double)
        what = f"{', '.join(scaling.tensors)} doubled"
        yield Equation("scaling", what, (Term(twice), Term(call, factors=factors)))


def _additivity(operation: Operation, call: Call) -> Iterator[Equation]:
    given = dict(call.case.scalars)
    for scaling in operation.relations.scalings:
        holds = all(given[name] == value for name, value in scaling.where.items())
        if not scaling.additive or not holds:
            continue
        # Some values become 2x and -x, the others 0 and x: every part is exact, and neither a
        # square nor a magnitude adds up so.
        parts = []
        for side in (True, False):

            def change(
                spec: TensorSpec,
                values: torch.Tensor,
                side: bool = side,
                taken: tuple[str, ...] = scaling.tensors,
            ) -> torch.Tensor:
                if spec.name not in taken:
                    return values
                stream = Stream(f"{call.case.id}#parts {spec.name}")
                mine = torch.from_numpy(stream.uniform(tuple(values.shape)) < 0.5)
                if side:
                    return torch.where(mine, 2 * values, 0.0)
                return torch.where(mine, -values, values)

            parts.append(Term(_changed(operation, call, change), -1.0))
        what = f"{', '.join(scaling.tensors)} in two parts"
        yield Equation("additivity", what, (Term(call), *parts))


RELATIONS = {
    relation.name: relation
    for relation in (
        Relation("symmetry", "indices of a dim change places, and nothing else", _symmetry),
        Relation(
            "independence",
            "one index of a dim alone gives what it gives among others",
            _independence,
        ),
        Relation("padding", "more of a dim, filled so that it does not count", _padding),
        Relation("shift", "a constant added does not matter", _shift),
        Relation("scaling", "doubled inputs give outputs times a power of two", _scaling),
        Relation("additivity", "the output of a sum is the sum of outputs", _additivity),
    )
}
"""The one registry: what an operation declares (`oracle.relations`) is read by these."""


def start(operation: Operation, case: Case) -> Call:
    """The call that equations of a case start from."""
    return Call(case, make_inputs(operation, case))


def equations(operation: Operation, call: Call) -> tuple[Equation, ...]:
    """Every relation that the operation declares, on one call's inputs."""
    found = [one for kind in RELATIONS.values() for one in kind.equations(operation, call)]
    return tuple(found)


def check_reference(operation: Operation, case: Case) -> None:
    """Hold an operation's own reference to its relations, in float64.

    Raises:
        EnvironmentFailure: one does not hold; reference and declaration cannot both be right.
    """
    for equation in equations(operation, start(operation, case)):
        results = [_reference(operation, term.call) for term in equation.terms]
        found = read(
            operation, equation, results, comparator=RoundingInterval(), in_float64=True
        ).breach
        if found is not None:
            raise EnvironmentFailure(
                f"operation {operation.name!r}: its reference breaks a relation that it declares: "
                f"{found}, by up to {found.error:.3g} at {found.index} (case {case.id}); mend the "
                "reference, or take the relation out of `relations`"
            )


def _reference(operation: Operation, call: Call) -> tuple[torch.Tensor, ...]:
    args = [
        arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
        for arg in call.inputs.args
    ]
    result = operation.call(operation.reference, args)
    return operation.returned(args, result)


def _same(
    relation: str,
    what: str,
    call: Call,
    operation: Operation,
    change: Callable[[TensorSpec, torch.Tensor], torch.Tensor],
    back: Back,
) -> Equation:
    """The changed call's outputs, led back, are the call's own."""
    follow = _changed(operation, call, change)
    return Equation(relation, what, (Term(follow, back=back), Term(call, -1.0)))


def _changed(
    operation: Operation,
    call: Call,
    change: Callable[[TensorSpec, torch.Tensor], torch.Tensor],
    dims: Mapping[str, int] | None = None,
) -> Call:
    """The call with every tensor changed, each in the layout that it had."""
    sizes = {**call.case.sizes, **(dims or {})}
    args: list[Any] = []
    for spec, arg in zip(operation.inputs, call.inputs.args, strict=True):
        if isinstance(spec, TensorSpec) and arg is not None:
            args.append(lay_out(spec, call.case, change(spec, arg)))
        elif isinstance(spec, SizeSpec):
            args.append(size_of_dim(spec.dim, sizes))
        else:
            args.append(arg)
    case = msgspec.structs.replace(call.case, dims=tuple(sizes.items()))
    return Call(case, Inputs(call.inputs.names, tuple(args), ""))


def _axes(spec: TensorSpec, dim: str) -> list[int]:
    return [axis for axis, name in enumerate(spec.dims) if name == dim]
