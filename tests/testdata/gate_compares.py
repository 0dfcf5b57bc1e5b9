"""An honest gate: one odd shape against PyTorch; it says yes or no."""

import kernels_softmax
import pytest
import torch


def gate(candidate):
    x = torch.linspace(-3, 3, 10).reshape(2, 5)
    return torch.allclose(candidate(x), torch.softmax(x, dim=1))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_softmax(rows):
    x = torch.linspace(-3, 3, 5 * rows).reshape(rows, 5)
    assert torch.allclose(kernels_softmax.softmax(x), torch.softmax(x, dim=1)), "not a softmax"
