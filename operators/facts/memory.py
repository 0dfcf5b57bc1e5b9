"""Loads, stores and atomics of a kernel, their masks, and what a change to one would show.

Labels come from here. `effect` follows the lanes that a change touches (`facts/lanes.py`) and
says whether the change gets past a buffer's end, into an output, or nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.edits import drop_argument
from gatecert.operators.facts.elements import FALSE, Element
from gatecert.operators.facts.expressions import terms
from gatecert.operators.facts.lanes import walk
from gatecert.operators.facts.language import dotted
from gatecert.operators.facts.scene import Scene
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


def accesses(scene: Scene, *kinds: AccessKind) -> tuple[Access, ...]:
    """The kernel's own loads, stores, atomics and selects of these kinds, in source order."""
    found = walk(scene).accesses.values()
    mine = (access for access in found if access.kind in kinds)
    return tuple(sorted(mine, key=lambda access: scene.kernel.module.span(access.node)))


def mask_terms(access: Access) -> tuple[Conjunct, ...]:
    """The terms of an access's mask; none where it has no mask."""
    return terms(access.mask) if access.mask is not None else ()


def bound_terms(access: Access) -> tuple[Conjunct, ...]:
    """Those terms that keep an index below a scalar."""
    return tuple(term for term in mask_terms(access) if term.kind is ConjunctKind.BOUND)


def effect(
    scene: Scene, change: Change, terms_: Iterable[Conjunct], truth: Element = FALSE
) -> Effect:
    """What the change does in lanes where one of the terms is false (or last true)."""
    bounds = [term for access in walk(scene).accesses.values() for term in bound_terms(access)]
    total = Effect()
    for term in terms_:
        peers = frozenset(t.index for t in bounds if t.bound == term.bound) - {term.index}
        findings = walk(scene, Lanes(term, truth, peers), change)
        total |= Effect(
            bounds=any(findings.bounds.values()),
            values=weakest(*findings.outputs.values()),
            meets=any(findings.meets.values()),
        )
    return total


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


def sibling(scene: Scene, access: Access, among: Iterable[Access]) -> str:
    """The nearest other access under a term of the same mask, as a remark; empty if none."""
    keys = {term.key for term in mask_terms(access)}
    line = scene.kernel.module.line(access.node)
    others = [
        other
        for other in among
        if other.node is not access.node and keys & {term.key for term in mask_terms(other)}
    ]
    # Like goes with like: a load is compared with loads first.
    others.sort(
        key=lambda o: (o.kind is not access.kind, abs(scene.kernel.module.line(o.node) - line))
    )
    if not others:
        return ""
    other = others[0]
    where = scene.kernel.module.line(other.node)
    return f"; the {other.kind.value} of {buffer_name(other)} at line {where} keeps it"


def drop_arguments(scene: Scene, access: Access, *names: str) -> tuple[Edit, ...]:
    """Edits that remove arguments of a call; none if one of them cannot go.

    The first argument cannot, nor a positional one that others follow by position.
    """
    call = access.node
    found = [access.arguments[name].arg for name in names if name in access.arguments]
    gone = [arg for arg in found if arg is not None]
    kept = [arg for arg in call.args if arg not in gone]
    positions = [call.args.index(arg) for arg in gone]
    for arg, position in zip(gone, positions, strict=True):
        later = [other for other in kept if call.args.index(other) > position]
        if position == 0 or (arg.keyword is None and any(o.keyword is None for o in later)):
            return ()
    return tuple(_merged(sorted(drop_argument(scene.kernel.module, call, arg) for arg in gone)))


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
