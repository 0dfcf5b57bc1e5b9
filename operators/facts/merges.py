"""Where two definitions of a name must have one type, or Triton does not compile the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import Definition

_Block = tuple[cst.CSTNode, bool]
"""A loop, or a branch and whether it is the one taken."""


def mismatched(flow: Dataflow, narrower: Mapping[Definition, bool]) -> bool:
    """Whether definitions that meet disagree about having become narrower.

    A name that is set before a loop or branch and again inside it, or in both arms of a branch,
    must keep its type; a branch on constants is no branch.
    """
    by_name: dict[str, list[Definition]] = {}
    for definition in flow.definitions():
        by_name.setdefault(definition.name, []).append(definition)
    for definitions in by_name.values():
        if len({narrower[d] for d in definitions}) < 2:
            continue
        blocks = {d: tuple(_blocks(flow, d.node)) for d in definitions}
        for position, later in enumerate(definitions):
            for earlier in _live(definitions[:position], blocks, blocks[later]):
                if narrower[earlier] is not narrower[later]:
                    return True
    return False


def _live(
    earlier: list[Definition],
    blocks: Mapping[Definition, tuple[_Block, ...]],
    inside: tuple[_Block, ...],
) -> Iterator[Definition]:
    """Definitions that are alive where the blocks of a later one begin, or are in its other arm."""
    for definition in reversed(earlier):
        mine = blocks[definition]
        around = set(mine) < set(inside)
        if around or any((node, not arm) in inside for node, arm in mine):
            yield definition
        if around and not mine:
            return


def _blocks(flow: Dataflow, node: cst.CSTNode) -> Iterator[_Block]:
    parents = flow.kernel.module.parents
    current = node
    while current is not flow.kernel.function and current in parents:
        above = parents[current]
        if isinstance(above, cst.For | cst.While) and current is not getattr(above, "iter", None):
            yield above, True
        elif isinstance(above, cst.If) and _at_run_time(flow, above.test):
            yield above, current is above.body
        current = above


def _at_run_time(flow: Dataflow, test: cst.BaseExpression) -> bool:
    """Whether a test depends on more than constants."""
    kinds = flow.parameters()
    queue: list[cst.CSTNode] = [test]
    while queue:
        node = queue.pop()
        if isinstance(node, cst.Name):
            for definition in flow.reaching(node):
                if kinds.get(definition.name) is not ParameterKind.CONSTEXPR:
                    return True
        elif isinstance(node, cst.Call) and not flow.call_name(node).startswith("builtins."):
            return True
        queue.extend(n for _, n in flow.operands(node))
    return False
