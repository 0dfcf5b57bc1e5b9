"""Promotions to 64-bit integers, and the products of addresses that would wrap without them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.addresses import Addresses, factors
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.edits import keep, replace
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.shapes import Kind
from gatecert.operators.records import Edit

_MADE = frozenset({"full", "zeros"})


@dataclass(frozen=True, slots=True)
class Promotion:
    """One place that makes an index 64 bits wide.

    `drop` takes it away, `dtype` is how the kernel spells the type, and `products` are the
    last products on the way to an address that no other promotion keeps wide.
    """

    line: int
    drop: tuple[Edit, ...]
    dtype: str
    products: tuple[cst.BinaryOperation, ...]


@dataclass(frozen=True, slots=True)
class _Wide:
    """A promotion as expressions: those that are wide because of it alone."""

    place: cst.CSTNode
    nodes: frozenset[cst.CSTNode]
    drop: Edit
    dtype: str


def promotions(addresses: Addresses) -> Iterator[Promotion]:
    """Promotions without which a product would have 32 bits, in source order.

    A row number that is only added to a pointer never wraps.
    """
    flow = addresses.flow
    module = flow.kernel.module
    found = sorted(_wide(flow), key=lambda wide: module.span(wide.place))
    for wide in found:
        others = frozenset[cst.CSTNode]().union(*(w.nodes for w in found if w is not wide))
        products = _products(addresses, wide.nodes, others)
        if products:
            line = module.line(wide.place)
            yield Promotion(line, (wide.drop,), wide.dtype, products)


def _products(
    addresses: Addresses, nodes: frozenset[cst.CSTNode], others: frozenset[cst.CSTNode]
) -> tuple[cst.BinaryOperation, ...]:
    flow, typing = addresses.flow, addresses.typing
    reached = nodes.union(*(flow.forward(node) for node in nodes))
    products = [
        node
        for node in flow.expressions()
        if node in reached
        and isinstance(node, cst.BinaryOperation)
        and factors(node) is not None
        and typing.kind(node) not in (Kind.POINTER, Kind.FLOAT)
        and addresses.uses(node)
        and not flow.backward(node) & others
    ]
    return tuple(p for p in products if not any(p in flow.backward(q) for q in products))


def _wide(flow: Dataflow) -> Iterator[_Wide]:
    module = flow.kernel.module
    for definition in flow.definitions():
        note = definition.node.annotation if isinstance(definition.node, cst.Param) else None
        if definition.kind is DefinitionKind.PARAMETER and note is not None:
            dtype = dotted(note.annotation)
            if dtype is not None and dtype.split(".")[-1] == "int64":
                name = cst.ensure_type(definition.node, cst.Param).name
                drop = Edit(module.inner_span(name)[1], module.span(note.annotation)[1], "")
                yield _Wide(definition.node, frozenset(flow.uses(definition)), drop, dtype)
    for call in flow.calls("to", *_MADE):
        argument = flow.argument(call, "dtype")
        dtype = None if argument is None else dotted(argument.value)
        if argument is None or dtype is None or dtype.split(".")[-1] != "int64":
            continue
        if flow.call_name(call) in _MADE:
            drop = replace(module, argument.value, dtype.replace("int64", "int32"))
        else:
            drop = keep(module, call, flow.operands(call)[0][1])
        yield _Wide(call, frozenset({call}), drop, dtype)
