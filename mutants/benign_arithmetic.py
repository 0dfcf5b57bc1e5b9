"""Benign rewrites of single expressions."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.language import Role, dotted
from gatecert.operators.facts.shapes import Kind, Typing
from gatecert.operators.records import Edit

_LOG2_E = "1.4426950408889634"
_LN_2 = "0.6931471805599453"
_NEVER_COMMUTED = frozenset({Role.ADDRESS, Role.MASK, Role.META, Role.CONTROL, Role.PAD})
_TENSORS = frozenset({"load", "dot", "zeros", "full", "sum", "max", "exp", "exp2"})


def exp_by_exp2(flow: Dataflow) -> list[Edit]:
    """Every `tl.exp(x)` as `tl.exp2(x * log2(e))`, which is how a GPU computes it."""
    return _other_exponential(flow, "exp", "exp2", _LOG2_E)


def exp2_by_exp(flow: Dataflow) -> list[Edit]:
    """Every `tl.exp2(x)` as `tl.exp(x * log(2))`."""
    return _other_exponential(flow, "exp2", "exp", _LN_2)


def _other_exponential(flow: Dataflow, old: str, new: str, factor: str) -> list[Edit]:
    module = flow.kernel.module
    edits: list[Edit] = []
    for call in flow.calls(old):
        if not _is_language_function(flow, call, old) or len(call.args) != 1:
            continue
        assert isinstance(call.func, cst.Attribute)
        edits.append(Edit(*module.span(call.func.attr), new))
        start, end = module.span(call.args[0].value)
        edits += (Edit(start, start, "("), Edit(end, end, f") * {factor}"))
    return edits


def sums_in_pairs(flow: Dataflow) -> list[Edit]:
    """Every `tl.sum(x, axis=k)` over neighbours first and then over their sums.

    Only where the tile's shape is plain from source. Half of a power of two n is written
    `(n + 1) // 2`, which leaves a tile of one alone.
    """
    module, typing = flow.kernel.module, Typing(flow)
    edits: list[Edit] = []
    for call in flow.calls("sum"):
        terms, axis = flow.argument(call, "input"), flow.argument(call, "axis")
        if terms is None or axis is None or not _is_language_function(flow, call, "sum"):
            continue
        shape, position = typing.shape(terms.value), _literal_axis(axis.value)
        if not shape or position is None or not -len(shape) <= position < len(shape):
            continue
        if typing.kind(terms.value) is not Kind.FLOAT:
            continue
        assert isinstance(call.func, cst.Attribute)
        language, position = module.source(call.func.value), position % len(shape)
        half = f"({shape[position]} + 1) // 2"
        split = [half, f"({shape[position]}) // ({half})"]
        dims = ", ".join([*shape[:position], *split, *shape[position + 1 :]])
        start, end = module.span(terms.value)
        edits.append(Edit(start, start, f"{language}.sum({language}.reshape("))
        edits.append(Edit(end, end, f", [{dims}]), axis={position + 1})"))
    return edits


def swapped_operands(flow: Dataflow) -> list[Edit]:
    """Floating-point sums and products of the value path with their operands swapped.

    Only outermost ones are touched where one lies within another, so that edits never overlap.
    """
    module = flow.kernel.module
    typing = Typing(flow)
    edits: list[Edit] = []
    done = -1

    def outermost_first(node: cst.BinaryOperation) -> tuple[int, int]:
        start, end = module.span(node)
        return start, -end

    for node in sorted(_binary(flow), key=outermost_first):
        left, right = module.span(node.left), module.span(node.right)
        if left[0] < done or not _may_swap(flow, typing, node):
            continue
        first = module.text[right[0] : right[1]]
        second = module.text[left[0] : left[1]]
        if isinstance(node.left, cst.BinaryOperation) and not node.left.lpar:
            second = f"({second})"  # `a * b + c`, `a + b + c`: keep the grouping
        edits += (Edit(*left, first), Edit(*right, second))
        done = right[1]
    return edits


def regrouped_products(flow: Dataflow) -> list[Edit]:
    """Products `a * b * c` of the value path as `a * (b * c)`.

    Only where every loaded value was widened to float32 first: in 16 bits another grouping may
    overflow.
    """
    module, typing = flow.kernel.module, Typing(flow)
    edits: list[Edit] = []
    done = -1
    for node in sorted(_binary(flow), key=lambda node: module.span(node)[1]):
        inner = node.left
        if not isinstance(node.operator, cst.Multiply) or module.span(node)[0] < done:
            continue
        if not isinstance(inner, cst.BinaryOperation) or inner.lpar:
            continue
        if not isinstance(inner.operator, cst.Multiply) or not _may_swap(flow, typing, node):
            continue
        if _is_widened(flow, node) and _is_operand(flow, inner.right):
            start, end = module.span(inner.right)[0], module.span(node.right)[1]
            edits += (Edit(start, start, "("), Edit(end, end, ")"))
            done = end
    return edits


def _is_widened(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether no loaded value reaches this one but through `.to(tl.float32)`."""
    queue, seen = [node], {node}
    while queue:
        current = queue.pop()
        name = flow.call_name(current)
        if name == "to" and isinstance(current, cst.Call):
            dtype = flow.argument(current, "dtype")
            if dtype is not None and flow.source(dtype.value).endswith("float32"):
                continue
        if name == "load" or name.startswith("helper."):
            return False
        following = {child for role, child in flow.inputs(current) if role is Role.VALUE} - seen
        seen |= following
        queue += following
    return True


def _binary(flow: Dataflow) -> Iterator[cst.BinaryOperation]:
    for node in flow.expressions():
        if isinstance(node, cst.BinaryOperation) and isinstance(
            node.operator, cst.Add | cst.Multiply
        ):
            yield node


def _may_swap(flow: Dataflow, typing: Typing, node: cst.BinaryOperation) -> bool:
    """Is it a floating-point value that reaches an output, and swaps into a legal expression?

    Triton takes a number or a tensor on the left; a global `tl.constexpr` there would, in the
    interpreter, take the tensor for another constant.
    """
    if typing.kind(node) is not Kind.FLOAT or typing.kind(node.left) is Kind.POINTER:
        return False
    if flow.sinks(node) & _NEVER_COMMUTED or not flow.reaches_output(node):
        return False
    return _is_operand(flow, node.right)


def _is_operand(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether the value is a number or surely a tensor."""
    node = flow.resolve(node)
    return isinstance(node, cst.BaseNumber) or any(
        flow.call_name(n) in _TENSORS for n in (node, *flow.backward(node))
    )


def _is_language_function(flow: Dataflow, call: cst.Call, name: str) -> bool:
    """Whether the call is spelled `tl.name(...)`, not an alias, a method or another library."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != name:
        return False
    root = dotted(call.func.value) or ""
    return root in flow.kernel.language_names


def _literal_axis(node: cst.BaseExpression) -> int | None:
    negative = isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)
    number = node.expression if isinstance(node, cst.UnaryOperation) and negative else node
    if not isinstance(number, cst.Integer):
        return None
    return -number.evaluated_value if negative else number.evaluated_value
