"""Does a call see that the values behind its arguments changed? What keeps results, or anything
made of the inputs, by their address does not."""

from __future__ import annotations

from gatecert.gates.execution import execute_on
from gatecert.gates.oracle.runs import Call, NoVerdict
from gatecert.lanes import interpreter
from gatecert.lanes.records import GuardPolicy
from gatecert.oracle.inputs import Inputs, fresh_copy

CHECKED = 4
"""Which of the cases: not the first, whose dims are 1, where other values may give the same."""


def blind_to_new_values(call: Call) -> str | None:
    """What is wrong with a second call on the same tensors, their floats halved, or None.

    It has to give the bits of a call on copies of them. Halving keeps signs, order and validity,
    and it is a write that tensors count, so that what is kept together with `_version` is right.

    Raises:
        NoVerdict: the lane failed.
    """
    mine = fresh_copy(call.prepared.inputs)
    _run(call, mine)
    _halve(mine)
    elsewhere = fresh_copy(mine)
    again, apart = _run(call, mine), _run(call, elsewhere)
    if again == apart:
        return None
    return "a call on the same tensors with other values gave other bits than one on copies of them"


def _run(call: Call, inputs: Inputs) -> tuple[str, str]:
    """The bits that a call on exactly these tensors gives, or the error."""
    with interpreter.tuned(call.prepared.tuning):
        run = execute_on(call.entry, inputs, GuardPolicy.STRICT, call.operation)
    if run.failures:
        raise NoVerdict(run.failures[0])
    return run.bits, type(run.error).__name__


def _halve(inputs: Inputs) -> None:
    for tensor in inputs.tensors.values():
        if tensor.is_floating_point():
            # The whole storage at once: elements of an expanded tensor share their memory.
            length = tensor.untyped_storage().nbytes() // tensor.element_size()
            flat = tensor.as_strided((length,), (1,), 0)
            flat.copy_(flat.double() * 0.5)
