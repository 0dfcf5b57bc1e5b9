"""The corpus's originals on a GPU: every case of the oracle's strategy, judged on the CPU.

What the interpreter lane says of a control is worth something only if the kernel is right where
kernels run. Prints one line per subject and writes a JSON record to the path given.

    python benchmarks/on_device.py OUTPUT [--subject NAME ...] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
import triton

from gatecert.config import CORPUS_CONFIG, load_config
from gatecert.oracle.cases import cases_for
from gatecert.oracle.comparators import judge
from gatecert.oracle.contract import contract_violation
from gatecert.oracle.expectation import expect
from gatecert.oracle.inputs import Inputs, make_inputs
from gatecert.oracle.operations import resolve_operation
from gatecert.oracle.tolerance import RoundingInterval
from gatecert.subjects import Subject, load_entry


def main() -> int:
    """Run, print, write; 1 if any case is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--subject", action="append", default=[])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    subjects = [
        subject
        for subject in load_config(CORPUS_CONFIG).subjects
        if not options.subject or subject.name in options.subject
    ]
    rows = []
    for subject in subjects:
        rows.append(_run(subject, options.seed))
        print(json.dumps(rows[-1]), flush=True)
        record = {
            "device": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "seed": options.seed,
            "subjects": rows,
        }
        options.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return int(any(row["wrong"] for row in rows))


def _run(subject: Subject, seed: int) -> dict[str, Any]:
    operation = resolve_operation(str(subject.operation))
    cases = cases_for(
        operation,
        dtypes=subject.dtypes,
        layouts=subject.layouts,
        blocks=subject.blocks,
        extra_dims=subject.dims,
        seed=seed,
    )
    entry = load_entry(subject)
    wrong: list[str] = []
    margin, started = 0.0, time.monotonic()
    for case in cases:
        inputs = make_inputs(operation, case)
        expected = expect(operation, case, inputs, intermediate=subject.intermediate)
        there = Inputs(inputs.names, tuple(map(_to_device, inputs.args)), inputs.sha256)
        try:
            result = entry(*there.args)
            torch.cuda.synchronize()
        except Exception as error:  # which error, is what the record is for
            wrong.append(f"{case.id}: {type(error).__name__}: {str(error)[:200]}")
            if "CUDA" in str(error):
                break  # an illegal access leaves the process unusable
            continue
        outputs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        broken = contract_violation(operation, case, there, outputs)
        if broken:
            wrong.append(f"{case.id}: {broken}")
            continue
        for one, output in zip(expected.outputs, outputs, strict=True):
            said = judge(RoundingInterval(), one, output)
            margin = max(margin, said.score if said.passed else 0.0)
            if not said.passed:
                wrong.append(
                    f"{case.id}: {one.name}: {said.mismatched} of {said.compared} wrong, "
                    f"score {said.score:.3g}"
                )
    return {
        "subject": subject.name,
        "cases": len(cases),
        "wrong": wrong,
        "largest_score_passed": round(margin, 4),
        "seconds": round(time.monotonic() - started, 1),
    }


def _to_device(arg: Any) -> Any:
    """A tensor on the GPU that lies there as it does here, gaps and all."""
    if not isinstance(arg, torch.Tensor):
        return arg
    whole = torch.empty(0, dtype=arg.dtype).set_(arg.untyped_storage())
    return whole.cuda().as_strided(tuple(arg.shape), arg.stride(), arg.storage_offset())


if __name__ == "__main__":
    sys.exit(main())
