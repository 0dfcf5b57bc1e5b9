"""Strides of a kernel: parameters that do nothing but multiply indices of addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.addresses import (
    INDEX,
    Addresses,
    addends,
    factors,
    is_fixed,
    origins,
)
from gatecert.operators.facts.constants import literal
from gatecert.operators.facts.contiguity import KnownLaunch, are_contiguous, is_always_one, launches
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import Definition, DefinitionKind
from gatecert.operators.facts.language import Role

_HINTS = frozenset({"assume", "multiple_of", "device_assert", "static_assert"})


@dataclass(frozen=True, slots=True)
class StrideUse:
    """One product `index * stride` that enters addresses.

    `buffers` are the pointer parameters of those addresses.
    """

    name: str
    product: cst.BinaryOperation
    stride: cst.Name
    index: cst.CSTNode
    buffers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Strides:
    """Uses by stride, strides in parameter order; buffers with an implicit unit stride; and
    the launches that are known."""

    uses: Mapping[str, tuple[StrideUse, ...]]
    dense: frozenset[str]
    launches: tuple[KnownLaunch, ...]

    def of(self, buffers: frozenset[str]) -> tuple[str, ...]:
        """Strides of these buffers, in parameter order."""
        return tuple(n for n, uses in self.uses.items() if any(u.buffers & buffers for u in uses))

    def is_innermost(self, use: StrideUse) -> bool:
        """Whether the stride is 1 as long as the buffers of a use are contiguous.

        It is the last of its buffer's strides, unless an index enters the address unmultiplied.
        """
        return not use.buffers & self.dense and all(
            self.of(frozenset({buffer}))[-1] == use.name for buffer in use.buffers
        )

    def is_always_one(self, use: StrideUse) -> bool:
        """Whether an innermost stride is 1 at every launch, whatever the input's layout."""
        return self.is_innermost(use) and is_always_one(self.launches, use.buffers, use.name)

    def may_exceed(self, use: StrideUse, other: str | None) -> bool:
        """Whether a layout exists in which another stride (or 1, for None) is the larger one.

        Views of what the caller gives have any strides, zero included.
        """
        if not are_contiguous(self.launches, use.buffers):
            return True
        names = self.of(use.buffers)
        return other is not None and names.index(other) < names.index(use.name)

    def other(self, use: StrideUse) -> str | None:
        """The next stride of the same buffers in parameter order, cyclically."""
        names = self.of(use.buffers)
        following = names[(names.index(use.name) + 1) % len(names)]
        return None if following == use.name else following


def strides(addresses: Addresses) -> Strides:
    """Find the strides of a kernel.

    A parameter is one if every use of it multiplies or moves an index of an address: one that
    also bounds a mask, sizes a tile or divides is a size.
    """
    flow = addresses.flow
    kinds = flow.parameters()
    found: dict[str, tuple[StrideUse, ...]] = {}
    for definition in flow.definitions():
        if definition.kind is not DefinitionKind.PARAMETER:
            continue
        if kinds[definition.name] is ParameterKind.POINTER or _is_one(definition):
            continue
        if all(_only_addresses(flow, use) for use in flow.uses(definition)):
            uses = tuple(_uses(addresses, definition))
            if uses:
                found[definition.name] = uses
    ours = {use.product for uses in found.values() for use in uses}
    return Strides(found, frozenset(_dense(addresses, ours)), launches(flow.kernel))


def _is_one(definition: Definition) -> bool:
    default = definition.node.default if isinstance(definition.node, cst.Param) else None
    return default is not None and literal(default) in (0.0, 1.0)


def _only_addresses(flow: Dataflow, use: cst.Name) -> bool:
    """Whether a use of a parameter multiplies or adds, and all that comes of it is addresses."""
    held = flow.consumer(use)
    if held is not None and _is_hint(flow, held[1]):
        return True
    if flow.sinks(use) != {Role.ADDRESS}:
        return False
    return all(
        isinstance(holder, cst.Name | cst.AugAssign)
        or (
            isinstance(holder, cst.BinaryOperation)
            and isinstance(holder.operator, cst.Multiply | cst.Add | cst.Subtract)
        )
        or flow.call_name(holder) in ("to", "make_block_ptr", "multiple_of")
        or flow.call_name(holder).startswith("helper.")
        or isinstance(holder, cst.Tuple | cst.List)
        for copy in flow.copies(use)
        for _, holder in flow.outputs(copy)
    )


def _is_hint(flow: Dataflow, holder: cst.CSTNode) -> bool:
    """Whether a value is only asserted about, as in `tl.assume(stride > 0)`."""
    if isinstance(holder, cst.Comparison):
        held = flow.consumer(holder)
        return held is not None and _is_hint(flow, held[1])
    return flow.call_name(holder) in _HINTS


def _uses(addresses: Addresses, definition: Definition) -> Iterator[StrideUse]:
    flow = addresses.flow
    products: dict[cst.CSTNode, None] = {}
    for use in flow.uses(definition):
        for copy in flow.copies(use):
            for _, holder in flow.outputs(copy):
                if factors(holder) is not None:
                    products.setdefault(holder)
    for product in sorted(products, key=flow.kernel.module.span):
        assert isinstance(product, cst.BinaryOperation)
        for stride, index in ((product.right, product.left), (product.left, product.right)):
            name = _name(flow, stride, definition)
            if name is None or literal(index) in (0.0, 1.0):
                continue
            reached = (addresses.buffers(address) for address, _ in addresses.of(product))
            buffers = frozenset[str]().union(*reached)
            if buffers and addresses.uses(product):
                yield StrideUse(definition.name, product, name, index, buffers)
            break


def _name(flow: Dataflow, node: cst.CSTNode, definition: Definition) -> cst.Name | None:
    """The name in an operand that is the parameter, a copy or a cast of it."""
    while flow.call_name(node) in ("to", "multiple_of"):
        node = flow.operands(node)[0][1]
    if not isinstance(node, cst.Name):
        return None
    origin: cst.CSTNode = node
    while True:
        if isinstance(origin, cst.Name):
            if definition in flow.reaching(origin):
                return node
            resolved = flow.resolve(origin)
            if resolved is origin:
                return None
            origin = resolved
        elif flow.call_name(origin) in ("to", "multiple_of"):
            origin = flow.operands(origin)[0][1]
        else:
            return None


def _dense(addresses: Addresses, products: set[cst.BinaryOperation]) -> Iterator[str]:
    """Buffers into whose addresses an index enters that no runtime value multiplies."""
    flow, typing = addresses.flow, addresses.typing
    for address in addresses.all():
        for addend in addends(typing, address, deep=True):
            if addend in products or not origins(typing, addend) & INDEX:
                continue
            parts = factors(addend)
            if parts is None or any(is_fixed(flow, part) for part in parts):
                yield from addresses.buffers(address)
                break
