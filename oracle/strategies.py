"""Strategies: which shapes and values a gate tries, as data.

A strategy is a list of steps, likely killers first. A step says how large the tiled dims are
and which recipe fills the tensors; `cases` makes cases of it.

`default`, `regular`, `boundary`, `adversarial`, `nan_injected`, `single_dtype_f32` and
`single_dtype_f16` are the seven of gpuemu's ablation of sampling strategies (arXiv 2606.27396;
`sarkar-dipankar/gpuemu-corpus`, drivers/p3_strategies.py). They keep its distinctions: which
shapes, which values, which dtypes. What a regular or boundary shape is follows here from the
kernel's block sizes for every tiled dim; there a dim named H takes 128, 256, 512 or 1, 3, 7, and
kernels without one get the default shapes. Tiny and large values go with the dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gatecert.errors import UsageError, did_you_mean

TAILS_APART = "tails_apart"
LONG_APART = "long_apart"
LONG_LAST = "long_last"
FAR_SPAN = "far_span"
WIDE_APART = "wide_apart"
FAR = "far"
SPREAD = "spread"
FAR_ROWS = "far_rows"
OF_THEIR_OWN = (SPREAD, FAR_ROWS, FAR_SPAN)
"""Layouts that have steps of their own and no turn in others."""
LISTED = "listed"
EXACT = "exact"
RELATIONS = "relations"


@dataclass(frozen=True, slots=True)
class Step:
    """Size kind of the tiled dims (see `shapes.SIZE_KINDS`) and a recipe.

    The kind `tails_apart` makes one case per tiled dim: that dim has a tail, the others are
    whole blocks. `long_apart` makes one case per tiled dim, in which it is long, and
    `wide_apart` one per batch dim, of size 33; all other dims are as small as may be. In
    `long_last` the last tiled dim is long and the others are 33. `far` is one case that is wide
    and long, so that flat offsets leave 16 bits (tall where it is transposed; where tensors have
    more dims, two of those are long); `far_span` is one per tensor, whose third index lies past
    2^31 elements while the others are contiguous. `listed` makes one case of every first size
    that the team lists, one of every second, and so on. A step with a `layout` is taken in that
    layout alone, and only where the subject declares it, one whose recipe is `narrow` in dtypes
    of 16 bits, where there are some. Where an operation does not list the recipe its first one
    stands in, unless the step is `only_if_listed`.
    """

    sizes: str
    recipe: str
    layout: str = ""
    only_if_listed: bool = False


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named list of steps, each taken in every dtype.

    `costly` steps come last, and each of their cases in one dtype, in turn. `extra_dims` says
    whether a team's own sizes are added. `dtypes` restricts it to some (none named: all). With
    `exact` it is for operations that declare what of them is exact.
    """

    name: str
    summary: str
    steps: tuple[Step, ...]
    costly: tuple[Step, ...] = ()
    extra_dims: bool = True
    dtypes: tuple[str, ...] = ()
    exact: bool = False

    def of(self, dtypes: Sequence[str]) -> tuple[str, ...]:
        """Those of the dtypes that it takes."""
        return tuple(dtype for dtype in dtypes if not self.dtypes or dtype in self.dtypes)


def _steps(*pairs: tuple[str, str]) -> tuple[Step, ...]:
    return tuple(Step(sizes, recipe) for sizes, recipe in pairs)


_DEFAULT_STEPS = _steps(
    ("several", "normal"),
    ("several_tail", "normal"),
    ("block", "uniform01"),
    ("below", "normal"),
    ("above", "uniform01"),
    ("one", "normal"),
)

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
                ("prime", "small_integers"),
                ("above", "powers_of_two"),
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
                # A pass that only looks for the maximum may read too little of ordinary values.
                Step(SPREAD, "spike", layout=SPREAD, only_if_listed=True),
                Step(SPREAD, "normal", layout=FAR_ROWS),
                Step(FAR_SPAN, "normal", layout=FAR_SPAN),
                Step(LONG_LAST, "early_peak", only_if_listed=True),
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
            _DEFAULT_STEPS,
        ),
        Strategy(
            "single_dtype_f32",
            "the default in float32 alone",
            _DEFAULT_STEPS,
            dtypes=("float32",),
        ),
        Strategy(
            "single_dtype_f16",
            "the default in float16 alone",
            _DEFAULT_STEPS,
            dtypes=("float16",),
        ),
        Strategy(
            "adversarial",
            "default shapes; zeros, tiny, large and ordinary values, NaN and infinities",
            tuple(Step(step.sizes, "adversarial") for step in _DEFAULT_STEPS)
            # For domains without NaN and infinities.
            + _steps(
                ("several_tail", "huge"),
                ("several_tail", "subnormal"),
                ("several_tail", "log_uniform"),
                ("above", "large_offset"),
                ("below", "near_zero"),
            ),
        ),
        Strategy(
            "nan_injected",
            "default shapes; one value in twenty is NaN, an infinity or 0",
            tuple(Step(step.sizes, "nan_injected") for step in _DEFAULT_STEPS),
        ),
        Strategy(
            EXACT,
            "tails and several blocks, with values whose sums are exact: outputs must be equal",
            _steps(
                ("several_tail", "small_integers"),
                ("several_tail", "powers_of_two"),
                ("several_tail", "ternary"),
                (TAILS_APART, "small_integers"),
                ("above", "one_hot"),
                ("prime", "small_integers"),
                ("below", "powers_of_two"),
                ("short", "small_integers"),
                ("one", "small_integers"),
                ("two", "one_hot"),
                ("block", "ternary"),
            ),
            costly=_steps((LONG_APART, "small_integers"), (WIDE_APART, "small_integers")),
            extra_dims=False,
            exact=True,
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
            RELATIONS,
            "what metamorphic relations start from: tails and several blocks, finite outputs",
            _steps(
                ("several_tail", "normal"),
                ("several_tail", "all_negative"),
                ("above", "rising"),
                ("prime", "uniform10"),
                ("several_tail", "log_uniform"),
                ("short", "normal"),
            ),
            extra_dims=False,
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
