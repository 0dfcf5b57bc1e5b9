"""Strategies: which shapes and values a gate tries, as data.

A strategy is a list of steps, likely killers first. A step says how large the tiled dims are
and which recipe fills the tensors; `cases` makes cases of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatecert.errors import UsageError, did_you_mean

TAILS_APART = "tails_apart"
LONG_APART = "long_apart"
WIDE_APART = "wide_apart"
FAR = "far"
SPREAD = "spread"
FAR_ROWS = "far_rows"
LISTED = "listed"


@dataclass(frozen=True, slots=True)
class Step:
    """Size kind of the tiled dims (see `shapes.SIZE_KINDS`) and a recipe.

    The kind `tails_apart` makes one case per tiled dim: that dim has a tail, the others are
    whole blocks. `long_apart` makes one case per tiled dim, in which it is long, and
    `wide_apart` one per batch dim, of size 33; all other dims are as small as may be. `far` is
    one case that is wide and long, so that flat offsets leave 16 bits. `listed` makes one case
    of every first size that the team lists, one of every second, and so on. A step with a
    `layout` is taken in that layout alone, and only where the subject declares it.
    """

    sizes: str
    recipe: str
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named list of steps, each taken in every dtype.

    `costly` steps come last, and each of their cases in one dtype, in turn. `extra_dims` says
    whether a team's own sizes are added.
    """

    name: str
    summary: str
    steps: tuple[Step, ...]
    costly: tuple[Step, ...] = ()
    extra_dims: bool = True


def _steps(*pairs: tuple[str, str]) -> tuple[Step, ...]:
    return tuple(Step(sizes, recipe) for sizes, recipe in pairs)


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        Strategy(
            "certify",
            "tails, several blocks and every recipe: what the oracle runs",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("several_tail", "rising"),
                ("several_tail", "spike"),
                ("several_tail", "near_zero"),
                ("above", "large_offset"),
                (TAILS_APART, "normal"),
                ("prime", "ties"),
                ("below", "uniform10"),
                ("several", "log_uniform"),
                ("several_tail", "ternary"),
                ("short", "falling"),
                ("one", "normal"),
                ("two", "one_hot"),
                ("block", "uniform01"),
                ("above", "subnormal"),
                ("above", "huge"),
                ("several_tail", "masked_rows"),
                ("several_tail", "nonfinite"),
                ("several_tail", "far_below"),
            ),
            # Along a rising row the last element weighs most.
            costly=(
                *_steps((LONG_APART, "rising"), (WIDE_APART, "normal"), (FAR, "normal")),
                Step(FAR, "normal", layout="transposed"),
                Step(SPREAD, "normal", layout=SPREAD),
                Step(SPREAD, "normal", layout=FAR_ROWS),
            ),
        ),
        Strategy(
            "quick",
            "the four cases that kill most",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("several_tail", "rising"),
                ("several_tail", "near_zero"),
            ),
            extra_dims=False,
        ),
        Strategy(
            "default",
            "regular and boundary shapes, ordinary values",
            _steps(
                ("several", "normal"),
                ("several_tail", "normal"),
                ("block", "uniform01"),
                ("below", "normal"),
                ("above", "uniform01"),
                ("one", "normal"),
            ),
        ),
        Strategy(
            "regular",
            "whole blocks only, ordinary values",
            _steps(("block", "normal"), ("several", "normal"), ("block", "uniform01")),
        ),
        Strategy(
            "boundary",
            "every size around a block, ordinary values",
            _steps(
                ("one", "normal"),
                ("two", "normal"),
                ("short", "normal"),
                ("below", "normal"),
                ("block", "normal"),
                ("above", "normal"),
                ("several_tail", "normal"),
                (TAILS_APART, "normal"),
                ("prime", "normal"),
            ),
        ),
        Strategy(
            "tiling",
            "every size around a block, with the values that show a lost or wrong mask",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("several_tail", "rising"),
                ("above", "large_offset"),
                (TAILS_APART, "normal"),
                (TAILS_APART, "all_negative"),
                ("prime", "normal"),
                ("below", "all_negative"),
                ("short", "normal"),
                ("one", "normal"),
                ("block", "normal"),
            ),
        ),
        Strategy(
            LISTED,
            "the team's own sizes and no others",
            _steps((LISTED, "normal"), (LISTED, "all_negative"), (LISTED, "rising")),
            extra_dims=False,
        ),
    )
}


def get_strategy(name: str) -> Strategy:
    """The strategy called `name`.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    hint = did_you_mean(name, STRATEGIES)
    raise UsageError(f"unknown strategy {name!r}; {hint}")
