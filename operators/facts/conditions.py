"""Conditions of masks, selects and branches: their clauses, and what decides them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import libcst as cst

from gatecert.operators.facts.analysis import Analysis
from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import DefinitionKind
from gatecert.operators.facts.elements import FALSE, TRUE, Element
from gatecert.operators.facts.memory import Effect, Memory, labels_of
from gatecert.operators.facts.shapes import Kind
from gatecert.operators.facts.values import (
    Change,
    ChangeKind,
    Conjunct,
    ConjunctKind,
    Value,
    add_sums,
    sum_text,
    terms,
)
from gatecert.operators.records import ObservableBy, Reveal

_RUNTIME_CALLS = frozenset(
    {"arange", "program_id", "num_programs", "load", "rand", "randn", "randint"}
)  # fmt: skip
_MAX_SNIPPET = 60


@dataclass(frozen=True, slots=True)
class Clause:
    """One operand of an `and` or `or`: the whole, what is dropped, what is left."""

    whole: cst.BaseExpression
    dropped: cst.BaseExpression
    left: cst.BaseExpression
    conjunction: bool


@dataclass(frozen=True, slots=True)
class Deciding:
    """Lanes, or programs, in which a term has this truth value."""

    term: Conjunct
    truth: Element = FALSE
    holds: bool = False
    """Whether the comparison holds there that the term was made from."""


def clauses(flow: Dataflow, node: cst.CSTNode) -> Iterator[Clause]:
    """Operands of this `&`, `|`, `and`, `or` or of `tl.logical_and` that are none themselves."""
    parts = _junction(flow, node)
    if parts is None:
        return
    left, right, conjunction = parts
    assert isinstance(node, cst.BaseExpression)
    for dropped, kept in ((left, right), (right, left)):
        inner = _junction(flow, dropped)
        if inner is None or inner[2] is not conjunction:
            yield Clause(node, dropped, kept, conjunction)


def every_clause(flow: Dataflow, node: cst.BaseExpression) -> Iterator[Clause]:
    """Clauses of a condition and of what its clauses are made from, the inner ones first."""
    parts = _junction(flow, node)
    if parts is not None:
        for side in parts[:2]:
            yield from every_clause(flow, side)
        yield from clauses(flow, node)


def plain_parts(flow: Dataflow, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a condition joins by `and` and `or`; itself where it joins nothing."""
    parts = _junction(flow, node)
    if parts is None:
        yield node
    else:
        for side in parts[:2]:
            yield from plain_parts(flow, side)


def _junction(
    flow: Dataflow, node: cst.CSTNode
) -> tuple[cst.BaseExpression, cst.BaseExpression, bool] | None:
    match node:
        case cst.BinaryOperation() if isinstance(node.operator, cst.BitAnd | cst.BitOr):
            return node.left, node.right, isinstance(node.operator, cst.BitAnd)
        case cst.BooleanOperation():
            return node.left, node.right, isinstance(node.operator, cst.And)
        case cst.Call() if flow.call_name(node) in ("logical_and", "logical_or"):
            found = [argument.value for argument in flow.arguments(node)]
            if len(found) == 2:
                return found[0], found[1], flow.call_name(node) == "logical_and"
    return None


def deciding(
    flow: Dataflow, memory: Memory, node: cst.CSTNode, truth: bool
) -> tuple[Deciding, ...]:
    """Terms that can give a condition this truth value, one by one."""
    node = flow.resolve(node)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not | cst.BitInvert):
        return deciding(flow, memory, node.expression, not truth)
    parts = _junction(flow, node)
    if parts is not None:
        left, right, _ = parts
        return (*deciding(flow, memory, left, truth), *deciding(flow, memory, right, truth))
    value = memory.value(node)
    found = terms(value) if value is not None else ()
    return tuple(_true(term) if truth else Deciding(term) for term in found)


def _true(term: Conjunct) -> Deciding:
    """Where a term is true; past the end for one that says so (`row >= n`)."""
    if term.opaque:
        return Deciding(term, TRUE, holds=True)
    past = term.negated and bool(term.bound)
    kind = ConjunctKind.BOUND if past and not term.loaded else ConjunctKind.OTHER
    return Deciding(replace(term, negated=not term.negated, kind=kind, outside=past), holds=True)


def let_through(
    facts: Analysis, change: Change, where: Iterable[Deciding]
) -> tuple[tuple[ObservableBy, ...], tuple[Reveal, ...]]:
    """Labels of a change that lets lanes through."""
    where = tuple(where)
    return labels_of(change, lambda one: effect(facts, one, where))


def below(index: Value, bound: Value, inclusive: bool) -> Conjunct:
    """The term that keeps an index below (or at) a bound, for one that a minimum keeps there.

    Past a bound at which the program stands, an index is not past the end of anything.
    """
    end = add_sums(bound.sum, (("", 1),)) if inclusive else bound.sum
    return Conjunct(
        ConjunctKind.OTHER if bound.index else ConjunctKind.BOUND,
        key=f"{sum_text(add_sums(index.sum, end, -1))}<0",
        index=index.text,
        placed=index.placed,
        outside=not bound.index,
        addends=index.sum,
        bound=sum_text(end),
    )


def effect(facts: Analysis, change: Change, where: Iterable[Deciding]) -> Effect:
    """What a change shows where terms of the kernel's own decide.

    Where a branch or loop runs in other programs, masks may repeat what its test said.
    """
    total = Effect()
    for one in where:
        excess = None if one.term.node is None else facts.integers.excess(one.term.node, one.holds)
        if excess is not None and change.kind in (ChangeKind.OPENED, ChangeKind.CLOSED):
            change = replace(change, denied=facts.integers.denied(excess))
        guarding = change.kind in (ChangeKind.OPENED, ChangeKind.CLOSED)
        # Whoever calls a helper knows what a mask of its own is; a flag is only a flag.
        term = replace(one.term, foreign=one.term.foreign and not guarding)
        total |= facts.memory.effect(change, (term,), one.truth)
    return total


def snippet(flow: Dataflow, node: cst.CSTNode) -> str:
    """An expression on one line, cut where it is long."""
    text = " ".join(flow.source(node).split())
    return text if len(text) <= _MAX_SNIPPET else f"{text[: _MAX_SNIPPET - 3]}..."


def is_index(facts: Analysis, node: cst.CSTNode) -> bool:
    """Whether a value is made from tile indices, program ids and loop variables."""
    value = facts.memory.value(node)
    return value is not None and value.index and facts.typing.kind(node) is not Kind.FLOAT


def is_place(facts: Analysis, node: cst.CSTNode) -> bool:
    """Like `is_index`, and of integers that come from memory (labels, positions)."""
    value = facts.memory.value(node)
    kind = facts.typing.kind(node)
    return is_index(facts, node) or (
        value is not None and value.loaded and kind is not Kind.FLOAT and not _is_number(value)
    )


def _is_number(value: Value) -> bool:
    return isinstance(value.before, float) and value.before == value.after


def is_runtime(flow: Dataflow, node: cst.CSTNode) -> bool:
    """Whether a value is known only when the kernel runs."""
    kinds = flow.parameters()
    seen: set[cst.CSTNode] = set()
    queue = [node]
    while queue:
        current = queue.pop()
        if current in seen:
            continue
        seen.add(current)
        if flow.call_name(current) in _RUNTIME_CALLS:
            return True
        if isinstance(current, cst.Name) and any(
            d.kind is DefinitionKind.LOOP_VARIABLE
            or (d.kind is DefinitionKind.PARAMETER and kinds[d.name] is not ParameterKind.CONSTEXPR)
            for d in flow.reaching(current)
        ):
            return True
        # Neither a type nor whether there is a pointer waits for the kernel to run.
        if not isinstance(current, cst.Attribute) and not _compares_identity(current):
            queue.extend(part for _, part in flow.inputs(current))
    return False


def nested(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Everything inside a node, in source order."""
    for child in node.children:
        yield child
        yield from nested(child)


def _compares_identity(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Comparison) and isinstance(
        node.comparisons[0].operator, cst.Is | cst.IsNot
    )
