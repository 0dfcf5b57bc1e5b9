"""The watch counts what kernels take, and nothing else."""

from __future__ import annotations

import time

import torch
import triton
import triton.language as tl

from gatecert.lanes import interpreter
from tests.gatecert.lanes.inside import inside_lane


@triton.jit
def one_kernel(out):
    tl.store(out + tl.program_id(0), 1.0)


@inside_lane
def test_only_kernels_are_timed() -> None:
    out = torch.zeros(200)
    one_kernel[(200,)](out)
    with interpreter.timed() as watch:
        started = time.perf_counter()
        one_kernel[(200,)](out)
        launched = time.perf_counter() - started
        time.sleep(0.2)
    assert 0.0 < watch.seconds <= launched
    seconds = watch.seconds
    one_kernel[(200,)](out)
    assert watch.seconds == seconds
