"""Calls of a kernel, in the lanes that a walk follows (`facts/lanes.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import libcst as cst

from gatecert.operators.facts import elements
from gatecert.operators.facts.elements import FALSE, TRUE, Element, Lane
from gatecert.operators.facts.expressions import MAX_DEPTH, Expressions
from gatecert.operators.facts.language import (
    ATOMICS,
    EXPONENTIALS,
    REDUCTIONS,
    SCANS,
    Argument,
    call_arguments,
)
from gatecert.operators.facts.scene import Scene, parameters
from gatecert.operators.facts.spill import overwrites_own_rows
from gatecert.operators.facts.tiles import (
    contracted,
    expanded,
    literal_axis,
    reduced,
    shape_rank,
    transposed,
)
from gatecert.operators.facts.values import (
    Access,
    AccessKind,
    Change,
    ChangeKind,
    Findings,
    Lanes,
    Value,
    join_values,
    number,
    terms,
    weakest,
)
from gatecert.operators.records import Reveal

_TRANSPARENT = frozenset(
    {"to", "multiple_of", "max_contiguous", "max_constancy", "constexpr", "broadcast_to",
     "assume", "builtins.int"}
)  # fmt: skip
_LANE_MIXERS = frozenset({"softmax", "sort", "topk", "gather", "histogram", "flip", "interleave"})


class Calls(Expressions):
    """Memory accesses, selections, reductions, contractions and helper functions."""

    def __init__(self, scene: Scene, lanes: Lanes | None, change: Change | None) -> None:
        super().__init__(scene, lanes, change)
        self._returned: list[Value] = []
        self._running: tuple[Element, Element] | None = None
        """Whether the statements run in the original and in the mutant, where that differs."""

    def _block(self, body: cst.BaseSuite) -> None:
        raise NotImplementedError

    def _call(self, node: cst.Call) -> Value:
        name = self._words.call_name(node)
        arguments = {a.parameter: a for a in call_arguments(self._words, node)}
        if name == "load":
            return self._load(node, arguments)
        if name == "store" or name in ATOMICS:
            return self._store(node, name, arguments)
        if name == "arange":
            return self._arange(node)
        if name.startswith("helper."):
            return self._helper(node, name.removeprefix("helper."))
        values = {key: self._eval(argument.value) for key, argument in arguments.items()}
        parts = tuple(values.values())
        text = f"{name}({','.join(part.text for part in parts)})"
        first = parts[0] if parts else Value(text)
        if name in _TRANSPARENT:
            rank = shape_rank(arguments.get("shape")) if name == "broadcast_to" else first.rank
            return replace(first, rank=rank)
        if name == "where":
            return self._where(node, text, values, arguments)
        if name in REDUCTIONS:
            return self._reduce(node, name, text, values, arguments)
        if name in SCANS:
            data = Lane.POISON if Lane.POISON in (first.before, first.after) else Lane.DATA
            return first.named(text).holds(Lane.DATA, data, first.same)
        if name == "dot" and len(parts) >= 2:
            return self._dot(node, text, parts)
        if name in ("maximum", "minimum", "builtins.max", "builtins.min") and len(parts) > 1:
            kind = "maximum" if name.endswith("max") or name == "maximum" else "minimum"
            result = first
            for part in parts[1:]:
                result = self._binary(kind, result, part)
            return result
        if name in ("logical_and", "logical_or") and len(parts) == 2:
            return self._binary("&" if name == "logical_and" else "|", *parts)
        return self._plain_call(node, name, text, first, parts, arguments)

    def _plain_call(
        self,
        node: cst.Call,
        name: str,
        text: str,
        first: Value,
        parts: tuple[Value, ...],
        arguments: Mapping[str, Argument],
    ) -> Value:
        if name in ("zeros", "full"):
            rank = shape_rank(arguments.get("shape"))
            value = self._eval(arguments["value"].value) if "value" in arguments else None
            fill = number("0", 0.0) if value is None else value
            return replace(fill.named(text), rank=rank, placed=frozenset(), conjuncts=())
        if name == "zeros_like":
            return replace(number(text, 0.0), rank=first.rank)
        if name in ("program_id", "num_programs"):
            self._standings.add(text)
            return Value(text, index=name == "program_id")
        if name == "builtins.float":
            literal = node.args[0].value if node.args else None
            if isinstance(literal, cst.SimpleString):
                return number(text, float(str(literal.evaluated_value)))
            return first
        if name == "fma" and len(parts) == 3:
            return self._binary("+", self._binary("*", parts[0], parts[1]), parts[2])
        if name == "div" and len(parts) == 2:
            return self._binary("/", *parts)
        if name == "trans":
            return transposed(first) if len(parts) == 1 else replace(first, placed=frozenset())
        if name == "expand_dims":
            return expanded(first, literal_axis(arguments.get("axis")))
        if name == "reshape":
            return replace(first.named(text), placed=frozenset(), rank=None)
        mixed = replace(self._mixed(text, parts), conjuncts=())
        if name in _LANE_MIXERS and not mixed.same:
            self.findings.meets[node] = True
            return replace(mixed, leak=weakest(mixed.leak, self._reveal()))
        if len(parts) == 1:
            before, after = (elements.apply_function(name, x) for x in (first.before, first.after))
            if self._overflows(name, first):
                after = Lane.POISON
            return mixed.holds(before, after, first.same)
        poison = Lane.POISON in [part.after for part in parts]
        return mixed.holds(Lane.DATA, Lane.POISON if poison else Lane.DATA, mixed.same)

    def _overflows(self, name: str, x: Value) -> bool:
        """Whether an exponential is taken to be infinite, so that zero does not hide it."""
        change = self._change
        let_through = not x.same and isinstance(x.after, Lane)
        return change is not None and change.overflows and name in EXPONENTIALS and let_through

    def _arange(self, node: cst.Call) -> Value:
        lanes = self._lanes
        above = self._module.parents.get(node)
        spelled = self._source(above if isinstance(above, cst.Subscript) else node)
        # A mask that spells its index out guards every vector made from that spelling.
        key = spelled if spelled in self._indices() else self._index_name(node)
        outside = lanes is not None and key in lanes.outside_tiles
        element = Lane.OUTSIDE if outside else Lane.DATA
        return Value(key, 1, frozenset({(key, -1)}), element, element, index=True)

    def _index_name(self, node: cst.Call) -> str:
        """A name for the tile dimension that an `arange` spans.

        Index vectors that are spelled alike index the same dimension; a bare `arange` that is
        assigned to a name is a dimension of its own, and one inside a larger expression is
        told from others by its orientation.
        """
        text = self._source(node)
        outer: cst.CSTNode = node
        while True:
            above = self._module.parents.get(outer)
            if isinstance(above, cst.Assign | cst.AnnAssign):
                bare = outer is node or isinstance(outer, cst.Subscript)
                place = f"@{self._module.line(node)}" if bare else ""
                return f"{self._source(outer)}{place}"
            if isinstance(above, cst.Subscript) and outer is node:
                text = self._source(above)
            if not isinstance(
                above,
                cst.BinaryOperation | cst.Subscript | cst.UnaryOperation | cst.Call
                | cst.Arg | cst.Attribute,
            ) or self._is_access(above):  # fmt: skip
                return text
            outer = above

    def _is_access(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.Call):
            return False
        name = self._words.call_name(node)
        return name in ("load", "store", "where") or name in ATOMICS

    def _helper(self, node: cst.Call, name: str) -> Value:
        parts = [self._eval(arg.value) for arg in node.args]
        text = f"{name}({','.join(part.text for part in parts)})"
        function = self._scene.helpers.get(name)
        if function is None or self._depth >= MAX_DEPTH:
            mixed = replace(self._mixed(text, parts), foreign=True)
            return mixed.holds(Lane.DATA, Lane.DATA, mixed.same)
        names: dict[str, Value] = dict.fromkeys(parameters(function), Value(f"{name}.default"))
        positional = list(parameters(function))
        for position, (arg, value) in enumerate(zip(node.args, parts, strict=True)):
            if arg.keyword is not None:
                names[arg.keyword.value] = value
            elif position < len(positional):
                names[positional[position]] = value
        outer, self._names = self._names, names
        returned, self._returned = self._returned, []
        findings, self.findings = self.findings, Findings()
        running = self._running
        self._depth += 1
        self._block(function.body)
        self._depth -= 1
        self._names, self._running = outer, running
        results, self._returned = self._returned, returned
        # Other calls of the helper have been here: what they found stays.
        findings.absorb(self.findings)
        self.findings = findings
        if not results:
            return Value(text)
        joined = results[0]
        for result in results[1:]:
            joined = join_values(joined, result, text)
        return joined

    # -- memory and selection

    def _mask(self, node: cst.Call, values: Mapping[str, Value]) -> Value:
        mask = values.get("mask", values.get("condition", number("True", TRUE)))
        if self._changed(node, ChangeKind.MASK_DROPPED, mask) is not None:
            return mask.holds(mask.before, TRUE, same=False)
        return mask

    def _pad(self, node: cst.Call, pad: Value, mask: Value) -> Value:
        change = self._changed(node, ChangeKind.PAD_CHANGED, mask)
        return pad if change is None else pad.holds(pad.before, change.pad, same=False)

    def _under(self, mask: Value) -> Value:
        """A mask that lets nothing through where its statement does not run."""
        if self._running is None:
            return mask
        before, after = self._running
        return mask.holds(
            elements.both(before, mask.before), elements.both(after, mask.after), same=False
        )

    def _changed(self, node: cst.Call, kind: ChangeKind, mask: Value) -> Change | None:
        """The change, if it is of this kind, at this node, and in lanes that the mask decides.

        On a path or in a call where the mask lacks the term, other terms' lanes are concerned.
        """
        lanes, change = self._lanes, self._change
        if lanes is None or change is None or change.kind is not kind or change.node is not node:
            return None
        return change if lanes.conjunct.key in [term.key for term in terms(mask)] else None

    def _values(self, arguments: Mapping[str, Argument]) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for key, argument in arguments.items():
            if not (isinstance(argument.value, cst.Name) and argument.value.value == "None"):
                values[key] = self._eval(argument.value)
        return values

    def _select(self, text: str, condition: Value, x: Value, y: Value) -> Value:
        mixed = self._mixed(text, (condition, x, y))
        before = elements.select(condition.before, x.before, y.before)
        after = elements.select(condition.after, x.after, y.after)
        same = condition.same and x.same and y.same
        if condition.before == condition.after and not isinstance(condition.after, Lane):
            same = x.same if condition.after else y.same
        return mixed.holds(before, after, same)

    def _where(
        self,
        node: cst.Call,
        text: str,
        values: Mapping[str, Value],
        arguments: Mapping[str, Argument],
    ) -> Value:
        condition = values.get("condition", Value("?"))
        self._record(node, AccessKind.SELECT, values, arguments)
        x, y = values.get("x", Value("?")), values.get("y", Value("?"))
        pad = self._pad(node, y, condition)
        return replace(self._select(text, condition, x, pad), index=False)

    def _load(self, node: cst.Call, arguments: Mapping[str, Argument]) -> Value:
        values = self._values(arguments)
        pointer = values.get("pointer", Value("?"))
        self._record(node, AccessKind.LOAD, values, arguments)
        mask = self._mask(node, values)
        missing = Value("?", before=Lane.POISON, after=Lane.POISON)
        pad = self._pad(node, values.get("other", missing), mask)
        self._check_bounds(node, pointer, self._under(mask))
        memory = replace(pointer, before=Lane.DATA, after=Lane.DATA, conjuncts=(), parts=())
        text = f"load({pointer.text},{mask.text},{pad.text})"
        return replace(
            self._select(text, mask, memory, pad),
            index=False,
            loaded=bool(pointer.placed),
            foreign=False,
        )

    def _store(self, node: cst.Call, name: str, arguments: Mapping[str, Argument]) -> Value:
        values = self._values(arguments)
        pointer = values.get("pointer", Value("?"))
        kind = AccessKind.STORE if name == "store" else AccessKind.ATOMIC
        self._record(node, kind, values, arguments)
        mask = self._under(self._mask(node, values))
        lanes = self._lanes
        value = values.get("value", number("0", 0.0))
        self._check_bounds(node, pointer, mask)
        written = self._mixed("", (pointer, mask, value))
        # A mask that newly lets a lane through shows in values if the lane lands inside the
        # buffer; past the end it is a matter of bounds.
        extra = mask.before == FALSE and mask.after != FALSE
        adds_nothing = name == "atomic_add" and value.after == 0.0
        outside = pointer.after is Lane.OUTSIDE or adds_nothing
        same = outside if extra else pointer.same and value.same
        spilled = lanes is not None and extra and outside and not adds_nothing
        if spilled and lanes is not None and overwrites_own_rows(pointer, lanes.conjunct):
            again = self._reveal() | {Reveal.SEVERAL_BLOCKS}
            written = replace(written, leak=weakest(written.leak, again))
        self._output(node, replace(written, same=same), mask.before, mask.after)
        return Value(f"{name}@{self._module.line(node)}", pointer.rank, loaded=True)

    def _record(
        self,
        node: cst.Call,
        kind: AccessKind,
        values: Mapping[str, Value],
        arguments: Mapping[str, Argument],
    ) -> None:
        self.findings.accesses[node] = Access(node, kind, values, arguments)

    def _check_bounds(self, node: cst.Call, pointer: Value, mask: Value) -> None:
        bad = pointer.after in (Lane.OUTSIDE, Lane.POISON) and mask.after != FALSE
        new = not mask.same or pointer.before != pointer.after
        self.findings.bounds[node] = bad and new

    def _output(self, node: cst.CSTNode, value: Value, before: Element, after: Element) -> None:
        """Note what a store (or a return) shows of the difference."""
        shows = after != FALSE and not value.same
        missing = before != FALSE and after == FALSE
        own = self._reveal() if shows or missing else None
        self.findings.outputs[node] = weakest(value.leak, own)

    # -- where lanes meet

    def _reduce(
        self,
        node: cst.Call,
        name: str,
        text: str,
        values: Mapping[str, Value],
        arguments: Mapping[str, Argument],
    ) -> Value:
        x = replace(values.get("input", Value(text)).named(text), index=False)
        keep = "keep_dims" in arguments
        axis = literal_axis(arguments.get("axis"))
        result, met = reduced(name, x, axis, keep, self._indices(), self._reveal())
        self.findings.meets[node] = met
        return result

    def _dot(self, node: cst.Call, text: str, parts: tuple[Value, ...]) -> Value:
        product, met = contracted(parts[0], parts[1], self._indices())
        self.findings.meets[node] = met
        leak = weakest(parts[0].leak, parts[1].leak, self._reveal() if met else None)
        result = replace(product.named(text), leak=leak)
        return self._binary("+", result, parts[2]) if len(parts) > 2 else result
