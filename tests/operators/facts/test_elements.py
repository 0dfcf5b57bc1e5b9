"""The arithmetic of lanes that labels rest on."""

from __future__ import annotations

import math

import pytest

from gatecert.operators.facts.elements import (
    Element,
    Lane,
    apply_binary,
    apply_function,
    both,
    either,
    join,
    negate,
    select,
)

DATA, OUTSIDE, POISON = Lane.DATA, Lane.OUTSIDE, Lane.POISON
INF = math.inf


@pytest.mark.parametrize(
    ("name", "x", "y", "expected"),
    [
        ("*", 0.0, DATA, 0.0),
        ("*", 0.0, POISON, POISON),  # what a zero hides, a NaN does not
        ("*", 0.0, -INF, POISON),
        ("*", DATA, 1.0, DATA),
        ("+", 0.0, 1.0, 1.0),
        ("+", DATA, DATA, DATA),
        ("-", -INF, DATA, -INF),
        ("-", DATA, -INF, INF),
        ("-", INF, INF, POISON),
        ("*", -INF, DATA, -INF),
        ("/", DATA, INF, 0.0),
        ("/", 1.0, 0.0, DATA),
        ("maximum", -INF, DATA, DATA),
        ("maximum", POISON, 2.0, 2.0),  # as Triton's maximum does
        ("minimum", 1.0, 2.0, 1.0),
        ("-", -1e9, DATA, -1e9),  # a sentinel is minus infinity beside data,
        ("*", -1e4, DATA, -1e4),
        ("maximum", DATA, -1e9, DATA),
        ("minimum", DATA, -1e9, DATA),
        ("*", -1e9, 0.0, 0.0),  # but a number beside numbers
        ("-", -1e9, -1e9, 0.0),
        ("maximum", -1e9, -INF, -1e9),
        ("-", -1e3, DATA, DATA),
        (">", POISON, 0.0, 0.0),
        ("!=", POISON, 0.0, 1.0),
        ("+", OUTSIDE, DATA, OUTSIDE),
        ("*", OUTSIDE, DATA, OUTSIDE),
        ("%", OUTSIDE, DATA, DATA),
        ("minimum", OUTSIDE, DATA, DATA),
        ("<", OUTSIDE, DATA, DATA),
    ],
)
def test_binary_arithmetic(name: str, x: Element, y: Element, expected: Element) -> None:
    assert apply_binary(name, x, y) == expected


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", -INF, 0.0),
        ("exp", 0.0, 1.0),
        ("exp", 1e4, INF),
        ("exp", DATA, DATA),
        ("exp", POISON, POISON),
        ("log", 0.0, DATA),
        ("abs", -INF, INF),
        ("exp2", -1e9, 0.0),
        ("sigmoid", -1e9, 0.0),
        ("sigmoid", 0.0, 0.5),
        ("never_heard_of", 0.0, DATA),
    ],
)
def test_functions(name: str, x: Element, expected: Element) -> None:
    assert apply_function(name, x) == expected


def test_false_wins_a_conjunction_and_true_a_disjunction() -> None:
    assert both(0.0, DATA) == 0.0
    assert both(1.0, DATA) == DATA
    assert either(1.0, DATA) == 1.0
    assert either(0.0, DATA) == DATA
    assert negate(DATA) == DATA


def test_a_select_takes_the_side_it_knows() -> None:
    assert select(1.0, 5.0, POISON) == 5.0
    assert select(0.0, 5.0, DATA) == DATA
    assert select(DATA, 5.0, 5.0) == 5.0
    assert select(DATA, 5.0, POISON) == join(POISON, 5.0) == POISON
