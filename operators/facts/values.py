"""What the walk of `facts/lanes.py` knows about an expression, a mask and a memory access."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from gatecert.operators.facts.elements import FALSE, TRUE, Element, Lane, join
from gatecert.operators.facts.language import Argument
from gatecert.operators.records import Reveal

Placed = frozenset[tuple[str, int]]
"""Tile indices and the axis, counted from the right, on which a tile carries each."""

Sum = tuple[tuple[str, int], ...]
"""Addends with their integer factors, sorted; `("", c)` is the constant c. It makes
`k * B + offs < K` and `offs <= K - k * B - 1` the same bound."""

_MAX_TEXT = 400


def short(text: str) -> str:
    """The text, or its hash where loops and nesting made it long."""
    if len(text) <= _MAX_TEXT:
        return text
    return f"#{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def add_sums(x: Sum, y: Sum, sign: int = 1) -> Sum:
    """`x + y`, or `x - y` for sign -1."""
    factors = dict(x)
    for addend, factor in y:
        factors[addend] = factors.get(addend, 0) + sign * factor
    return tuple(sorted((addend, factor) for addend, factor in factors.items() if factor))


def sum_text(x: Sum) -> str:
    """A sum as text: equal sums give equal texts."""
    if len(x) == 1 and x[0][1] == 1:
        return x[0][0] or "1"
    parts = (f"{factor}*{addend}" if addend else str(factor) for addend, factor in x)
    return short(f"({'+'.join(parts) or '0'})")


class ConjunctKind(enum.Enum):
    """What one term of a mask does."""

    BOUND = "bound"
    """It keeps an index below a scalar: `offs < n`, `n > offs`, `offs <= n - 1`."""
    OTHER = "other"
    """Anything else: causal comparisons, lower bounds, conditions on data."""


@dataclass(frozen=True, slots=True)
class Conjunct:
    """One term of a mask; equal keys guard the same index by the same bound.

    `key` is a statement about the index in a normal form, `negated` says that the term is its
    negation. `index` is the compared index as text (or the whole term, where it is no
    comparison), `bound` what it is compared with, `placed` the axis of the mask that it guards.
    `outside` says that where the term is false the index is past what it indexes, `loaded` that
    it comes from memory, `foreign` that the term was made elsewhere, `standing` that the bound
    is where the program or a loop stands (`cols <= row`) and not a size. `node` and `target`
    name the comparison; `bound_first` is true for `n > offs`. `addends` is the index as a sum.
    """

    kind: ConjunctKind
    key: str
    index: str
    placed: Placed
    node: cst.Comparison | None = None
    target: int = 0
    negated: bool = False
    outside: bool = False
    loaded: bool = False
    foreign: bool = False
    standing: bool = False
    bound: str = ""
    addends: Sum = ()
    bound_first: bool = False

    @property
    def opaque(self) -> bool:
        """Whether the term is no comparison, so that its text alone tells it."""
        return self.node is None and not self.addends


@dataclass(frozen=True, slots=True)
class Value:
    """One expression, seen in the lanes that a guard decides about.

    `before` and `after` are what those lanes hold in the original and in the mutant, `same`
    whether they are known to agree. `leak` is None while all other lanes agree; else it holds
    conditions under which they differ (empty: on any input). `index` marks what is made from
    tile indices, program ids and loop variables without a load in between, `foreign` what comes
    from a caller or a function that is not here.
    """

    text: str
    rank: int | None = 0
    placed: Placed = frozenset()
    before: Element = Lane.DATA
    after: Element = Lane.DATA
    same: bool = True
    leak: frozenset[Reveal] | None = None
    index: bool = False
    loaded: bool = False
    foreign: bool = False
    conjuncts: tuple[Conjunct, ...] = ()
    parts: tuple[Value, ...] = ()
    addends: Sum | None = None

    @property
    def sum(self) -> Sum:
        """The value as a sum."""
        return ((self.text, 1),) if self.addends is None else self.addends

    def named(self, text: str) -> Value:
        """This value under another text, as one addend."""
        return replace(self, text=short(text), addends=None)

    def holds(self, before: Element, after: Element, same: bool) -> Value:
        """This value with other lanes; equal known numbers are the same whatever `same` says."""
        known = not isinstance(before, Lane) and before == after
        return replace(self, before=before, after=after, same=same or known)

    def axes(self, indices: frozenset[str]) -> frozenset[int]:
        """Axes on which the tile carries one of the indices."""
        return frozenset(axis for name, axis in self.placed if name in indices)


def number(text: str, value: float) -> Value:
    """A literal."""
    if not float(value).is_integer():
        return Value(text, before=value, after=value)
    addends = (("", int(value)),) if value else ()
    return Value(text, before=value, after=value, addends=addends)


def weakest(*leaks: frozenset[Reveal] | None) -> frozenset[Reveal] | None:
    """The leak that needs the fewest conditions; None if there is none at all."""
    found = [leak for leak in leaks if leak is not None]
    return min(found, key=lambda leak: (len(leak), sorted(leak)), default=None)


def terms(mask: Value) -> tuple[Conjunct, ...]:
    """The terms of a mask joined by and; one opaque term where syntax shows none."""
    if mask.conjuncts or mask.before == TRUE:
        return mask.conjuncts
    opaque = Conjunct(ConjunctKind.OTHER, mask.text, mask.text, mask.placed, foreign=mask.foreign)
    return (opaque,)


def _either_terms(x: Value, y: Value) -> tuple[Conjunct, ...]:
    """Terms on at least one of two paths: one that guards on some path only is a term too."""
    if not (x.conjuncts or y.conjuncts):
        return ()
    return tuple(dict.fromkeys((*terms(x), *terms(y))))


def join_values(x: Value, y: Value, text: str) -> Value:
    """What a name holds where two paths meet."""
    if x == y:
        return x
    joined = Value(
        text=x.text if x.text == y.text else text,
        addends=x.addends if x.text == y.text else None,
        rank=x.rank if x.rank == y.rank else None,
        placed=x.placed | y.placed,
        leak=weakest(x.leak, y.leak),
        index=x.index and y.index,
        loaded=x.loaded or y.loaded,
        foreign=x.foreign or y.foreign,
        conjuncts=_either_terms(x, y),
    )
    if len(x.parts) == len(y.parts):
        parts = zip(x.parts, y.parts, strict=True)
        joined = replace(
            joined, parts=tuple(join_values(a, b, f"{text}.{i}") for i, (a, b) in enumerate(parts))
        )
    return joined.holds(join(x.before, y.before), join(x.after, y.after), x.same and y.same)


class AccessKind(enum.Enum):
    """What a call does under its mask."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    SELECT = "select"
    """`tl.where`: no memory, but the same shape of mask, value and pad."""


@dataclass(frozen=True, slots=True)
class Access:
    """One load, store, atomic or select of the kernel."""

    node: cst.Call
    kind: AccessKind
    values: Mapping[str, Value]
    arguments: Mapping[str, Argument]

    @property
    def mask(self) -> Value | None:
        """What decides about lanes."""
        return self.values.get("condition" if self.kind is AccessKind.SELECT else "mask")

    @property
    def pad_name(self) -> str:
        """The parameter whose value stands in for lanes left out."""
        return "y" if self.kind is AccessKind.SELECT else "other"

    def argument(self, name: str) -> cst.BaseExpression | None:
        """The expression passed for a parameter; None if absent or literally `None`."""
        found = self.arguments.get(name)
        if found is None or (isinstance(found.value, cst.Name) and found.value.value == "None"):
            return None
        return found.value


class ChangeKind(enum.Enum):
    """How a mutant differs from its original."""

    MASK_DROPPED = "mask_dropped"
    """The access at `node` has no mask any more."""
    PAD_CHANGED = "pad_changed"
    """Lanes masked off by the access at `node` hold `pad`."""
    COMPARISON_FLIPPED = "comparison_flipped"
    """The comparison at `node` decides the other way in the lanes looked at."""
    REPLACED = "replaced"
    """The expression at `node` is replaced by its own `part`, or by true where there is none."""
    OPENED = "opened"
    """The body of the branch or loop at `node` runs in lanes where it did not."""
    CLOSED = "closed"
    """The body of the branch at `node` does not run any more in lanes where it did."""


@dataclass(frozen=True, slots=True)
class Change:
    """The planted bug, as the walk sees it."""

    kind: ChangeKind
    node: cst.CSTNode
    target: int = 0
    pad: Element = Lane.DATA
    part: cst.BaseExpression | None = None
    """What stays of an expression, or of the test of a branch."""
    denied: frozenset[cst.Comparison] = frozenset()
    """Comparisons that are false wherever the change acts."""
    overflows: bool = False
    """Whether exponentials of what the change lets through are taken to overflow."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where to look: lanes in which one term of a mask is false, or the last true one."""

    conjunct: Conjunct
    truth: Element = FALSE
    peers: frozenset[str] = frozenset()
    """Other indices, as text, that the kernel keeps below the same bound: where one of them is
    used, it is smaller than an index past that bound."""
    inside: bool = False
    """Whether the lanes are past a bound at which the program stands, but not past the end."""

    @property
    def indices(self) -> frozenset[str]:
        """Tile indices that the term compares."""
        return frozenset(name for name, _ in self.conjunct.placed)

    @property
    def outside(self) -> bool:
        """Whether indices of these lanes are past the end of what they index."""
        return self.truth == FALSE and self.conjunct.outside and not self.inside

    @property
    def outside_tiles(self) -> frozenset[str]:
        """Tile indices that are."""
        return self.indices if self.outside and not self.conjunct.loaded else frozenset()

    @property
    def outside_text(self) -> str | None:
        """The one that is, as text, if it is a scalar or comes from memory."""
        by_text = self.outside and (self.conjunct.loaded or not self.conjunct.placed)
        return self.conjunct.index if by_text else None

    @property
    def reveal(self) -> frozenset[Reveal]:
        """Conditions under which an input has such lanes; empty for any input."""
        bound = self.conjunct.kind is ConjunctKind.BOUND and not self.inside
        return frozenset({Reveal.TAIL}) if bound and self.truth == FALSE else frozenset()


@dataclass(slots=True)
class Findings:
    """What one walk saw. Entries are by node, so that a later turn of a loop replaces them."""

    accesses: dict[cst.Call, Access] = field(default_factory=dict)
    bounds: dict[cst.CSTNode, bool] = field(default_factory=dict)
    outputs: dict[cst.CSTNode, frozenset[Reveal] | None] = field(default_factory=dict)
    meets: dict[cst.CSTNode, bool] = field(default_factory=dict)
    """Reductions and contractions in which a changed lane meets unchanged ones."""
    seen: dict[cst.CSTNode, Value] = field(default_factory=dict)
    """Every expression's value; of the walk without lanes only."""

    def replace(self, later: Findings) -> None:
        """Take over what a later turn saw."""
        self.accesses.update(later.accesses)
        self.bounds.update(later.bounds)
        self.outputs.update(later.outputs)
        self.meets.update(later.meets)
        self.seen.update(later.seen)

    def absorb(self, other: Findings) -> None:
        """Add what another path or another call of the same function saw."""
        for call, access in other.accesses.items():
            known = self.accesses.get(call)
            self.accesses[call] = access if known is None else _join_accesses(known, access)
        for node, bad in other.bounds.items():
            self.bounds[node] = bad or self.bounds.get(node, False)
        for node, leak in other.outputs.items():
            self.outputs[node] = weakest(leak, self.outputs.get(node))
        for node, met in other.meets.items():
            self.meets[node] = met or self.meets.get(node, False)
        for expression, value in other.seen.items():
            known_value = self.seen.get(expression, value)
            self.seen[expression] = join_values(known_value, value, f"{value.text}@")


def _join_accesses(x: Access, y: Access) -> Access:
    """One access reached on two paths."""
    values = {
        name: join_values(x.values[name], value, f"{name}@") if name in x.values else value
        for name, value in y.values.items()
    }
    return replace(y, values=values)
