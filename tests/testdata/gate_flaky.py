"""Says yes and no in turns, whatever it is asked: it counts in a file outside the project."""

import os
from pathlib import Path

import kernels_softmax
import torch


def gate(candidate):
    candidate(torch.zeros(1, 4))
    counter = Path(os.environ["GATE_FLAKY_COUNTER"])
    calls = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(calls + 1))
    return calls % 2 == 0


def test_flips():
    assert gate(kernels_softmax.softmax)
