"""What syntax says about the type of a loaded value."""

from __future__ import annotations

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.language import dotted

_OF_FLOATS = frozenset(
    {"exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid",
     "softmax", "div"}
)  # fmt: skip


def is_float(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether the value is surely used as a floating-point number.

    It is where it is cast to one, divided, combined with a literal that has a point, given to a
    function of floats, or contracted in a kernel that spells no integer tile out.
    """
    integers = _integer_tiles(flow)
    for reached in (node, *flow.forward(node)):
        held = flow.consumer(reached)
        step = held[1] if held is not None else None
        name = flow.call_name(step) if step is not None else ""
        if name in _OF_FLOATS or (name == "dot" and not integers):
            return True
        if name == "to" and isinstance(step, cst.Call) and _mentions(step, "float"):
            return True
        if isinstance(step, cst.BinaryOperation | cst.AugAssign) and _arithmetic_of_floats(step):
            return True
    return False


def _arithmetic_of_floats(node: cst.BinaryOperation | cst.AugAssign) -> bool:
    if isinstance(node.operator, cst.Divide | cst.DivideAssign):
        return True
    sides = (node.value,) if isinstance(node, cst.AugAssign) else (node.left, node.right)
    return any(isinstance(side, cst.Float) for side in sides)


def _integer_tiles(flow: Dataflow) -> bool:
    return any(_mentions(call, "int") for call in flow.calls("zeros", "full", "dot"))


def _mentions(call: cst.Call, kind: str) -> bool:
    """Whether an argument of the call is a type of this kind (`tl.float32`, `tl.int32`)."""
    types = ((dotted(arg.value) or "").split(".")[-1] for arg in call.args)
    return any(name.startswith(kind) for name in types)
