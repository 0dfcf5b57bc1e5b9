"""Whether masks alone keep a program that should not run from doing anything new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.memory import Memory, bound_terms
from gatecert.operators.facts.values import Access, AccessKind

_CASTS = frozenset({"to", "multiple_of", "max_contiguous"})


def masks_cover_programs(flow: Dataflow, memory: Memory, limit: cst.CSTNode) -> bool:
    """Whether masks send programs home whose id is not below a limit, the number of tiles.

    So it is where all that a program makes of its id is an index that a mask keeps below a
    size, and the limit counts the tiles of these sizes: a program too many stores at most what
    another one stores too. Atomics would add it twice.
    """
    accesses = memory.accesses(AccessKind.LOAD, AccessKind.STORE, AccessKind.ATOMIC)
    stores = [access for access in accesses if access.kind is AccessKind.STORE]
    if not stores or any(access.kind is AccessKind.ATOMIC for access in accesses):
        return False
    sizes = {flow.source(flow.resolve(n)) for a in accesses for n in _compared(a, of_index=False)}
    if frozenset(_tiled(flow, limit)) != sizes:
        return False
    kept = {access.node: frozenset(_kept(flow, access)) for access in accesses}
    everywhere = frozenset[cst.CSTNode]().union(*kept.values())
    return all(
        not _reaches_program(flow, _given(access, "pointer"), kept[access.node])
        for access in accesses
    ) and not any(_reaches_program(flow, _given(s, "value"), everywhere) for s in stores)


def _given(access: Access, name: str) -> Iterator[cst.CSTNode]:
    node = access.argument(name)
    if node is not None:
        yield node


def _kept(flow: Dataflow, access: Access) -> Iterator[cst.CSTNode]:
    """Indices that the mask of an access keeps below a size."""
    return (_bare(flow, node) for node in _compared(access, of_index=True))


def _compared(access: Access, of_index: bool) -> Iterator[cst.CSTNode]:
    """The indices in the bounds of an access's mask, or the sizes."""
    for term in bound_terms(access):
        if term.node is not None and not term.standing and len(term.node.comparisons) == 1:
            right = term.node.comparisons[0].comparator
            yield right if term.bound_first is of_index else term.node.left


def _tiled(flow: Dataflow, limit: cst.CSTNode) -> Iterator[str]:
    """The sizes of which a product of `tl.cdiv` counts the tiles; a word for anything else."""
    node = flow.resolve(limit)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        yield from _tiled(flow, node.left)
        yield from _tiled(flow, node.right)
    elif isinstance(node, cst.Call) and flow.call_name(node) == "cdiv" and node.args:
        yield flow.source(flow.resolve(node.args[0].value))
    else:
        yield "?"


def _bare(flow: Dataflow, node: cst.CSTNode) -> cst.CSTNode:
    """What a name, cast or spread tile stands for."""
    while True:
        inner = flow.resolve(node)
        if isinstance(inner, cst.Subscript):
            inner = inner.value
        elif isinstance(inner, cst.Call) and flow.call_name(inner) in _CASTS:
            inner = flow.arguments(inner)[0].value
        if inner is node:
            return node
        node = inner


def _reaches_program(
    flow: Dataflow, nodes: Iterable[cst.CSTNode], kept: frozenset[cst.CSTNode]
) -> bool:
    """Whether a program's id has a part in these other than through an index kept."""
    seen: set[cst.CSTNode] = set()
    queue = list(nodes)
    while queue:
        node = _bare(flow, queue.pop())
        if node in seen or node in kept:
            continue
        seen.add(node)
        if flow.call_name(node) == "program_id":
            return True
        queue += [part for _, part in flow.inputs(node)]
    return False
