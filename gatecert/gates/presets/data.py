"""Published checks as data: `presets.toml`, read once and checked strictly."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import msgspec
import torch

from gatecert.gates.presets.file import read_presets
from gatecert.oracle.case import Case
from gatecert.oracle.cases import make_case
from gatecert.oracle.comparators import Absolute, AllClose
from gatecert.oracle.schema import Operation
from gatecert.oracle.streams import Stream

_T = TypeVar("_T")


class PresetData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One published check; the fields are explained in `presets.toml`."""

    summary: str
    source: str
    as_of: str
    inputs: str
    shapes: str
    dtypes: tuple[str, ...]
    pick: Literal["first", "every", "drawn"]
    reference: Literal["eager", "fp64"]
    shape_check: bool
    trials: int
    seed: int
    comparator: AllClose | Absolute
    tolerances: dict[str, dict[str, dict[str, float]]] = {}

    def comparator_for(self, operation: str, dtype: str) -> AllClose | Absolute:
        """The comparator with the numbers of this operation and dtype."""
        by_dtype = self.tolerances.get(operation) or self.tolerances.get("*", {})
        return msgspec.structs.replace(self.comparator, **by_dtype.get(dtype, {}))

    def axes(self) -> dict[str, str]:
        """The five axes in words."""
        seeds = f"{self.trials} trial{'s' if self.trials > 1 else ''}, seed {self.seed}"
        references = {"eager": "eager PyTorch in the tested dtype", "fp64": "PyTorch in float64"}
        return {
            "inputs": f"{self.inputs}; {self.pick} of {', '.join(self.dtypes)}",
            "shapes": self.shapes,
            "reference": references[self.reference],
            "comparator": _in_words(self.comparator, self.tolerances),
            "protocol": f"{seeds}; all must pass; stops at the first failure",
        }


class ShapeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes to draw from, per operation and dim."""

    otherwise: tuple[tuple[int, ...], ...]
    rows: dict[str, dict[str, tuple[int, ...]]]

    def sizes(
        self, operation: Operation, allowed: Mapping[str, Sequence[int]]
    ) -> dict[str, tuple[int, ...]]:
        """Sizes per dim; of a dim with a few `allowed` ones only those (all, if none fits)."""
        found = self.rows.get(operation.name, {})
        if set(found) != set(operation.dims):
            lists = reversed(self.otherwise)
            padded = itertools.chain(lists, itertools.repeat(self.otherwise[0]))
            found = dict(zip(reversed(operation.dims), padded, strict=False))
        return {
            dim: tuple(size for size in found[dim] if size in allowed.get(dim, found[dim]))
            or tuple(allowed[dim])
            for dim in operation.dims
        }


class PresetFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    preset: dict[str, PresetData]
    shapes: dict[str, ShapeTable]


@functools.cache
def load_presets() -> PresetFile:
    """The file, checked once."""
    return msgspec.convert(read_presets(), PresetFile)


def cases_of(
    preset: PresetData,
    operation: Operation,
    dtypes: Sequence[str],
    dims: Mapping[str, Sequence[int]],
    seed: int,
) -> tuple[Case, ...]:
    """The cases of a preset for a subject with these dtypes and, where it says so, sizes.

    `dims` counts only for dims with a few allowed sizes, in place of the operation's choice.
    """
    allowed = {dim: dims.get(dim) or sizes for dim, sizes in operation.sizes.items()}
    table = load_presets().shapes[preset.shapes].sizes(operation, allowed)
    known = [dtype for dtype in dtypes if dtype in preset.dtypes]
    drawn = [
        (trial_seed, _draw(table, known, Stream(f"{operation.name}#{trial_seed}")))
        for trial_seed in _trial_seeds(preset, seed)
    ]

    def case(trial_seed: int, sizes: dict[str, int], dtype: str) -> Case:
        return make_case(operation, sizes, dtype=dtype, recipe=preset.inputs, seed=trial_seed)

    if preset.pick == "drawn":
        return tuple(case(trial_seed, sizes, dtype) for trial_seed, (sizes, dtype) in drawn)
    picked = known[:1] if preset.pick == "first" else known
    return tuple(
        case(trial_seed, sizes, dtype) for dtype in picked for trial_seed, (sizes, _) in drawn
    )


def _trial_seeds(preset: PresetData, seed: int) -> Iterator[int]:
    """One seed per trial, as KernelBench derives them from its base seed."""
    generator = torch.Generator().manual_seed(preset.seed + seed)
    for _ in range(preset.trials):
        yield int(torch.randint(0, 2**32 - 1, (1,), generator=generator).item())


def _draw(
    table: Mapping[str, Sequence[int]], dtypes: Sequence[str], stream: Stream
) -> tuple[dict[str, int], str]:
    """One size per dim, and a dtype."""
    sizes = {dim: _one_of(options, stream) for dim, options in table.items()}
    return sizes, _one_of(dtypes, stream)


def _one_of(options: Sequence[_T], stream: Stream) -> _T:
    return options[int(stream.integers(0, len(options), ()))]


def _in_words(
    comparator: AllClose | Absolute, tolerances: dict[str, dict[str, dict[str, float]]]
) -> str:
    numbers = f"atol {comparator.atol:g}"
    if isinstance(comparator, AllClose):
        words = f"allclose, relative to |{comparator.scale_by}|, "
        numbers += f", rtol {comparator.rtol:g}"
    else:
        words = "absolute error, "
    return words + numbers + (", unless the preset's table says otherwise" if tolerances else "")
