"""Fit a constant per operation and dtype, and try it on what it was not fitted on.

The constant is an envelope over the largest need of any run, never a percentile, which rejects
its share of correct runs by construction. It is tried on new seeds, on a shape and on a recipe
that no fit saw, and each kernel on what was fitted without it. A kernel that disagrees with its
reference under the bound that needs no fitting is refused before anything is fitted.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gatecert.calibration.collect import TORCH, Run
from gatecert.calibration.models import Facts, Model, as_table
from gatecert.calibration.records import LeftOut, Refused, Row, Tried
from gatecert.errors import EnvironmentFailure
from gatecert.oracle.values import EXACT_RECIPES
from gatecert.statistics import clopper_pearson

KERNELS_NEEDED = 3
"""Leaving one out leaves two to fit on."""
_ALWAYS_FITTED = frozenset({"normal", "all_negative", "large_offset", "ties", *EXACT_RECIPES})
"""Recipes that are never held out: constant rows and large means need the most, and where sums
are exact nothing is needed."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Rows, what was refused, and where torch's own result is no control."""

    rows: tuple[Row, ...]
    refused: tuple[Refused, ...]
    torch_left_out: tuple[str, ...]


def check_agreement(runs: Iterable[Run]) -> None:
    """Refuse to fit on kernels that disagree with their reference.

    Raises:
        EnvironmentFailure: one does; it names the control, the case and the difference.
    """
    runs = [run for run in runs if not run.kernel.startswith(TORCH)]
    wrong = [run for run in runs if run.beyond]
    if not wrong:
        return
    first = wrong[0]
    same = [run for run in runs if run.kernel == first.kernel]
    raise EnvironmentFailure(
        f"{first.control} disagrees with its reference on {first.case.id}: {first.beyond} "
        f"({sum(bool(run.beyond) for run in same)} of {len(same)} runs of {first.kernel}). That is "
        "no tolerance to fit: mend the kernel, declare its step in lower precision "
        "(intermediate), or narrow its dtypes and layouts"
    )


def fit(
    runs: Iterable[Run], model: Model, *, envelope: float, held_out_seeds: Sequence[int]
) -> Fitted:
    """A row per operation and dtype, or the reason why there is none."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.operation, run.case.dtype), []).append(run)
    rows, refused, left_out = [], [], []
    for (operation, dtype), group in sorted(groups.items()):
        beyond = [run for run in group if run.beyond and run.kernel.startswith(TORCH)]
        if beyond:
            left_out.append(f"{operation} in {dtype}: {beyond[0].beyond}")
            group = [run for run in group if not run.kernel.startswith(TORCH)]
        found = _fit_group(operation, dtype, group, model, envelope, frozenset(held_out_seeds))
        if isinstance(found, Row):
            rows.append(found)
        else:
            refused.append(Refused(operation, dtype, found))
    return Fitted(tuple(rows), tuple(refused), tuple(left_out))


def _fit_group(
    operation: str,
    dtype: str,
    group: Sequence[Run],
    model: Model,
    envelope: float,
    held_out_seeds: frozenset[int],
) -> Row | str:
    """The row of one operation in one dtype, or why it is refused."""
    parts = _split(group, held_out_seeds)
    fitted = parts.pop("")
    by_kernel = {
        kernel: [run for run in fitted if run.kernel == kernel]
        for kernel in sorted({run.kernel for run in group})
    }
    enough = {name: own for name, own in by_kernel.items() if len(own) >= model.runs_needed}
    if len(enough) < KERNELS_NEEDED:
        return _too_few(operation, by_kernel, model)
    worst = max(fitted, key=lambda run: run.need)
    if not math.isfinite(worst.need):
        return (
            f"no constant passes {worst.control} on {worst.case.id}: what its error is measured "
            "by is 0 there; take another --model"
        )

    def constant_of(some: Iterable[Run]) -> float:
        largest = max((run.need for run in some), default=0.0)
        return _rounded_up(max(model.floor(facts), envelope * largest))

    laws = [run.law for run in group if run.law is not None]
    law = max(laws, key=lambda law: law.middle_weight, default=None)
    facts = Facts(dtype, law, len(fitted))
    constant = constant_of(fitted)
    needs = np.array([run.need for run in fitted])
    left_out = []
    for kernel in by_kernel:
        others = constant_of(run for run in fitted if run.kernel != kernel)
        own = [run for run in group if run.kernel == kernel]
        left_out.append(LeftOut(kernel, others, len(own), _rejected(own, others)))
    return Row(
        operation=operation,
        dtype=dtype,
        comparator=as_table(model.make(constant, envelope, facts)),
        constant=constant,
        kernels=tuple(by_kernel),
        controls=len({run.control for run in fitted}),
        cases=len({run.case.id for run in fitted}),
        runs=len(fitted),
        elements=sum(run.elements for run in fitted),
        median=_short(float(np.median(needs))),
        p95=_short(float(np.quantile(needs, 0.95))),
        largest=_short(worst.need),
        largest_case=f"{worst.control} on {worst.case.id}",
        held_out={what: _tried(own, constant) for what, own in parts.items()},
        left_out=tuple(left_out),
    )


def _split(group: Sequence[Run], held_out_seeds: frozenset[int]) -> dict[str, list[Run]]:
    """Runs by what is new in them: nothing (those are fitted on), a recipe, a shape or a seed."""
    recipe = _held_out_recipe(group)
    others = [run for run in group if run.case.recipe != recipe]
    shapes = {
        kernel: _held_out_shape([run for run in others if run.kernel == kernel])
        for kernel in {run.kernel for run in group}
    }
    parts: dict[str, list[Run]] = {"": [], "seeds": [], "shape": [], "recipe": []}
    for run in group:
        if run.case.recipe == recipe:
            part = "recipe"
        elif run.case.dims == shapes[run.kernel]:
            part = "shape"
        else:
            part = "seeds" if run.case.seed in held_out_seeds else ""
        parts[part].append(run)
    return parts


def _held_out_recipe(group: Sequence[Run]) -> str | None:
    """One of the recipes, by a draw that the operation's name decides."""
    recipes = {run.case.recipe for run in group} - _ALWAYS_FITTED
    operation = group[0].operation
    return min(recipes, key=lambda recipe: _draw(f"{operation}/{recipe}"), default=None)


def _held_out_shape(runs: Sequence[Run]) -> tuple[tuple[str, int], ...] | None:
    """One shape of a kernel, neither its smallest nor its largest: those bound what was fitted."""
    sized = {run.case.dims: math.prod(size for _, size in run.case.dims) for run in runs}
    ends = {min(sized.values(), default=0), max(sized.values(), default=0)}
    inner = [dims for dims, size in sized.items() if size not in ends]
    return min(inner, key=lambda dims: _draw(str(dims)), default=None)


def _draw(text: str) -> int:
    return zlib.crc32(text.encode())


def _too_few(operation: str, by_kernel: Mapping[str, Sequence[Run]], model: Model) -> str:
    enough = [name for name, own in by_kernel.items() if len(own) >= model.runs_needed]
    short = [f"{name} has {len(own)}" for name, own in by_kernel.items() if name not in enough]
    said = (
        f"{len(enough)} of {len(by_kernel)} kernels have the {model.runs_needed} runs that "
        f"{model.name!r} needs, and {KERNELS_NEEDED} such kernels are needed, so that leaving one "
        f"out leaves two: "
    )
    missing = KERNELS_NEEDED - len(by_kernel)
    if missing > 0:
        kernels = "another kernel" if missing == 1 else f"{missing} more kernels"
        return said + f"add {kernels} for {operation} as a subject"
    seeds = len({run.case.seed for own in by_kernel.values() for run in own})
    fewest = sorted(map(len, by_kernel.values()), reverse=True)[KERNELS_NEEDED - 1]
    wanted = f" to {math.ceil(seeds * model.runs_needed / fewest)}" if fewest else ""
    return said + f"raise --seeds{wanted} ({', '.join(short)})"


def _tried(runs: Sequence[Run], constant: float) -> Tried:
    kernels = {run.kernel for run in runs}
    wronged = {run.kernel for run in runs if run.need > constant}
    bound = clopper_pearson(len(wronged), len(kernels)).high
    return Tried(
        len(runs),
        _rejected(runs, constant),
        len(kernels),
        len(wronged),
        1.0 if bound is None else _short(bound),
    )


def _rejected(runs: Iterable[Run], constant: float) -> int:
    return sum(run.need > constant for run in runs)


def _rounded_up(value: float) -> float:
    """To four digits, for people, and never below."""
    if value == 0.0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return max(float(f"{math.ceil(value / step) * step:.4g}"), value)


def _short(value: float) -> float:
    return float(f"{value:.4g}")
