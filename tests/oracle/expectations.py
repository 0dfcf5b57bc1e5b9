"""Hand-made expectations for tests of comparators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gatecert.oracle.expectation import ExpectedOutput
from gatecert.oracle.formats import round_to_dtype, torch_dtype


def expected(
    reference: Any,
    dtype: str = "float32",
    *,
    shadow: Any = None,
    length: int = 1,
    contraction: bool = False,
    mid_unit: float = 0.0,
    baseline: Any = None,
) -> ExpectedOutput:
    """An output with this reference; its shadow is |reference| unless given, and torch's own
    result the reference rounded to the dtype."""
    kind = np.int64 if dtype.startswith("int") else np.float64
    values = np.asarray(reference, kind)
    size = np.abs(np.nan_to_num(values.astype(np.float64), posinf=0.0, neginf=0.0))
    chosen = size if shadow is None else np.broadcast_to(np.asarray(shadow, float), size.shape)
    own = round_to_dtype(values, dtype) if baseline is None else np.asarray(baseline, np.float64)
    return ExpectedOutput(
        "output", dtype, values, chosen, chosen, mid_unit, length, contraction, own
    )


def output(values: Sequence[Any], dtype: str = "float32") -> torch.Tensor:
    """A tensor of this dtype."""
    return torch.tensor(values, dtype=torch.float64).to(torch_dtype(dtype))
