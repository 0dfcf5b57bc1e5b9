"""Runs an operator beside its baseline and collects what is known of it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass
class Metrics:
    """Of one input."""

    seconds: float
    accuracy: bool


def measure(
    operator: Callable[[torch.Tensor], torch.Tensor],
    baseline: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
) -> Metrics:
    """Time the operator on `x`, and compare it with the baseline."""
    start = time.perf_counter()
    y = operator(x)
    seconds = time.perf_counter() - start
    return Metrics(seconds, torch.allclose(y, baseline(x), atol=1e-5, rtol=1e-5))
