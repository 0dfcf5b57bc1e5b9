"""A number in a formula is wrong: confused with a relative, or off by a graded amount."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.cancellation import Factor
from gatecert.operators.facts.changes import SCALED
from gatecert.operators.facts.constants import SENTINEL, module_value, unwrapped
from gatecert.operators.facts.dataflow import Dataflow
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.language import Role
from gatecert.operators.facts.softmax import Rescale, in_exponent
from gatecert.operators.records import Example, ObservableBy, Operator, Reveal, Site

CONFUSIONS: tuple[tuple[float, float], ...] = (
    (math.log2(math.e), math.log(2.0)),
    (math.log(2.0), math.log2(math.e)),
    (math.sqrt(2.0 / math.pi), math.sqrt(math.pi / 2.0)),
    (math.sqrt(0.5), math.sqrt(2.0)),
    (math.sqrt(2.0), math.sqrt(0.5)),
    (2.0 / math.sqrt(math.pi), math.sqrt(2.0 / math.pi)),
    (1.0 / math.sqrt(2.0 * math.pi), math.sqrt(2.0 / math.pi)),
    (0.044715, 0.44715),
    (1.702, 1.072),
    (0.5, 0.25),
    (1.0, 0.5),
    (2.0, 0.5),
)
"""Numbers of well-known formulas and what they are mistaken for."""

SCORED = (("x1.1", 1.1), ("x1.01", 1.01))
LADDER = (("x1.001", 1.001), ("x1.0001", 1.0001), ("x1.00001", 1.00001))
"""Steps of the detection limit; not scored."""

_EPSILON = 1e-3
"""Smaller addends guard a division."""


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Numbers with a decimal point that enter data; no padding, mask, zero or sentinel.

    A constant of the module may belong to other kernels too, so it stays as it is and all
    that this kernel makes of it becomes the wrong number.
    """
    facts = analysis(kernel)
    flow = facts.flow
    for constant in _constants(flow):
        seeds = dict.fromkeys(constant.uses, SCALED)
        visible = not facts.cancellation.cancels(seeds, Factor())
        reveal = _reveal(flow, facts.rescales, constant) if visible else ()
        for variant, value in _variants(constant.value):
            text = spell(value)
            yield Site(
                edits=tuple(replace(kernel.module, use, text) for use in constant.uses),
                line=kernel.module.line(constant.uses[0]),
                detail=f"the constant {constant.text} becomes {text}",
                observable_by=(ObservableBy.VALUES,) if visible else (),
                reveal=reveal,
                variant=variant,
                scored=variant not in dict(LADDER),
            )


@dataclass(frozen=True, slots=True)
class _Constant:
    """A number and the places of the kernel that stand for it."""

    text: str
    value: float
    uses: tuple[cst.CSTNode, ...]


def _constants(flow: Dataflow) -> Iterator[_Constant]:
    """Literals one by one, a constant of the module with all its uses."""
    named: dict[str, list[cst.CSTNode]] = {}
    for node in flow.expressions():
        if isinstance(node, cst.Float) and _is_data(flow, node, node.evaluated_value):
            yield _Constant(node.value, node.evaluated_value, (node,))
        elif isinstance(node, cst.Name) and not flow.reaching(node):
            named.setdefault(node.value, []).append(node)
    for name, uses in named.items():
        number = unwrapped(module_value(flow, name) or uses[0])
        if not isinstance(number, cst.Float):
            continue
        value = number.evaluated_value
        data = tuple(use for use in uses if _is_data(flow, use, value))
        if data:
            yield _Constant(f"{name} = {number.value}", value, data)


def _variants(value: float) -> Iterator[tuple[str, float]]:
    for right, wrong in CONFUSIONS:
        if math.isclose(value, right, rel_tol=1e-4):
            yield "swap", wrong
    for variant, ratio in (*SCORED, *LADDER):
        yield variant, value * ratio


def spell(value: float) -> str:
    """The number to 12 digits, always recognisable as a float."""
    text = f"{value:.12g}"
    return text if any(c in text for c in ".e") else f"{text}.0"


def _is_data(flow: Dataflow, node: cst.CSTNode, value: float) -> bool:
    held = flow.consumer(node)
    if value == 0.0 or value > SENTINEL or (held is not None and held[0] is not Role.VALUE):
        return False
    outer = node if held is None else _signed(flow, held[1], node)
    consumer = flow.consumer(outer)
    if consumer is not None and flow.call_name(consumer[1]) == "where":
        return False
    return flow.reaches_output(node)


def _signed(flow: Dataflow, holder: cst.CSTNode, node: cst.CSTNode) -> cst.CSTNode:
    """The number with its sign."""
    return holder if isinstance(holder, cst.UnaryOperation) else node


def _reveal(flow: Dataflow, scales: Sequence[Rescale], constant: _Constant) -> tuple[Reveal, ...]:
    """What the use that needs the least takes."""
    found = [_reveal_of(flow, scales, use, constant.value) for use in constant.uses]
    return found[0] if len(set(found)) == 1 else (Reveal.ANY,)


def _reveal_of(
    flow: Dataflow, scales: Sequence[Rescale], node: cst.CSTNode, value: float
) -> tuple[Reveal, ...]:
    held = flow.consumer(node)
    holder = None if held is None else held[1]
    name = "" if holder is None else flow.call_name(holder)
    is_sum = isinstance(holder, cst.BinaryOperation) and isinstance(
        holder.operator, cst.Add | cst.Subtract
    )
    if value <= _EPSILON and (is_sum or name in ("maximum", "builtins.max")):
        return (Reveal.NEAR_ZERO,)
    if name in ("minimum", "builtins.min", "clamp"):
        return (Reveal.LARGE_MAGNITUDE,)
    if holder is not None and any(in_exponent(flow, r, holder) for r in scales):
        return (Reveal.RISING, Reveal.SEVERAL_BLOCKS)
    return (Reveal.ANY,)


_GELU = """\
@triton.jit
def gelu(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N, other=0.0)
    y = x * tl.sigmoid({constant} * x)
    tl.store(y_ptr + cols, y, mask=cols < N)
"""
_EXP = """\
@triton.jit
def power(x_ptr, y_ptr, BLOCK: tl.constexpr):
    LOG2_E: tl.constexpr = {constant}
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, tl.exp2(tl.load(x_ptr + cols) * LOG2_E))
"""

OPERATOR = Operator(
    name="wrong-constant",
    bug_class="constant-wrong",
    summary="A constant is mistaken for another or off by 10% or 1%; smaller steps unscored.",
    evidence="textbook; nearest field case: flagos-ai/FlagGems#631 (a formula's epsilon); the "
    "graded steps measure a gate's detection limit",
    find=find,
    version=2,
    applies=(
        Example(
            _GELU.format(constant="1.702"),
            tuple(
                _GELU.format(constant=c)
                for c in ("1.072", "1.8722", "1.71902", "1.703702", "1.7021702", "1.70201702")
            ),
        ),
        Example(
            _EXP.format(constant="1.4426950408889634"),
            tuple(
                _EXP.format(constant=c)
                for c in (
                    "0.69314718056", "1.58696454498", "1.4571219913", "1.44413773593",
                    "1.44283931039", "1.44270946784",
                )
            ),
        ),
    ),
    does_not_apply=(
        '''\
@triton.jit
def masked(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < N * 0.5, other=1.0)
    total = tl.zeros((BLOCK,), dtype=tl.float32) + 0.0
    total += tl.where(x > 0.25, x, -1.0e9)
    tl.store(y_ptr + cols, tl.maximum(total, float("-inf")), mask=cols < N)
''',
        '''\
@triton.jit
def whole(x_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + 2 * cols, tl.load(x_ptr + cols) * 2)
''',
    ),
)  # fmt: skip
