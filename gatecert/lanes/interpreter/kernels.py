"""Tell kernels from other values. Imports no Triton."""

from __future__ import annotations

import sys
from typing import Any


def is_kernel(value: Any) -> bool:
    """Is it a jitted function, or an autotuned or heuristic wrapper of one?"""
    triton_jit = sys.modules.get("triton.runtime.jit")
    return triton_jit is not None and isinstance(value, triton_jit.KernelInterface)
