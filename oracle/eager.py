"""What torch itself makes of an operation in the tested dtype: the yardstick of baseline ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gatecert.errors import EnvironmentFailure
from gatecert.oracle.formats import torch_dtype
from gatecert.oracle.schema import Operation


def eager_results(operation: Operation, dtype: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """The operation's own formula, computed by torch in the tested dtype.

    Torch computes nothing in fp8, so tensors of one byte are cast first; that rounds nothing.

    Raises:
        EnvironmentFailure: torch cannot.
    """
    try:
        result = operation.call(operation.reference, [_usable(arg, dtype) for arg in args])
    except Exception as error:
        raise EnvironmentFailure(
            f"operation {operation.name!r}: its reference raised {type(error).__name__} in "
            f"{dtype}: {error}; what compares with torch's own result needs it"
        ) from error
    return operation.returned(args, result)


def eager_outputs(
    operation: Operation, dtype: str, args: Sequence[Any]
) -> tuple[torch.Tensor, ...]:
    """The same as a kernel would return it: each output in its own dtype.

    Raises:
        EnvironmentFailure: torch cannot.
    """
    outputs = []
    results = eager_results(operation, dtype, args)
    for spec, value in zip(operation.outputs_of(args), results, strict=True):
        wanted = torch_dtype(spec.dtype(dtype))
        whole = value.is_floating_point() and not wanted.is_floating_point
        outputs.append((value.round() if whole else value).to(wanted))
    return tuple(outputs)


def _usable(arg: Any, dtype: str) -> Any:
    tensor = isinstance(arg, torch.Tensor)
    narrow = tensor and arg.is_floating_point() and arg.element_size() == 1
    return arg.to(torch_dtype(dtype)) if narrow else arg
