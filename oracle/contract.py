"""The output contract: how many outputs, of what type, shape, dtype and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gatecert.oracle.case import Case
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.inputs import Inputs
from gatecert.oracle.schema import Operation


def contract_violation(
    operation: Operation, case: Case, inputs: Inputs, outputs: Sequence[Any]
) -> str | None:
    """The first breach of the contract, in words, or None."""
    specs = operation.outputs_of(inputs.args)
    if len(outputs) != len(specs):
        return f"{len(outputs)} outputs instead of {len(specs)}"
    device = next((t.device for t in inputs.tensors.values()), torch.device("cpu"))
    for spec, output in zip(specs, outputs, strict=True):
        if not isinstance(output, torch.Tensor):
            return f"{spec.name} is a {type(output).__name__}, not a tensor"
        dtype = torch_dtype(spec.dtype(case.dtype))
        for what, actual, wanted in (
            ("shape", tuple(output.shape), spec.shape(case.sizes)),
            ("dtype", output.dtype, dtype),
            ("device", output.device.type, device.type),
        ):
            if actual != wanted:
                return f"{spec.name} has {what} {actual}, not {wanted}"
    return None
