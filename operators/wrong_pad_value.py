"""A wrong value in the lanes that a mask leaves out, where those lanes meet real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import libcst as cst

from gatecert.operators.facts.analysis import analysis
from gatecert.operators.facts.dataflow import analyse
from gatecert.operators.facts.datatypes import is_float
from gatecert.operators.facts.edits import replace
from gatecert.operators.facts.elements import SENTINEL, Element, Lane
from gatecert.operators.facts.kernel import KernelSyntax
from gatecert.operators.facts.memory import Effect, Memory, bound_terms, buffer_name, mask_terms
from gatecert.operators.facts.values import Access, AccessKind, Change, ChangeKind
from gatecert.operators.records import Edit, Example, Operator, Site


def find(kernel: KernelSyntax) -> Iterator[Site]:
    """Sites per masked load or select whose padding is reduced or contracted.

    Padding that only meets other padding is left alone: its value is no bug. A changed constant
    shows in values where it changes the sum, product or maximum (1 times a sibling's 0 does
    not). A dropped `other` leaves the lanes undefined: the guards' poison shows it (bounds)
    wherever it gets to an output, and values show it where zero, which most backends read,
    would change one.
    """
    memory = analysis(kernel).memory
    for access in memory.accesses(AccessKind.LOAD, AccessKind.SELECT):
        pad, value = access.argument(access.pad_name), access.values.get(access.pad_name)
        if pad is None or value is None or value.placed or isinstance(value.before, Lane):
            continue
        if not bound_terms(access) or not _meets(memory, access):
            continue
        floating = _is_float(memory, access, pad)
        for text, element, variant in _replacements(pad, value.before, floating):
            yield _site(
                memory,
                access,
                (replace(kernel.module, pad, text),),
                _effect(memory, access, element),
                variant,
            )
        edits = memory.drop_arguments(access, "other")
        if edits:
            yield _site(memory, access, edits, _undefined(memory, access), "undefined")


def _effect(memory: Memory, access: Access, pad: Element) -> Effect:
    change = Change(ChangeKind.PAD_CHANGED, access.node, pad=pad)
    return memory.effect(change, mask_terms(access))


def _meets(memory: Memory, access: Access) -> bool:
    return any(_effect(memory, access, pad).meets for pad in (Lane.DATA, Lane.POISON))


def _undefined(memory: Memory, access: Access) -> Effect:
    """What a load does without `other`: poison under guards, zero on most backends."""
    zero, poison = _effect(memory, access, 0.0), _effect(memory, access, Lane.POISON)
    return Effect(poison.bounds or poison.values is not None, zero.values)


def _site(
    memory: Memory, access: Access, edits: tuple[Edit, ...], shown: Effect, variant: str
) -> Site:
    observable_by, reveal = shown.labels()
    select = access.kind is AccessKind.SELECT
    place = "the select" if select else f"the load of {buffer_name(access)}"
    return Site(
        edits=edits,
        line=memory.line(access),
        detail=f"{place} pads with {_WORDS[variant]}",
        observable_by=observable_by,
        reveal=reveal,
        variant=variant,
    )


_WORDS: Mapping[str, str] = {
    "zero": "0 for a sentinel",
    "one": "1 for 0",
    "minus-inf": "minus infinity for 0",
    "undefined": "nothing defined",
}


def _is_float(memory: Memory, access: Access, pad: cst.BaseExpression) -> bool:
    """Whether the padded value is a floating-point number, however its pad is spelled."""
    if not isinstance(pad, cst.Integer):
        return True
    return is_float(analyse(memory.kernel), access.node)


def _replacements(
    pad: cst.BaseExpression, value: float, floating: bool
) -> Iterator[tuple[str, Element, str]]:
    """Wrong constants for a right one: text, element, variant; types are kept."""
    integer = isinstance(pad, cst.Integer)
    if value <= SENTINEL or value == math.inf:
        yield ("0" if integer else "0.0"), 0.0, "zero"
    elif value == 0.0:
        yield ("1" if integer else "1.0"), 1.0, "one"
        if floating:
            yield 'float("-inf")', -math.inf, "minus-inf"


_SOFTMAX = """\
@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + tl.program_id(0) * n + offs, e / tl.sum(e, axis=0), mask=mask)
"""
_VARIANCE = """\
@triton.jit
def variance(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, offs < n, 0)
    mean = tl.sum(x, 0) / n
    centred = tl.where(offs < n, x - mean, 0.0)
    tl.store(out_ptr, tl.sum(centred * centred, 0) / n)
"""

OPERATOR = Operator(
    name="wrong-pad-value",
    bug_class="pad-value-wrong",
    summary="Lanes that a bounds mask leaves out hold a wrong value, or none at all.",
    evidence="FlagGems #494, #969, #6251; AITER #4530",
    find=find,
    version=2,
    applies=(
        Example(
            _SOFTMAX,
            (
                _SOFTMAX.replace('-float("inf")', "0.0"),
                _SOFTMAX.replace(', other=-float("inf")', ""),
            ),
        ),
        Example(
            _VARIANCE,
            (
                _VARIANCE.replace("offs < n, 0)", "offs < n, 1)"),
                _VARIANCE.replace("offs < n, 0)", 'offs < n, float("-inf"))'),
                _VARIANCE.replace("offs < n, 0)", "offs < n)"),
                _VARIANCE.replace("x - mean, 0.0", "x - mean, 1.0"),
                _VARIANCE.replace("x - mean, 0.0", 'x - mean, float("-inf")'),
            ),
        ),
    ),
    does_not_apply=(
        """\
@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, 2 * x, mask=offs < n)
""",
        """\
@triton.jit
def causal(s_ptr, out_ptr, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)
    cols = tl.arange(0, BLOCK)
    s = tl.load(s_ptr + rows[:, None] * BLOCK + cols[None, :])
    s = tl.where(rows[:, None] >= cols[None, :], s, float("-inf"))
    tl.store(out_ptr + rows, tl.max(s, axis=1))
""",
    ),
)
