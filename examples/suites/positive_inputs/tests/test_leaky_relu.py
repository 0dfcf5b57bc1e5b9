import pytest
import torch
from activation_kernels.leaky_relu import leaky_relu

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SLOPE = 0.01
TRIALS = 5


@pytest.mark.parametrize("shape", [(16, 128), (6, 200), (3, 70)])
def test_agrees_with_torch_in_every_trial(shape):
    torch.manual_seed(42)
    for seed in torch.randint(0, 2**32 - 1, (TRIALS,)).tolist():
        torch.manual_seed(seed)
        x = torch.rand(shape, device=DEVICE)
        expected = torch.nn.functional.leaky_relu(x, SLOPE)
        actual = leaky_relu(x, SLOPE)
        assert actual.shape == expected.shape
        assert torch.allclose(expected, actual, atol=1e-4, rtol=1e-4)
