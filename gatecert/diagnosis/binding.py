"""Captured calls as cases of the operation, with the float64 reference of their own arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.values import Value, contents_of, made, tensors_in
from gatecert.launch_log import LaunchRecord
from gatecert.oracle.case import Case
from gatecert.oracle.expectation import Expected, expect
from gatecert.oracle.inputs import Inputs
from gatecert.oracle.operations import Operation
from gatecert.oracle.schema import SizeSpec, TensorSpec
from gatecert.recorded_calls import CallCounts, look_at


class BoundCall(msgspec.Struct, frozen=True):
    """A call as a log of production has it, and the entry's own names for its arguments."""

    record: LaunchRecord
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call, the case that it is like (its values are the call's own) and what is right."""

    call: Kept
    case: Case | None = None
    expected: Expected | None = None


def bound_calls(
    entry: Callable[..., Any], operation: str, calls: Sequence[Kept]
) -> tuple[BoundCall, ...]:
    """Calls bound to the operation's schema, in a process that has the entry."""
    counts = CallCounts(entry, operation, "", "")
    try:
        parameters = tuple(inspect.signature(entry).parameters)
    except (TypeError, ValueError):
        parameters = ()
    found = []
    for call in calls:
        tensors: dict[int, torch.Tensor] = {}
        key = tuple(look_at(made(arg, tensors)) for arg in call.args)
        named = ((name, look_at(made(arg, tensors))) for name, arg in call.kwargs.items.items())
        found.append(BoundCall(counts.record((*key, *named), 1), parameters))
    return tuple(found)


def known_call(
    call: Kept, bound: BoundCall, operation: Operation, intermediate: str | None
) -> KnownCall:
    """The call with what is right of it, as far as it fits the operation."""
    record = bound.record
    if record.misfit:
        return KnownCall(call)
    named = _by_name(call, bound.parameters, operation)
    case = Case(
        operation.name,
        tuple((dim, record.dims[dim]) for dim in operation.dims),
        record.dtype,
        record.layout,
        _recipe(named, operation),
        tuple((spec.name, record.scalars[spec.name]) for spec in operation.scalars),
        absent=tuple(record.absent),
    )
    try:
        args = tuple(_argument(spec, named, case) for spec in operation.inputs)
        inputs = Inputs(tuple(spec.name for spec in operation.inputs), args, "")
        return KnownCall(call, case, expect(operation, case, inputs, intermediate=intermediate))
    except Exception:  # a reference that cannot take what the gate gives says nothing of it
        return KnownCall(call, case)


def _by_name(call: Kept, parameters: Sequence[str], operation: Operation) -> dict[str, Value]:
    names = [spec.name for spec in operation.inputs]
    renamed = dict(zip(parameters, names, strict=False))
    placed = dict(zip(names, call.args, strict=False))
    return placed | {renamed.get(name, name): value for name, value in call.kwargs.items.items()}


def _argument(spec: Any, named: Mapping[str, Value], case: Case) -> Any:
    value = made(named[spec.name], {}) if spec.name in named else None
    if isinstance(spec, TensorSpec):
        return value
    if isinstance(spec, SizeSpec):
        return case.sizes[spec.dim] if value is None else value
    if value is None:
        value = dict(case.scalars)[spec.name]
    return int(value) if spec.scalar.integer else value


def _recipe(named: Mapping[str, Value], operation: Operation) -> str:
    """The recipe that the values are like, as far as that matters to what others would show."""
    floats = [
        contents_of(tensor).double()
        for value in named.values()
        for tensor in tensors_in(value)
        if tensor.dtype in ("float32", "float16", "bfloat16")
    ]
    signed = not floats or bool(floats[0].numel() and floats[0].min() < 0)
    recipe = "normal" if signed else "uniform01"
    return recipe if recipe in operation.recipes else operation.recipes[0]
