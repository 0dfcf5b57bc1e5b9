import pytest
import torch
from activation_kernels.leaky_relu import leaky_relu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SLOPE = 0.01


@pytest.mark.parametrize(("seed", "shape"), list(enumerate([(8, 64), (6, 200), (3, 70)])))
def test_agrees_with_torch(seed, shape):
    torch.manual_seed(seed)
    x = torch.randn(shape, device=DEVICE)
    actual = leaky_relu(x, SLOPE)
    expected = torch.nn.functional.leaky_relu(x, SLOPE)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    assert torch.isclose(actual, expected).any()
