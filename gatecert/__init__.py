"""Mutation testing for the gates that GPU kernels must pass.

`operation`, `Tensor`, `tensor`, `Scalar`, `Size` and `Seed` declare an operation of one's own, and
`grad_of` its gradient; `linear` and `selecting` say
what of it is exact, `Relations`, `additive` and `homogeneous` what holds between its outputs;
`record_launches` logs the shapes of a running job, and `assert_correct` holds a function against a
case of the oracle. They are imported on first use, so that
importing a sub-package costs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatecert.asserting import assert_correct
    from gatecert.oracle.exact import linear, selecting
    from gatecert.oracle.gradients import grad_of
    from gatecert.oracle.relations import Relations, additive, homogeneous
    from gatecert.oracle.schema import Scalar, Seed, Size, Tensor, operation, tensor
    from gatecert.recording import record_launches

__version__ = "0.1.0"
__all__ = [
    "Relations",
    "Scalar",
    "Seed",
    "Size",
    "Tensor",
    "__version__",
    "additive",
    "assert_correct",
    "grad_of",
    "homogeneous",
    "linear",
    "operation",
    "record_launches",
    "selecting",
    "tensor",
]
_MODULES = {
    "gatecert.asserting": ("assert_correct",),
    "gatecert.oracle.exact": ("linear", "selecting"),
    "gatecert.oracle.relations": ("Relations", "additive", "homogeneous"),
    "gatecert.oracle.gradients": ("grad_of",),
    "gatecert.oracle.schema": ("Scalar", "Seed", "Size", "Tensor", "operation", "tensor"),
    "gatecert.recording": ("record_launches",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
