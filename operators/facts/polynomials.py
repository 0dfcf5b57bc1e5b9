"""Indices as polynomials, to prove that one comparison makes another one false.

Where `start >= (pid + 1) * B`, no `start + arange(0, B) <= pid * B + arange(0, B)` holds: a
causal mask repeats what the range of the loop says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from gatecert.operators.facts.dataflow import Dataflow, ParameterKind
from gatecert.operators.facts.definitions import Definition, DefinitionKind

Polynomial = dict[tuple[str, ...], int]
"""Sorted products of atoms, with their integer factors; `()` is the constant."""

_CASTS = frozenset({"to", "multiple_of", "max_contiguous", "max_constancy", "builtins.int"})
_MAX_TERMS = 24
"""Longer sums are taken as one atom: no index has so many."""


@dataclass(frozen=True)
class Polynomials:
    """The polynomials of one kernel's integers."""

    flow: Dataflow
    _ends: dict[str, Polynomial] = field(default_factory=dict)
    """Lanes of `arange(0, n)`, and n."""
    _natural: set[str] = field(default_factory=set)
    """Atoms that are never negative."""

    def of(self, node: cst.CSTNode) -> Polynomial:
        """An expression as a polynomial; what is no sum or product is an atom."""
        flow = self.flow
        node = flow.resolve(node)
        match node:
            case cst.Integer():
                return _clean({(): node.evaluated_value})
            case cst.UnaryOperation() if isinstance(node.operator, cst.Minus):
                return scaled(self.of(node.expression), -1)
            case cst.BinaryOperation() if isinstance(node.operator, cst.Add):
                return added(self.of(node.left), self.of(node.right))
            case cst.BinaryOperation() if isinstance(node.operator, cst.Subtract):
                return added(self.of(node.left), scaled(self.of(node.right), -1))
            case cst.BinaryOperation() if isinstance(node.operator, cst.Multiply):
                product = _product(self.of(node.left), self.of(node.right))
                return product if len(product) <= _MAX_TERMS else self._atom(node)
            case cst.Subscript() if _only_slices(node):
                return self.of(node.value)
            case cst.Call() if flow.call_name(node) in _CASTS:
                return self.of(flow.arguments(node)[0].value)
            case cst.Name():
                return self._name(node)
        return self._atom(node)

    def counter(self, definition: Definition) -> Polynomial:
        """A definition that is no sum of others: a parameter, a loop's counter."""
        text = f"{definition.name}#{self.flow.kernel.module.span(definition.node)[0]}"
        if self.flow.parameters().get(definition.name) is ParameterKind.CONSTEXPR:
            self._natural.add(text)
        return {(text,): 1}

    def denied(self, excess: Polynomial) -> frozenset[cst.Comparison]:
        """Comparisons of the kernel that are false wherever `excess >= 0`."""
        return frozenset(
            node
            for node in self.flow.expressions()
            if isinstance(node, cst.Comparison)
            and (need := self.excess(node, holds=False)) is not None
            and self._surely_natural(added(need, scaled(excess, -1)))
        )

    def excess(self, node: cst.Comparison, holds: bool) -> Polynomial | None:
        """What is at least zero just where the comparison holds, or does not."""
        if len(node.comparisons) != 1:
            return None
        left, right = self.of(node.left), self.of(node.comparisons[0].comparator)
        less, strict = {
            cst.LessThan: (True, True),
            cst.LessThanEqual: (True, False),
            cst.GreaterThan: (False, True),
            cst.GreaterThanEqual: (False, False),
        }.get(type(node.comparisons[0].operator), (None, None))
        if less is None:
            return None
        low, high = (left, right) if less is holds else (right, left)
        apart = 1 if strict is holds else 0
        return added(added(high, scaled(low, -1)), _clean({(): -apart}))

    def _surely_natural(self, value: Polynomial) -> bool:
        """Whether a polynomial is at least zero in every lane."""
        least: Polynomial = {}
        for atoms, factor in value.items():
            lanes = [atom for atom in atoms if atom in self._ends]
            if lanes and factor < 0:
                if len(atoms) != 1:
                    return False
                last = added(self._ends[lanes[0]], {(): -1})
                least = added(least, scaled(last, factor))
            else:
                least = added(least, {atoms: factor})
        return all(
            factor > 0 and all(a in self._natural or a in self._ends for a in atoms)
            for atoms, factor in least.items()
        )

    def _name(self, node: cst.Name) -> Polynomial:
        found = self.flow.reaching(node)
        if len(found) == 1:
            return self.counter(found[0])
        places = ",".join(str(self.flow.kernel.module.span(d.node)[0]) for d in found)
        return {(f"{node.value}#{places}",): 1}

    def _atom(self, node: cst.CSTNode) -> Polynomial:
        flow = self.flow
        text = f"{type(node).__name__}#{flow.kernel.module.span(node)[0]}"
        name = flow.call_name(node)
        if isinstance(node, cst.Call) and name in ("program_id", "num_programs"):
            text = f"{name}({','.join(flow.source(a.value) for a in flow.arguments(node))})"
            self._natural.add(text)
        elif isinstance(node, cst.Call) and name == "arange":
            found = {a.parameter: a.value for a in flow.arguments(node)}
            if found.keys() >= {"start", "end"} and self.of(found["start"]) == {}:
                self._ends[text] = self.of(found["end"])
        return {(text,): 1}


def added(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum of two."""
    return _clean({k: left.get(k, 0) + right.get(k, 0) for k in (*left, *right)})


def scaled(value: Polynomial, by: int) -> Polynomial:
    """A multiple."""
    return {atoms: factor * by for atoms, factor in value.items()}


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for atoms, factor in _terms(left, right):
        result = added(result, {atoms: factor})
    return result


def _terms(left: Polynomial, right: Polynomial) -> Iterator[tuple[tuple[str, ...], int]]:
    for a, x in left.items():
        for b, y in right.items():
            yield tuple(sorted((*a, *b))), x * y


def _clean(value: Polynomial) -> Polynomial:
    return {atoms: factor for atoms, factor in value.items() if factor}


def _only_slices(node: cst.Subscript) -> bool:
    """Whether a subscript only spreads a tile (`x[:, None]`)."""
    return any(isinstance(element.slice, cst.Slice) for element in node.slice)


def counter_of(flow: Dataflow, loop: cst.For) -> Definition | None:
    """The definition of a loop's counter."""
    kinds = (DefinitionKind.LOOP_VARIABLE,)
    return next((d for d in flow.definitions() if d.node is loop and d.kind in kinds), None)
