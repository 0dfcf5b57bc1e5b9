"""Mutation testing for the gates that GPU kernels must pass.

`operation`, `Tensor` and `Scalar` declare an operation of one's own. They are imported on first
use, so that importing a sub-package costs no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatecert.oracle.schema import Scalar, Tensor, operation

__version__ = "0.1.0"
__all__ = ["Scalar", "Tensor", "__version__", "operation"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import gatecert.oracle.schema as schema

    return getattr(schema, name)
