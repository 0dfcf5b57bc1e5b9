"""Can what an operation declares be drawn: scalars, integers, sizes of dims, recipes?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from gatecert.errors import UsageError, did_you_mean
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.specs import ScalarSpec, TensorSpec
from gatecert.oracle.values import RECIPES

if TYPE_CHECKING:
    from gatecert.oracle.schema import Operation


def check_ranges(made: Operation) -> None:
    """Refuse ranges that hold nothing, or that do not fit what is drawn from them.

    Raises:
        UsageError: it names the operation, the argument or dim, and what would do.
    """
    where = f"operation {made.name!r}"
    for scalar in made.scalars:
        _check_scalar(scalar, f"{where}: scalar {scalar.name!r}")
    for tensor in made.tensors:
        _check_tensor(tensor, f"{where}: argument {tensor.name!r}")
    for dim, sizes in made.sizes.items():
        if not sizes or any(type(size) is not int or size < 1 for size in sizes):
            raise UsageError(
                f"{where}: sizes of dim {dim!r} are {sizes or 'none'}; give whole numbers above 0"
            )
    if not made.recipes:
        raise UsageError(f"{where}: it has no recipe, so that no values can be drawn")


def integer_range(dtype: str) -> tuple[int, int]:
    """The smallest and the largest integer of a dtype that is no float."""
    if dtype == "bool":
        return 0, 1
    limits = torch.iinfo(torch_dtype(dtype))
    return limits.min, limits.max


def _check_scalar(spec: ScalarSpec, where: str) -> None:
    low, high = spec.scalar.low, spec.scalar.high
    if not (math.isfinite(low) and math.isfinite(high)) or low > high:
        raise UsageError(f"{where}: no number is in [{low}, {high}]; write Scalar(low, high)")
    if spec.scalar.logarithmic and low <= 0:
        raise UsageError(f"{where}: a logarithmic range starts above 0, not at {low}")
    if spec.scalar.integer and math.ceil(low) > math.floor(high):
        raise UsageError(f"{where}: no integer is in [{low}, {high}]")
    default = spec.default
    if default is None or spec.scalar.always_drawn:
        return
    if not low <= default <= high or (spec.scalar.integer and not default.is_integer()):
        raise UsageError(
            f"{where}: its default {default} is not {'an integer ' * spec.scalar.integer}in "
            f"[{low}, {high}]; widen the range or change the default"
        )


def _check_tensor(spec: TensorSpec, where: str) -> None:
    for name in (*spec.stand_ins, *spec.stand_ins.values()):
        if name not in RECIPES and name != "*":
            raise UsageError(f"{where}: unknown recipe {name!r}; {did_you_mean(name, RECIPES)}")
    rank = len(spec.dims)
    if rank and not -rank <= spec.axis < rank:
        raise UsageError(f"{where}: it has {rank} dims and no axis {spec.axis}")
    if spec.is_float or spec.index is not None:
        return
    smallest, largest = integer_range(spec.kind)
    ends = [spec.low, *([spec.high - 1] if isinstance(spec.high, int) else [])]
    ends += [] if spec.marker is None else [spec.marker]
    for end in ends:
        if not smallest <= end <= largest:
            raise UsageError(f"{where}: {end} does not fit {spec.kind} ({smallest} to {largest})")
    if isinstance(spec.high, int) and spec.low >= spec.high:
        raise UsageError(f"{where}: no integer is in [{spec.low}, {spec.high})")
