"""Loads, stores and atomics of a kernel, their masks, and what a change to one would show.

Labels come from here. `Memory.effect` follows the lanes that a change touches
(`facts/lanes.py`) and says whether the change gets past a buffer's end, into an output, or
nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from gatecert.operators.facts.edits import drop_argument
from gatecert.operators.facts.elements import FALSE, Element
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.lanes import walk
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.scene import Scene, callers, scene
from gatecert.operators.facts.values import (
    Access,
    AccessKind,
    Change,
    Conjunct,
    ConjunctKind,
    Findings,
    Lanes,
    Value,
    terms,
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


def labels_of(
    change: Change, effect: Callable[[Change], Effect]
) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """`observable_by` and `reveal` of a change that has this effect.

    Where zeros hide the lanes that it lets through, they show once an exponential of them
    overflows: zero times infinity is NaN.
    """
    labels = effect(change).labels()
    if labels[0]:
        return labels
    values = effect(replace(change, overflows=True)).values
    if values is None:
        return labels
    return (ObservableBy.VALUES,), tuple(sorted(values | {Reveal.LARGE_MAGNITUDE}))


class Memory:
    """The loads, stores, atomics and selects of one kernel.

    A helper is seen through the functions of its module that call it; one that none calls, or
    none with a mask, is seen alone.
    """

    def __init__(self, kernel: KernelSyntax) -> None:
        self.kernel = kernel
        self._span = kernel.module.span(kernel.function)
        views = [_view(caller) for caller in callers(kernel)]
        self._views = [v for v in views if any(self._mine(a) for a in v.accesses)]
        self._views = self._views or [_view(kernel)]
        found = Findings()
        for view in self._views:
            found.absorb(
                Findings({access.node: access for access in view.accesses}, seen=view.seen)
            )
        self._seen = found.seen
        self._accesses = tuple(
            sorted(found.accesses.values(), key=lambda a: kernel.module.span(a.node))
        )

    def owns(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in the kernel itself."""
        start, end = self._span
        return start <= self.kernel.module.span(node)[0] < end

    def _mine(self, access: Access) -> bool:
        nodes = (access.node, *(term.node for term in mask_terms(access)))
        return any(self.owns(node) for node in nodes if node is not None)

    def accesses(self, *kinds: AccessKind) -> tuple[Access, ...]:
        """The kernel's own accesses of these kinds, in source order."""
        return tuple(access for access in self.guarded(*kinds) if self.owns(access.node))

    def guarded(self, *kinds: AccessKind) -> tuple[Access, ...]:
        """Accesses that the kernel makes or whose mask it makes, in source order."""
        return tuple(a for a in self._accesses if a.kind in kinds and self._mine(a))

    def value(self, node: cst.CSTNode) -> Value | None:
        """What is known of an expression; None where the walk never comes."""
        return self._seen.get(node)

    def line(self, access: Access) -> int:
        """The line on which an access starts."""
        return self.kernel.module.line(access.node)

    def effect(self, change: Change, among: Iterable[Conjunct], truth: Element = FALSE) -> Effect:
        """What a change does in lanes where one of the terms is false (or last true).

        A mask that somebody else made is taken to be one of bounds.
        """
        total = Effect()
        for term in among:
            if term.foreign:
                total |= Effect(bounds=True)
                continue
            for view in self._views:
                for lanes in view.lanes(term, truth):
                    findings = walk(view.scene, lanes, change)
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


@dataclass(frozen=True, slots=True)
class _View:
    """A function and all accesses that it makes, those of its helpers included."""

    scene: Scene
    accesses: tuple[Access, ...]
    seen: dict[cst.CSTNode, Value]

    def lanes(self, term: Conjunct, truth: Element) -> Iterator[Lanes]:
        """Where a term decides: past its bound, and before the end if that is further on."""
        bounds = [other for access in self.accesses for other in bound_terms(access)]
        same = frozenset(t.index for t in bounds if t.bound == term.bound)
        lanes = Lanes(term, truth, peers=same - {term.index})
        if term.standing and truth == FALSE:
            yield replace(lanes, inside=True)
            if any(t.index == term.index and not t.standing for t in bounds):
                return
        yield lanes


def _view(function: KernelSyntax) -> _View:
    seen = scene(function)
    found = walk(seen)
    return _View(seen, tuple(found.accesses.values()), found.seen)


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
