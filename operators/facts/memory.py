"""Loads, stores and atomics of a kernel, their masks, and what a change to one would show.

Labels come from here. `Memory.effect` follows the lanes that a change touches
(`facts/lanes.py`) and says whether the change gets past a buffer's end, into an output, or
nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.edits import drop_argument
from gatecert.operators.facts.elements import FALSE, Element
from gatecert.operators.facts.expressions import terms
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.lanes import walk
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.scene import scene
from gatecert.operators.facts.values import (
    Access,
    AccessKind,
    Change,
    Conjunct,
    ConjunctKind,
    Lanes,
    weakest,
)
from gatecert.operators.records import Edit, ObservableBy, Reveal


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does.

    `bounds` says that lanes read or write past the end. `values` holds conditions under which
    an output differs: None for never, empty for any input. `meets` says that changed lanes are
    combined with others.
    """

    bounds: bool = False
    values: frozenset[Reveal] | None = None
    meets: bool = False

    def __or__(self, other: Effect) -> Effect:
        return Effect(
            self.bounds or other.bounds,
            weakest(self.values, other.values),
            self.meets or other.meets,
        )

    def labels(self) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
        """`observable_by` and `reveal` of a site."""
        observable = []
        if self.values is not None:
            observable.append(ObservableBy.VALUES)
        if self.bounds:
            observable.append(ObservableBy.BOUNDS)
        reveal = weakest(self.values, frozenset({Reveal.TAIL}) if self.bounds else None)
        if reveal is None:
            return (), ()
        return tuple(observable), tuple(sorted(reveal)) or (Reveal.ANY,)


class Memory:
    """The loads, stores, atomics and selects of one kernel."""

    def __init__(self, kernel: KernelSyntax) -> None:
        self.kernel = kernel
        self._scene = scene(kernel)
        found = walk(self._scene).accesses.values()
        self._accesses = tuple(sorted(found, key=lambda a: kernel.module.span(a.node)))

    def accesses(self, *kinds: AccessKind) -> tuple[Access, ...]:
        """The kernel's own accesses of these kinds, in source order."""
        return tuple(access for access in self._accesses if access.kind in kinds)

    def line(self, access: Access) -> int:
        """The line on which an access starts."""
        return self.kernel.module.line(access.node)

    def effect(self, change: Change, among: Iterable[Conjunct], truth: Element = FALSE) -> Effect:
        """What a change does in lanes where one of the terms is false (or last true)."""
        bounds = [term for access in self._accesses for term in bound_terms(access)]
        total = Effect()
        for term in among:
            peers = frozenset(t.index for t in bounds if t.bound == term.bound) - {term.index}
            findings = walk(self._scene, Lanes(term, truth, peers), change)
            total |= Effect(
                bounds=any(findings.bounds.values()),
                values=weakest(*findings.outputs.values()),
                meets=any(findings.meets.values()),
            )
        return total

    def sibling(self, access: Access) -> str:
        """The nearest other access under a term of the same mask, as a remark; or nothing."""
        keys = {term.key for term in mask_terms(access)}
        others = [
            other
            for other in self._accesses
            if other.node is not access.node
            and other.kind is not AccessKind.SELECT
            and keys & {term.key for term in mask_terms(other)}
        ]
        if not others:
            return ""
        # Like goes with like: a load is compared with loads first.
        line = self.line(access)
        near = min(others, key=lambda o: (o.kind is not access.kind, abs(self.line(o) - line)))
        return f"; the {near.kind.value} of {buffer_name(near)} at line {self.line(near)} keeps it"

    def drop_arguments(self, access: Access, *names: str) -> tuple[Edit, ...]:
        """Edits that remove arguments of a call; none if one of them cannot go.

        The first argument cannot, nor a positional one that others follow by position.
        """
        call = access.node
        found = [access.arguments[name].arg for name in names if name in access.arguments]
        gone = [arg for arg in found if arg is not None]
        for arg in gone:
            position = call.args.index(arg)
            later = [a for a in call.args[position:] if a not in gone and a.keyword is None]
            if position == 0 or (arg.keyword is None and later):
                return ()
        return tuple(_merged(sorted(drop_argument(self.kernel.module, call, a) for a in gone)))


def mask_terms(access: Access) -> tuple[Conjunct, ...]:
    """The terms of an access's mask; none where it has no mask."""
    return terms(access.mask) if access.mask is not None else ()


def bound_terms(access: Access) -> tuple[Conjunct, ...]:
    """Those terms that keep an index below a scalar."""
    return tuple(term for term in mask_terms(access) if term.kind is ConjunctKind.BOUND)


def buffer_name(access: Access) -> str:
    """The name at the root of an access's pointer, for messages."""
    node = access.argument("pointer")
    while node is not None:
        if isinstance(node, cst.BinaryOperation):
            node = node.left
        elif isinstance(node, cst.Subscript | cst.Attribute) and dotted(node) is None:
            node = node.value
        else:
            break
    return (dotted(node) if node is not None else None) or "memory"


def _merged(edits: list[Edit]) -> Iterator[Edit]:
    """Deletions that touch become one."""
    last: Edit | None = None
    for edit in edits:
        if last is not None and last.end == edit.start:
            last = Edit(last.start, edit.end, "")
            continue
        if last is not None:
            yield last
        last = edit
    if last is not None:
        yield last
