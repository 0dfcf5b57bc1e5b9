"""Running sums of a kernel: where they start, where they are added to, what they are made from."""

from __future__ import annotations

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.datatypes import is_float
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.language import Role, dotted


def updates(flow: Dataflow, start: Definition) -> tuple[Definition, ...]:
    """Definitions in loops that add to the running sum; none if one does anything else.

    A product with a factor (a rescale) may stand between the sums.
    """
    found: list[Definition] = []
    for definition in flow.definitions(start.name):
        if definition is start:
            continue
        value = definition.value
        if not flow.loops(definition.node):
            continue
        if value is None or definition.element is not None:
            return ()
        if not reads(flow, value, start.name):
            return ()
        found.append(definition)
    adds = [d for d in found if d.value is not None and _adds(flow, d.value, start.name)]
    return tuple(found) if adds else ()


def _adds(flow: Dataflow, value: cst.CSTNode, name: str) -> bool:
    operator = getattr(value, "operator", None)
    if isinstance(operator, cst.Add | cst.AddAssign):
        return True
    acc = flow.argument(value, "acc") if isinstance(value, cst.Call) else None
    return acc is not None and bool(reads(flow, acc.value, name))


def reads(flow: Dataflow, node: cst.CSTNode, name: str) -> list[cst.Name]:
    """Reads of a name in an expression."""
    found = [node] if isinstance(node, cst.Name) and node.value == name else []
    for _, part in flow.operands(node):
        found += reads(flow, part, name)
    return found


def summed_by_dot(flow: Dataflow, term: cst.CSTNode, name: str) -> cst.CSTNode | None:
    """The running sum where a dot adds to it, which it does in its own type."""
    acc = flow.argument(term, "acc") if isinstance(term, cst.Call) else None
    if acc is None or not isinstance(acc.value, cst.Name) or acc.value.value != name:
        return None
    return acc.value


def element_type(flow: Dataflow, updates: tuple[Definition, ...]) -> str | None:
    """`x_ptr.dtype.element_ty` of the first pointer whose floats the sum is made from.

    One whose values are cast to float32 is known to hold something else.
    """
    loads = [
        node
        for update in updates
        if update.value is not None
        for node in flow.backward(update.value)
        # What a sum of floats is made from by a contraction is floats, too.
        if flow.call_name(node) == "load" and (_contracted(flow, node) or is_float(flow, node))
    ]
    cast = [load for load in loads if _is_cast(flow, load)]
    pointers = {name for load in cast or loads for name in _pointers(flow, load)}
    kinds = flow.parameters()
    first = next((n for n in kinds if n in pointers), None)
    return None if first is None else f"{first}.dtype.element_ty"


def _is_cast(flow: Dataflow, load: cst.CSTNode) -> bool:
    return any(
        flow.call_name(copy) == "to"
        and isinstance(copy, cst.Call)
        and (dtype := flow.argument(copy, "dtype")) is not None
        and is_float32(dtype.value)
        for copy in flow.copies(load)
    )


def _contracted(flow: Dataflow, load: cst.CSTNode) -> bool:
    return any(flow.call_name(n) == "dot" for n in flow.forward(load))


def _pointers(flow: Dataflow, load: cst.CSTNode) -> set[str]:
    kinds = flow.parameters()
    return {
        definition.name
        for role, address in flow.operands(load)
        if role is Role.ADDRESS
        for name in (address, *flow.backward(address))
        if isinstance(name, cst.Name)
        for definition in flow.reaching(name)
        if definition.kind is DefinitionKind.PARAMETER
        and kinds.get(definition.name) is ParameterKind.POINTER
    }


def is_float32(dtype: cst.BaseExpression) -> bool:
    """Whether a type is spelled `tl.float32`."""
    name = dotted(dtype)
    return name is not None and "." in name and name.split(".")[-1] == "float32"
