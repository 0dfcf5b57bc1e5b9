"""Which operand of a product is its factor: what a formula loses when a factor is forgotten."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.constants import known_number, literal
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.shapes import Typing, integer
from gatecert.operators.facts.softmax import carried, sides

Loss = tuple[cst.CSTNode, cst.CSTNode]
"""The operand that is kept and the one that is lost."""

_LOADS = frozenset({"load", "descriptor_load"})


class _Size(enum.IntEnum):
    """How much of the output one value of an operand takes part in; the smallest is lost."""

    DATA = 4
    """A tile of this program's own."""
    SHARED = 3
    """A tile that all programs share."""
    BROADCAST = 2
    """A tile with one value per row or column."""
    SCALAR = 1
    NUMBER = 0


def lost_factors(typing: Typing, node: cst.CSTNode) -> Iterator[Loss]:
    """How a product or quotient may lose a factor.

    A quotient loses its divisor. A product loses its smaller operand; of equals the one that
    is made from parameters, else the one that is loaded, else the right one, and both where
    both are loaded. A factor that is a product loses its own factors instead. Powers, masks
    and contractions (`sum(a * b)`, which is a dot product) have no factor to lose.
    """
    left, right = sides(node)
    flow = typing.flow
    if isinstance(getattr(node, "operator", None), cst.Divide | cst.DivideAssign):
        if literal(left) is None and literal(right) != 1.0:
            yield left, right
    elif isinstance(node, cst.AugAssign):
        if not flow.same_value(left, right) and not _is_mask(flow, right):
            yield left, right
    elif isinstance(node, cst.BinaryOperation):
        for lost in _lost(typing, node):
            if not _is_chain(lost) and not (_is_product(lost) and _has_factors(typing, lost)):
                yield (right if lost is left else left), lost


def _has_factors(typing: Typing, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and bool(_lost(typing, node))


def _lost(typing: Typing, node: cst.BinaryOperation) -> tuple[cst.CSTNode, ...]:
    """Operands of a product that are its factors."""
    left, right = node.left, node.right
    flow = typing.flow
    if _is_power(flow, left, right) or _is_mask(flow, left) or _is_mask(flow, right):
        return ()
    sizes = _size(typing, left), _size(typing, right)
    if sizes == (_Size.NUMBER, _Size.NUMBER) or 1.0 in (literal(left), literal(right)):
        return ()
    if _is_contraction(typing, node, sizes):
        return ()
    held = flow.consumer(node)
    outer = None if held is None else held[1]
    if (
        isinstance(outer, cst.BinaryOperation)
        and _is_product(outer)
        and not _is_chain(node)
        and node in _lost(typing, outer)
    ):
        return left, right
    if sizes[0] == sizes[1] and _is_chain(left) and outer is not None and _is_product(outer):
        return (right,)  # one of the factors of the whole chain
    if sizes[0] == sizes[1]:
        return _of_equals(flow, left, right, sizes[0])
    smaller, larger = (left, right) if sizes[0] < sizes[1] else (right, left)
    return (smaller, larger) if _is_factor_too(flow, smaller, larger, max(sizes)) else (smaller,)


def _of_equals(
    flow: Dataflow, left: cst.CSTNode, right: cst.CSTNode, size: _Size
) -> tuple[cst.CSTNode, ...]:
    given = _is_given(flow, left), _is_given(flow, right)
    if given[0] != given[1]:
        return (left,) if given[0] else (right,)
    loaded = _is_loaded(flow, left), _is_loaded(flow, right)
    if all(loaded):
        return left, right
    if loaded[0] and size is not _Size.DATA:
        return (left,)
    return (right,)


def _is_factor_too(flow: Dataflow, smaller: cst.CSTNode, larger: cst.CSTNode, size: _Size) -> bool:
    """Whether the larger operand may as well be the one that is forgotten.

    A scalar parameter times a number, in a kernel, where a parameter is never the data; a
    weight of every row or column times a statistic of other data.
    """
    if size is _Size.SCALAR:
        return _is_given(flow, larger) and not _returns(flow)
    if size is _Size.DATA or not _is_loaded(flow, larger):
        return False
    statistics_of = _buffers(flow, smaller)
    return bool(statistics_of) and not statistics_of & _buffers(flow, larger)


def _buffers(flow: Dataflow, node: cst.CSTNode) -> frozenset[str]:
    """Pointer parameters of the loads that a value is computed from."""
    kinds = flow.parameters()
    return frozenset(
        definition.name
        for load in (node, *flow.backward(node))
        if flow.call_name(load) in _LOADS
        for role, address in flow.operands(load)
        if role is Role.ADDRESS
        for name in (address, *flow.backward(address))
        if isinstance(name, cst.Name)
        for definition in flow.reaching(name)
        if kinds.get(definition.name) is ParameterKind.POINTER
    )


def _size(typing: Typing, node: cst.CSTNode) -> _Size:
    if known_number(typing.flow, node) is not None:
        return _Size.NUMBER
    shape = typing.safe_shape(node)
    if shape == ():
        return _Size.SCALAR
    if shape is not None and "1" in shape:
        return _Size.BROADCAST
    return _Size.DATA if _depends_on_program(typing.flow, node) else _Size.SHARED


def _depends_on_program(flow: Dataflow, node: cst.CSTNode) -> bool:
    seen: set[cst.CSTNode] = set()
    queue = [node]
    while queue:
        current = queue.pop()
        if flow.call_name(current) == "program_id":
            return True
        if current not in seen:
            seen.add(current)
            queue.extend(n for _, n in flow.inputs(current))
    return False


def _is_given(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is made from parameters and numbers alone."""
    parts = {node, *flow.backward(node)}
    names = [n for n in parts if isinstance(n, cst.Name)]
    definitions = {d for name in names for d in flow.reaching(name)}
    computed = any(
        flow.call_name(n) in (*_LOADS, "arange", "program_id", "zeros", "full", "dot")
        or flow.call_name(n).startswith("helper.")
        for n in parts
    )
    return not computed and any(d.kind is DefinitionKind.PARAMETER for d in definitions)


def _is_loaded(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value comes from memory as it is."""
    return any(flow.call_name(n) in _LOADS for n in carried(flow, node, through_maximum=False))


def _returns(flow: Dataflow) -> bool:
    """Whether the function hands values back, as only functions that kernels call do."""
    return any(
        (held := flow.consumer(n)) is not None and isinstance(held[1], cst.Return)
        for n in flow.expressions()
    )


def _is_contraction(typing: Typing, node: cst.BinaryOperation, sizes: tuple[_Size, _Size]) -> bool:
    """Whether a product is summed at once along an axis of both operands."""
    held = typing.flow.consumer(node)
    if held is None or not isinstance(held[1], cst.Call):
        return False
    if typing.flow.call_name(held[1]) != "sum":
        return False
    if sizes == (_Size.DATA, _Size.DATA):
        return True
    axis = typing.flow.argument(held[1], "axis")
    position = None if axis is None else integer(axis.value)
    shapes = typing.safe_shape(node.left), typing.safe_shape(node.right)
    rank = max(len(shape or ()) for shape in shapes)
    if position is None or rank < 2 or not -rank <= position < rank:
        return False
    # Counted from the right, as shapes are broadcast.
    position -= rank if position >= 0 else 0
    return all(
        shape is not None and -position <= len(shape) and shape[position] != "1" for shape in shapes
    )


def _is_product(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply)


def _is_chain(node: cst.CSTNode) -> bool:
    """Whether an operand is itself a product, whose own factors are lost one by one."""
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Multiply | cst.Divide)
        and not node.lpar
    )


def _is_power(flow: Dataflow, left: cst.CSTNode, right: cst.CSTNode) -> bool:
    """Whether the product is a power (`x * x * x`): losing one `x` is no lost factor."""
    operands = [left]
    while operands:
        operand = operands.pop()
        if flow.same_value(operand, right) or flow.source(operand) == flow.source(right):
            return True
        if isinstance(operand, cst.BinaryOperation) and isinstance(operand.operator, cst.Multiply):
            operands += [operand.left, operand.right]
    return False


def _is_mask(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a factor is a condition turned into 0 or 1."""
    return any(isinstance(n, cst.Comparison) for n in carried(flow, node))
