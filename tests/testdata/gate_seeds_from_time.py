"""Other inputs in every run."""

import time

import kernels_softmax
import torch


def gate(candidate):
    torch.manual_seed(time.time_ns() % (1 << 31))
    x = torch.randn(2, 5)
    return torch.allclose(candidate(x), torch.softmax(x, dim=1), atol=1e-6)


def test_some_inputs():
    assert gate(kernels_softmax.softmax)
