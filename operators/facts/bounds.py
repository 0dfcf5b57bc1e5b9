"""The bound comparisons of a kernel, each with all that it guards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.elements import Lane
from gatecert.operators.facts.memory import Memory, bound_terms, buffer_name
from gatecert.operators.facts.values import Access, AccessKind, Conjunct


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison of an index with a bound, where it stands in the source.

    It makes several terms in a helper that is called with several indices. `used` names the
    accesses under it.
    """

    node: cst.Comparison
    target: int
    terms: tuple[Conjunct, ...]
    used: str

    @property
    def operator(self) -> cst.BaseCompOp:
        """How it compares."""
        return self.node.comparisons[self.target].operator

    @property
    def bound(self) -> cst.BaseExpression:
        """What the index is compared with."""
        if not self.terms[0].bound_first:
            return self.node.comparisons[self.target].comparator
        return self.node.comparisons[self.target - 1].comparator if self.target else self.node.left

    @property
    def standing(self) -> bool:
        """Whether the bound is where the program or a loop stands, and not a size."""
        return any(term.standing for term in self.terms)


def bounds(memory: Memory) -> Iterator[Bound]:
    """Bounds of loads, stores, atomics and padding selects, in source order."""
    found: dict[tuple[cst.Comparison, int], tuple[list[Conjunct], list[str]]] = {}
    for access in memory.guarded(*AccessKind):
        for term in bound_terms(access):
            padding = access.kind is not AccessKind.SELECT or _pads(access)
            if term.node is not None and padding and memory.owns(term.node):
                terms, users = found.setdefault((term.node, term.target), ([], []))
                if term.key not in [known.key for known in terms]:
                    terms.append(term)
                users.append(_user(access))
    module = memory.kernel.module
    for node, target in sorted(found, key=lambda key: (module.span(key[0]), key[1])):
        terms, users = found[node, target]
        yield Bound(node, target, tuple(terms), ", ".join(dict.fromkeys(users)))


def _pads(access: Access) -> bool:
    """Whether a select puts one constant into the lanes left out."""
    pad = access.values.get(access.pad_name)
    return pad is not None and not pad.placed and not isinstance(pad.before, Lane)


def _user(access: Access) -> str:
    if access.kind is AccessKind.SELECT:
        return "select"
    return f"{access.kind.value} of {buffer_name(access)}"
