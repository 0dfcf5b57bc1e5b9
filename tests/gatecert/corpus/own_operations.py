"""Check a config's own operations (`module:name`) in a fresh process; JSON goes to stdout.

Usage: `python own_operations.py GATECERT.TOML`. Both the operation's reference in float64 and
the subject's outputs in every dtype are held against the operation's second formulation, which
autograd differentiates. A subject's rows are those of `interpreted.py`, with `reference_error`:
the worst error of the reference, relative to the largest value of that output.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

from gatecert.config import load_config
from gatecert.oracle.cases import cases_for
from gatecert.oracle.inputs import make_inputs
from gatecert.oracle.operations import resolve_operation
from gatecert.subjects import Subject, load_entry
from tests.gatecert.corpus.interpreted import HALF_ULP, excess


def check(subject: Subject) -> Iterator[dict[str, object]]:
    """Every output of every quick case."""
    operation, entry = resolve_operation(str(subject.operation)), load_entry(subject)
    assert operation.second is not None
    cases = cases_for(
        operation,
        dtypes=subject.dtypes,
        layouts=subject.layouts,
        blocks=subject.blocks,
        strategy="quick",
    )
    for case in cases:
        args = make_inputs(operation, case).args
        wide = [
            arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
            for arg in args
        ]
        found = (
            operation.call(formulation, given)
            for formulation, given in (
                (operation.reference, wide),
                (operation.second, wide),
                (entry, args),
            )
        )
        for spec, reference, second, output in zip(operation.outputs, *found, strict=True):
            largest = float(second.abs().max())
            dtype = case.dtype if spec.kind == "float" else spec.kind
            declared = 4 * HALF_ULP[case.dtype] if subject.intermediate == "input" else 0.0
            yield {
                "case": f"{case.id} {spec.name}",
                "reference_error": float((reference - second).abs().max()) / max(largest, 1e-300),
                "excess": (
                    excess(output, second, max(1.0, largest), declared)
                    if output.is_floating_point()
                    else float((output != second).sum()) * 2
                ),
                "dtype": case.dtype,
                "wanted": dtype,
                "output": str(output.dtype).removeprefix("torch."),
            }


def main() -> None:
    from gatecert.lanes.interpreter import activate  # only here: it changes the whole process

    activate()
    subjects = load_config(Path(sys.argv[1])).subjects
    sys.path[:0] = subjects[0].import_paths
    found: dict[str, list[dict[str, object]]] = {}
    for subject in subjects:
        if ":" not in str(subject.operation):
            continue
        try:
            found[subject.name] = list(check(subject))
        except Exception:
            found[subject.name] = [{"raised": traceback.format_exc()}]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
