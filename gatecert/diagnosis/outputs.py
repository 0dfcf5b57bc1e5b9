"""Which of what a call left are its outputs: what it returned, and arguments that it writes to."""

from __future__ import annotations

from collections.abc import Collection

from gatecert.diagnosis.calls import Kept
from gatecert.diagnosis.replaying import Ran
from gatecert.diagnosis.values import PlainValue, TensorValue, Value, tensors_in
from gatecert.oracle.schema import Operation

_NOTHING = PlainValue(None)


def outputs_of(call: Kept, ran: Ran, written: Collection[int]) -> tuple[Value, ...]:
    """The arguments numbered so as the call left them, then what it returned beside them."""
    given = arguments_of(call)
    left = tuple(ran.changed.get(number, given[number]) for number in sorted(written))
    returned = (
        one
        for one in ran.results
        if one != _NOTHING and not (isinstance(one, TensorValue) and one.number in written)
    )
    return (*left, *returned)


def written_by(call: Kept, ran: Ran, operation: Operation | None) -> frozenset[int]:
    """The numbers of the arguments that the original writes its results to: those that the
    operation names, or without one all that it changed."""
    if operation is None or call.kernel:
        return frozenset(ran.changed)
    names = {*operation.in_place, *operation.destinations}
    given = dict(zip((spec.name for spec in operation.inputs), call.args, strict=False))
    named = {**given, **call.kwargs.items}
    return frozenset(
        tensor.number
        for name, value in named.items()
        if name in names
        for tensor in tensors_in(value)
    )


def arguments_of(call: Kept) -> dict[int, TensorValue]:
    """The tensors that a call was given, by number."""
    values = (*call.args, *call.kwargs.items.values())
    return {tensor.number: tensor for value in values for tensor in tensors_in(value)}
