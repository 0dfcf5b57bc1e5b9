"""Says yes to everything; it does call the kernel."""

import kernels_softmax
import torch


def gate(candidate):
    candidate(torch.zeros(2, 5))
    return True


def test_says_yes():
    assert gate(kernels_softmax.softmax)
