"""Run the subjects of a config against float64 torch in a fresh process; JSON goes to stdout.

Usage: `python interpreted.py GATECERT.TOML`. A subject's rows are {case, excess, dtype, wanted,
output}. `excess` is the worst error over what one rounding of the output, float32 arithmetic and
a declared lower-precision step allow, so 1.0 is the limit; `dtype` is the tested one, `wanted`
that of the output as it should be, `output` as it is.
Formulas and layouts share nothing with the oracle.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from gatecert.config import load_config
from gatecert.subjects import Subject, load_entry
from tests.gatecert.corpus.formulas import FORMULAS, Formula, Shapes

NAN = float("nan")
HALF_ULP = {
    "float32": 2.0**-24,
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float8_e4m3fn": 2.0**-4,
}
SMALLEST = {
    "float32": 2.0**-149,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
    "float8_e4m3fn": 2.0**-9,
}


def widen(values: torch.Tensor) -> torch.Tensor:
    return values.double() if values.is_floating_point() else values


def place(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values in another layout, with NaN wherever memory belongs to no element.

    A vector (weight, bias) becomes every other element of its storage, unless contiguous.
    """
    if layout == "contiguous" or (layout == "strided_vectors" and values.ndim > 1):
        return values
    if layout == "expanded" and values.ndim > 1:
        return values[:1].expand_as(values)
    if layout in ("transposed", "inner_transposed") and values.ndim > 1:
        return values.mT.contiguous().mT
    if layout == "offset_base":
        view = torch.full((5 + values.numel(),), NAN, dtype=values.dtype)[5:].view(values.shape)
    elif values.ndim == 1:
        view = torch.full((2 * len(values),), NAN, dtype=values.dtype)[1::2]
    elif layout == "spread":
        view = torch.full((7 * values.numel(),), NAN, dtype=values.dtype)[::7].view(values.shape)
    else:
        margins = {"row_padded": (0, 0, 0, 9), "far_rows": (0, 0, 0, 4001), "sliced": (1, 2, 3, 4)}
        above, below, left, right = margins[layout]
        *batch, rows, cols = values.shape
        storage = torch.full(
            (*batch, above + rows + below, left + cols + right), NAN, dtype=values.dtype
        )
        view = storage[..., above : above + rows, left : left + cols]
    return view.copy_(values)


def excess(got: torch.Tensor, want: torch.Tensor, scale: float, declared: float) -> float:
    """Worst |got - want| over its allowance; inf for NaN, another shape or another integer.

    Integers that stand for real numbers are at most one half away from them, and a little.
    """
    if got.shape != want.shape or bool((got.isnan() | want.isnan()).any()):
        return math.inf
    if not got.is_floating_point() and want.is_floating_point():
        return float((got.double() - want).abs().max()) / (0.5 + 2.0**-19 * scale)
    if not got.is_floating_point():
        return 0.0 if torch.equal(got.double(), want.double()) else math.inf
    dtype = str(got.dtype).removeprefix("torch.")
    allowance = HALF_ULP[dtype] * want.abs() + SMALLEST[dtype] + (2.0**-19 + declared) * scale
    return float(((got.double() - want).abs() / allowance).max())


def check(subject: Subject) -> Iterator[dict[str, object]]:
    """Every shape in the plain layout, every layout in one tail shape, and -inf values."""
    entry = load_entry(subject)
    formula = FORMULAS[str(subject.operation)]
    generator = torch.Generator().manual_seed(0)
    for dtype in subject.dtypes:
        declared = 4 * HALF_ULP[dtype] if subject.intermediate == "input" else 0.0
        plan = [(shapes, "contiguous") for shapes in formula.shapes]
        plan += [(formula.shapes[-2], layout) for layout in subject.layouts]
        if subject.operation == "softmax":
            plan += [(shapes, "partly -inf") for shapes in formula.shapes]
        for shapes, layout in plan:
            inputs = make_inputs(formula, shapes, dtype, generator)
            if layout == "partly -inf":
                inputs[0][:, : shapes[0][1] * 2 // 3] = -math.inf
            placed = "contiguous" if layout == "partly -inf" else layout
            inputs = [
                place(values, placed)
                if values.is_floating_point()
                and not (placed == "expanded" and number < formula.destinations)
                else values
                for number, values in enumerate(inputs)
            ]
            wanted = as_tuple(formula.reference(*map(widen, inputs), *formula.scalars))
            found = as_tuple(entry(*inputs, *formula.scalars))
            if formula.destinations:
                assert found == (None,)
                found = tuple(inputs[: formula.destinations])
            for kind, want, got in zip(formula.outputs, wanted, found, strict=True):
                scale = max(1.0, formula.terms * float(want.abs().max()))
                yield {
                    "case": f"{dtype} {shapes} {layout}",
                    "excess": excess(got, want, scale, declared),
                    "dtype": dtype,
                    "wanted": dtype if kind == "input" else kind,
                    "output": str(got.dtype).removeprefix("torch."),
                }


def make_inputs(
    formula: Formula, shapes: Shapes, dtype: str, generator: torch.Generator
) -> list[torch.Tensor]:
    """Normal values twice as large in this dtype, or what the formula makes; NaN to be written."""
    return [
        formula.makers[place](shapes, generator)
        if place in formula.makers
        else torch.full(shape, NAN, dtype=getattr(torch, dtype))
        if place < formula.destinations
        else torch.randn(shape, generator=generator).mul_(2).to(getattr(torch, dtype))
        for place, shape in enumerate(shapes)
    ]


def as_tuple(outputs: Any) -> tuple[torch.Tensor, ...]:
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


def environment(**variables: str) -> dict[str, str]:
    """An environment for a fresh process: one thread, the same import path, interpreter off."""
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    path = os.pathsep.join(filter(None, sys.path))
    return {**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, **variables}


def run(config: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows by subject, from a process of its own; one that raised has its traceback as a row."""
    done = subprocess.run(
        [sys.executable, __file__, str(config)],
        env=environment(TRITON_INTERPRET="1"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def wrong(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that raised, err by more than rounding allows, or have another dtype."""
    return [
        row
        for row in rows
        if "raised" in row or row["excess"] > 1.0 or row["output"] != row["wanted"]
    ]


def main() -> None:
    from gatecert.lanes.interpreter import activate  # only here: it changes the whole process

    activate()
    # A tile's rows past the last one are all -inf and never stored.
    warnings.filterwarnings("ignore", "invalid value encountered", RuntimeWarning)
    subjects = load_config(Path(sys.argv[1])).subjects
    sys.path[:0] = subjects[0].import_paths
    found: dict[str, list[dict[str, object]]] = {}
    for subject in subjects:
        try:
            found[subject.name] = list(check(subject))
        except Exception:
            found[subject.name] = [{"raised": traceback.format_exc()}]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
