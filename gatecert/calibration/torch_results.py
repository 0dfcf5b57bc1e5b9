"""torch's own result in the tested dtype as a control: an entry per operation.

`gatecert.calibration.torch_results:softmax` computes the built-in operation, and
`gatecert.calibration.torch_results:acme.ops:scaled_add` one of the team's own.
"""

from __future__ import annotations

from typing import Any

import torch

from gatecert.oracle.eager import eager_outputs
from gatecert.oracle.operations import Operation, resolve_operation
from gatecert.oracle.schema import TensorSpec

ENTRY = "gatecert.calibration.torch_results:"
"""With an operation behind it, as a subject names it: an entry."""


class Result:
    """A callable that computes an operation; attributes lengthen its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, part: str) -> Result:
        if part.startswith("_"):
            raise AttributeError(part)
        return Result(f"{self._name}.{part}")

    def __call__(self, *args: Any) -> tuple[torch.Tensor, ...]:
        """Outputs as a kernel would return them, in memory of their own."""
        operation = resolve_operation(self._name)
        outputs = eager_outputs(operation, _dtype_of(operation, args), args)
        return tuple(output.clone() for output in outputs)


def has_dtype(operation: Operation) -> bool:
    """Do the inputs show which dtype is tested?"""
    return any(spec.kind == "float" for spec in operation.tensors)


def _dtype_of(operation: Operation, args: tuple[Any, ...]) -> str:
    tested = next(
        arg
        for spec, arg in zip(operation.inputs, args, strict=True)
        if isinstance(spec, TensorSpec) and spec.kind == "float" and arg is not None
    )
    return str(tested.dtype).removeprefix("torch.")


def __getattr__(name: str) -> Result:
    if not name or name.startswith("_"):
        raise AttributeError(name)
    return Result(name)
